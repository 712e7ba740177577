//! The two timers that this program can take its deadlines from, behind one interface.

use std::future::Future;
use std::time::Duration;

use timer_core::{Elapsed, Timer};

/// The timer of the deadlines.
#[derive(Clone)]
pub(crate) enum Clock {
    /// The timer of this library.
    Ours(Timer),
    /// The timer of the runtime.
    Tokio,
}

impl Clock {
    /// Returns the output of `future` if it is ready within `delay`. Otherwise drops the future.
    pub(crate) async fn with_deadline<F: Future>(&self, delay: Duration, future: F) -> Result<F::Output, Elapsed> {
        match self {
            Self::Ours(timer) => timer.timeout(delay, future).await,
            Self::Tokio => tokio::time::timeout(delay, future).await.map_err(|_| Elapsed::new()),
        }
    }

    /// Waits for `delay`.
    pub(crate) async fn sleep(&self, delay: Duration) {
        match self {
            Self::Ours(timer) => timer.sleep(delay).await,
            Self::Tokio => tokio::time::sleep(delay).await,
        }
    }

    /// Returns the number of pending deadlines, or `None` for tokio, which does not report it.
    pub(crate) fn pending(&self) -> Option<usize> {
        match self {
            Self::Ours(timer) => Some(timer.pending_timeouts()),
            Self::Tokio => None,
        }
    }
}
