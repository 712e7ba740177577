//! The timer that hyper's builders take.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::time::{Duration, Instant};
use timer_core::{Sleep, Timer};

/// A [`hyper::rt::Timer`] on a timer of this workspace.
///
/// HTTP/2 keep-alive moves one sleep again and again. Here, a move to a later deadline costs one
/// reading of the clock and one atomic operation, because the entry of the timer stays where it is.
/// HTTP/1 makes a new sleep for the header of each request, and drops it when the header is
/// complete. That costs a schedule and a cancel per request.
///
/// # Examples
///
/// A client whose pool closes idle connections:
///
/// ```
/// use hyper_util::client::legacy::Client;
/// use hyper_util::rt::TokioExecutor;
/// use std::time::Duration;
/// use timer_adapters::hyper::HyperTimer;
///
/// let client = Client::builder(TokioExecutor::new())
///     .pool_timer(HyperTimer::global())
///     .pool_idle_timeout(Duration::from_secs(30))
///     .build_http::<http_body_util::Empty<&[u8]>>();
/// ```
#[derive(Debug, Clone)]
pub struct HyperTimer {
    timer: Timer,
}

impl HyperTimer {
    /// Creates an adapter for `timer`.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_adapters::hyper::HyperTimer;
    /// use timer_core::Timer;
    ///
    /// let timer = HyperTimer::new(Timer::new());
    /// ```
    pub fn new(timer: Timer) -> Self {
        Self { timer }
    }

    /// Creates an adapter for the timer that [`timer_core::time`] uses.
    ///
    /// # Examples
    ///
    /// ```
    /// let timer = timer_adapters::hyper::HyperTimer::global();
    /// ```
    pub fn global() -> Self {
        Self::new(Timer::current())
    }
}

impl ::hyper::rt::Timer for HyperTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn ::hyper::rt::Sleep>> {
        Box::pin(HyperSleep(self.timer.sleep(duration)))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn ::hyper::rt::Sleep>> {
        Box::pin(HyperSleep(self.timer.sleep_until(deadline)))
    }

    fn now(&self) -> Instant {
        self.timer.now()
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn ::hyper::rt::Sleep>>, new_deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<HyperSleep>() {
            Some(mut ours) => ours.0.reset_at(new_deadline),
            None => *sleep = self.sleep_until(new_deadline),
        }
    }
}

/// A sleep with the trait that hyper requires.
struct HyperSleep(Sleep);

impl ::hyper::rt::Sleep for HyperSleep {}

impl Future for HyperSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx)
    }
}
