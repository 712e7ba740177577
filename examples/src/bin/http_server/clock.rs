//! The timers that the server can take its timeouts from.

use std::future::Future;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;
use timer_adapters::hyper::HyperTimer;
use timer_core::Timer;

/// The timer of the server.
#[derive(Clone)]
pub(crate) enum Clock {
    /// The timer of this library, which hyper uses for headers and each request for its limit.
    Ours(Timer),
    /// The same timer, with one sleep for all limits of a connection.
    Limits(Timer),
    /// The timer of the runtime.
    Tokio,
}

impl Clock {
    /// Returns hyper's builder for connections that wait at most `limit` for the header of a
    /// request. As the header may be that of the next request, this closes idle connections as
    /// well.
    pub(crate) fn connections(&self, limit: Duration) -> http1::Builder {
        let mut builder = http1::Builder::new();
        match self {
            Self::Ours(timer) | Self::Limits(timer) => builder.timer(HyperTimer::new(timer.clone())),
            Self::Tokio => builder.timer(TokioTimer::new()),
        };
        builder.header_read_timeout(limit);
        builder
    }

    /// Returns the output of `future` if it is ready within `limit`. Otherwise drops the future.
    pub(crate) async fn timeout<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        match self {
            Self::Ours(timer) | Self::Limits(timer) => timer.timeout(limit, future).await.ok(),
            Self::Tokio => tokio::time::timeout(limit, future).await.ok(),
        }
    }

    /// Returns the number of pending timeouts and of all so far, or `None` for tokio, which does
    /// not report them.
    pub(crate) fn counts(&self) -> Option<(usize, u64)> {
        match self {
            Self::Ours(timer) | Self::Limits(timer) => Some((timer.pending_timeouts(), timer.stats().scheduled)),
            Self::Tokio => None,
        }
    }
}
