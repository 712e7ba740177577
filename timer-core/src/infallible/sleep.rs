//! A sleep that changes its timer when it is refused.

use crate::error::RejectReason;
use crate::future;
use crate::handle::{Timer, fallback};
use core::pin::Pin;
use core::task::{Context, Poll};
use std::time::{Duration, Instant};

/// A future that is ready at its deadline and has no error, made by
/// [`global::sleep`](crate::global::sleep) and
/// [`InfallibleTimer::sleep`](crate::InfallibleTimer::sleep).
///
/// The future is [`Unpin`] and can move between tasks and threads. Dropping it cancels it. It stays
/// ready if it is polled again. On virtual time this holds until its timer is stopped.
///
/// # Examples
///
/// ```
/// # use timer_core::global::{Duration, sleep};
/// # futures::executor::block_on(async {
/// let mut idle = sleep(Duration::from_millis(1));
/// (&mut idle).await;
/// assert!(idle.is_elapsed());
/// # });
/// ```
#[must_use = "futures do nothing unless polled"]
#[derive(Debug)]
pub struct Sleep {
    pub(crate) inner: future::Sleep,
    /// `true` if the timer is manual, so that no other timer can take its place.
    is_virtual: bool,
}

impl Sleep {
    #[inline]
    pub(crate) fn new(timer: &Timer, inner: future::Sleep) -> Self {
        Self { inner, is_virtual: timer.has_virtual_time() }
    }

    /// Moves the deadline to `deadline`, whether or not the future was ready before.
    ///
    /// The task that waits for the future stays the one that is woken. If the future was ready,
    /// poll it again. While it waits, a later deadline costs one reading of the clock and one
    /// atomic operation.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::pin::pin;
    /// # use timer_core::global::{Duration, Instant, sleep};
    /// let mut idle = pin!(sleep(Duration::from_secs(30)));
    /// let deadline = Instant::now() + Duration::from_secs(60);
    /// idle.as_mut().reset(deadline);
    /// assert_eq!(idle.deadline(), deadline);
    /// ```
    #[inline]
    pub fn reset(mut self: Pin<&mut Self>, deadline: Instant) {
        self.inner.reset_at(deadline);
    }

    /// Moves the deadline to `deadline`, as [`reset`](Self::reset) does, without a pin.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, Instant, sleep};
    /// sleep(Duration::from_secs(30)).reset_at(Instant::now());
    /// ```
    #[inline]
    pub fn reset_at(&mut self, deadline: Instant) {
        self.inner.reset_at(deadline);
    }

    /// Moves the deadline to `delay` from now on the clock of the timer.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, sleep};
    /// sleep(Duration::from_secs(30)).reset_after(Duration::from_secs(60));
    /// ```
    #[inline]
    pub fn reset_after(&mut self, delay: Duration) {
        self.inner.reset(delay);
    }

    /// Returns the deadline, to the nanosecond for the first 18 years of the clock.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, Instant, sleep};
    /// assert!(sleep(Duration::from_secs(30)).deadline() > Instant::now());
    /// ```
    pub fn deadline(&self) -> Instant {
        self.inner.deadline()
    }

    /// Returns `true` if the deadline has come, whether or not the future has been polled.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, sleep};
    /// assert!(!sleep(Duration::from_secs(30)).is_elapsed());
    /// ```
    pub fn is_elapsed(&self) -> bool {
        self.inner.is_elapsed()
    }

    /// Registers the deadline with the fallback. If that refuses as well, the next poll tries
    /// again.
    #[cold]
    fn change_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_virtual {
            return Poll::Pending;
        }
        loop {
            let mut sleep = fallback().sleep_until(self.deadline());
            return match Pin::new(&mut sleep).poll(cx) {
                // The timer of the process was stopped meanwhile, so the next fallback is another.
                Poll::Ready(Err(RejectReason::Stopped)) => continue,
                Poll::Ready(Err(_)) => Poll::Pending,
                Poll::Ready(Ok(())) => Poll::Ready(()),
                Poll::Pending => {
                    self.inner = sleep;
                    Poll::Pending
                }
            };
        }
    }
}

impl Future for Sleep {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match Pin::new(&mut self.inner).poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(())) => Poll::Ready(()),
            Poll::Ready(Err(_)) => self.change_timer(cx),
        }
    }
}
