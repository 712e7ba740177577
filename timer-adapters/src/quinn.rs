//! The timer and the clock of QUIC endpoints.

use ::quinn::{AsyncTimer, AsyncUdpSocket, Runtime};
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io;
use std::sync::Arc;
use std::time::Instant;
use timer_core::{Sleep, Timer};

/// A [`quinn::Runtime`] with the timers and the clock of this workspace, and the sockets and tasks
/// of `R`.
///
/// A connection moves its timer with nearly every packet. Here, moving it to a later deadline costs
/// one reading of the clock and one atomic operation.
///
/// # Examples
///
/// ```no_run
/// use quinn::{Endpoint, EndpointConfig, TokioRuntime};
/// use std::net::UdpSocket;
/// use std::sync::Arc;
/// use timer_adapters::quinn::TimedRuntime;
/// use timer_core::Timer;
///
/// # async fn client() -> std::io::Result<()> {
/// let runtime = TimedRuntime::new(TokioRuntime, Timer::current());
/// let socket = UdpSocket::bind("127.0.0.1:0")?;
/// let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, Arc::new(runtime))?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct TimedRuntime<R> {
    runtime: R,
    timer: Timer,
}

impl<R> TimedRuntime<R> {
    /// Creates a runtime with the timers of `timer` and everything else of `runtime`.
    ///
    /// # Examples
    ///
    /// ```
    /// use quinn::TokioRuntime;
    /// use timer_adapters::quinn::TimedRuntime;
    /// use timer_core::Timer;
    ///
    /// let runtime = TimedRuntime::new(TokioRuntime, Timer::current());
    /// ```
    pub fn new(runtime: R, timer: Timer) -> Self {
        Self { runtime, timer }
    }
}

impl<R: Runtime> Runtime for TimedRuntime<R> {
    fn new_timer(&self, deadline: Instant) -> Pin<Box<dyn AsyncTimer>> {
        Box::pin(QuinnTimer(self.timer.sleep_until(deadline)))
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.runtime.spawn(future);
    }

    fn wrap_udp_socket(&self, socket: std::net::UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        self.runtime.wrap_udp_socket(socket)
    }

    fn now(&self) -> Instant {
        self.timer.now()
    }
}

/// A sleep with the trait that quinn requires.
struct QuinnTimer(Sleep);

impl AsyncTimer for QuinnTimer {
    fn reset(mut self: Pin<&mut Self>, deadline: Instant) {
        self.0.reset_at(deadline);
    }

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl fmt::Debug for QuinnTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
