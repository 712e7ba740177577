//! Futures that cannot be refused: [`InfallibleTimer`] and its [`Sleep`], [`Timeout`] and
//! [`Interval`].
//!
//! A [`Timer`] may refuse a timeout, because it is stopped, its bound is reached, or the system
//! gives no thread. Libraries that accept a timer from outside, such as hyper, quinn or tower, have
//! no place for that error. The futures here handle it themselves. A future that its timer refuses
//! registers the same deadline with the timer of the process ([`Timer::global`]). If that timer is
//! manual, bounded or stopped, the future goes to an unbounded timer that the crate keeps for this
//! purpose. A future of a manual timer stays pending instead, because no other timer knows its
//! time.
//!
//! No future here is ready before its deadline, so a caller that loops on one cannot spin. If the
//! system refuses a thread to every timer, or if no shard is left for any, a future is ready at the
//! first poll after its deadline, but nothing wakes its task for that poll. A program that calls
//! [`Timer::start`] at its start finds out then.

mod interval;
mod sleep;
mod timeout;

pub use interval::{Interval, MissedTickBehavior};
pub use sleep::Sleep;
pub use timeout::{Elapsed, Timeout};

use crate::handle::{Timer, with_current};
use std::time::{Duration, Instant};

/// A handle to a [`Timer`] whose futures have no error, made by [`Timer::infallible`].
///
/// The handle keeps the timer alive. Its futures do not. They move to another timer if this one is
/// stopped.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::Timer;
///
/// # futures::executor::block_on(async {
/// let timer = Timer::new().infallible();
/// timer.sleep(Duration::from_millis(2)).await;
/// assert_eq!(timer.timeout(Duration::from_secs(5), async { 7 }).await, Ok(7));
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct InfallibleTimer {
    timer: Timer,
}

impl Timer {
    /// Returns a handle to this timer whose futures cannot be refused.
    ///
    /// See [`infallible`](crate::infallible) for the way in which they handle a refusal.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// # futures::executor::block_on(async {
    /// let timer = Timer::new();
    /// let sleep = timer.infallible().sleep(Duration::from_millis(2));
    /// timer.stop()?;
    /// sleep.await; // The timer of the process took it over.
    /// # Ok::<(), timer_core::StopError>(())
    /// # }).unwrap();
    /// ```
    pub fn infallible(&self) -> InfallibleTimer {
        InfallibleTimer { timer: self.clone() }
    }
}

impl InfallibleTimer {
    /// Returns a handle to the timer that the functions of [`global`](crate::global) use.
    ///
    /// This is the timer that the calling thread has [entered](crate::global::enter), or
    /// [`Timer::global`] if there is none.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_core::InfallibleTimer;
    /// assert_eq!(InfallibleTimer::global().timer().name(), "global");
    /// ```
    pub fn global() -> InfallibleTimer {
        with_current(Timer::infallible)
    }

    /// Returns the timer.
    ///
    /// # Examples
    ///
    /// ```
    /// let timer = timer_core::Timer::new().infallible();
    /// assert_eq!(timer.timer().pending_timeouts(), 0);
    /// ```
    pub fn timer(&self) -> &Timer {
        &self.timer
    }

    /// Returns the present of the timer, as [`Timer::now`] does.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// let timer = timer.infallible();
    /// let before = timer.now();
    /// driver.advance(Duration::from_secs(5));
    /// assert_eq!(timer.now() - before, Duration::from_secs(5));
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn now(&self) -> Instant {
        self.timer.now()
    }

    /// Returns a future that is ready `delay` from now. Otherwise the same as [`Timer::sleep`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// # futures::executor::block_on(async {
    /// Timer::new().infallible().sleep(Duration::from_millis(2)).await;
    /// # });
    /// ```
    #[inline]
    pub fn sleep(&self, delay: Duration) -> Sleep {
        Sleep::new(&self.timer, self.timer.sleep(delay))
    }

    /// Returns a future that is ready at `deadline`, or at its first poll if that has passed.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use timer_core::Timer;
    ///
    /// # futures::executor::block_on(async {
    /// let deadline = Instant::now() + Duration::from_millis(2);
    /// Timer::new().infallible().sleep_until(deadline).await;
    /// assert!(Instant::now() >= deadline);
    /// # });
    /// ```
    #[inline]
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        Sleep::new(&self.timer, self.timer.sleep_until(deadline))
    }

    /// Limits `future` to `delay` from now. The returned future yields `Ok` with the output of
    /// `future`, or [`Elapsed`] if the deadline comes first.
    ///
    /// Each poll polls the inner future first, even if the deadline has passed.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::future::pending;
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// # futures::executor::block_on(async {
    /// let timer = Timer::new().infallible();
    /// let late = timer.timeout(Duration::from_millis(2), pending::<()>()).await;
    /// assert_eq!(late.unwrap_err().to_string(), "deadline has elapsed");
    /// # });
    /// ```
    #[inline]
    pub fn timeout<F: IntoFuture>(&self, delay: Duration, future: F) -> Timeout<F::IntoFuture> {
        Timeout::new(future.into_future(), self.sleep(delay))
    }

    /// Limits `future` to `deadline`. Otherwise the same as [`timeout`](Self::timeout).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use timer_core::Timer;
    ///
    /// # futures::executor::block_on(async {
    /// let deadline = Instant::now() + Duration::from_secs(5);
    /// assert_eq!(Timer::new().infallible().timeout_at(deadline, async { 7 }).await, Ok(7));
    /// # });
    /// ```
    #[inline]
    pub fn timeout_at<F: IntoFuture>(&self, deadline: Instant, future: F) -> Timeout<F::IntoFuture> {
        Timeout::new(future.into_future(), self.sleep_until(deadline))
    }

    /// Returns an interval that ticks once per `period`, for the first time at once. A period of
    /// zero is one millisecond.
    ///
    /// Missed ticks take place one right after the other ([`Burst`](MissedTickBehavior::Burst))
    /// unless [`set_missed_tick_behavior`](Interval::set_missed_tick_behavior) chooses otherwise.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// # futures::executor::block_on(async {
    /// let timer = Timer::new().infallible();
    /// let mut ticks = timer.interval(Duration::from_millis(1));
    /// let first = ticks.tick().await;
    /// assert_eq!(ticks.tick().await - first, Duration::from_millis(1));
    /// # });
    /// ```
    pub fn interval(&self, period: Duration) -> Interval {
        Interval::new(self.sleep(Duration::ZERO), period)
    }

    /// Returns an interval that ticks once per `period`, for the first time at `start`. Otherwise
    /// the same as [`interval`](Self::interval).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// # futures::executor::block_on(async {
    /// let timer = Timer::new().infallible();
    /// let start = timer.now() + Duration::from_millis(2);
    /// assert_eq!(timer.interval_at(start, Duration::from_secs(1)).tick().await, start);
    /// # });
    /// ```
    pub fn interval_at(&self, start: Instant, period: Duration) -> Interval {
        Interval::new(self.sleep_until(start), period)
    }
}
