//! The methods of [`Timer`] that return futures.

use super::{Interval, Sleep, TimeoutFuture};
use crate::clock;
use crate::deadline::Deadline;
use crate::handle::Timer;
use std::time::{Duration, Instant};

impl Timer {
    /// Returns a future that is ready `delay` after this call. It works on any async runtime, see
    /// [`future`](crate::future).
    ///
    /// The future is never ready early. Its task is woken within one tick after the deadline, plus
    /// the time by which the system delays the worker. With a delay of zero the future is ready at
    /// its first poll. A delay beyond the range of the clock never elapses.
    ///
    /// The first future of a timer starts the worker. Apart from that, a future that is dropped
    /// before its first poll touches no shared data. If the timer refuses the deadline, the future
    /// [moves to another timer](crate::future#refusals).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use timer_core::Timer;
    ///
    /// # futures::executor::block_on(async {
    /// let timer = Timer::new();
    /// let before = Instant::now();
    /// timer.sleep(Duration::from_millis(2)).await;
    /// assert!(before.elapsed() >= Duration::from_millis(2));
    /// # });
    /// ```
    #[doc(alias = "delay")]
    #[inline]
    pub fn sleep(&self, delay: Duration) -> Sleep {
        self.sleep_to(Deadline::after(self.engine.context.now(), delay))
    }

    /// Returns a future that is ready at `deadline`, or at its first poll if that is past.
    /// Otherwise the same as [`sleep`](Self::sleep).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use timer_core::Timer;
    ///
    /// # futures::executor::block_on(async {
    /// let timer = Timer::new();
    /// let deadline = Instant::now() + Duration::from_millis(2);
    /// timer.sleep_until(deadline).await;
    /// assert!(Instant::now() >= deadline);
    /// # });
    /// ```
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        self.sleep_to(Deadline::at(|| self.engine.context.now(), clock::nanos_of(deadline)))
    }

    /// Limits `future` to `delay` from now. The returned future yields `Ok` with the output of
    /// `future`, or [`Elapsed`](crate::Elapsed) if the deadline comes first.
    ///
    /// Each poll polls the inner future first, even if the deadline has come. The deadline is
    /// registered only if the inner future has to wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::future::pending;
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// # futures::executor::block_on(async {
    /// let timer = Timer::new();
    /// assert_eq!(timer.timeout(Duration::from_secs(5), async { 7 }).await, Ok(7));
    /// let late = timer.timeout(Duration::from_millis(2), pending::<()>()).await;
    /// assert_eq!(late.unwrap_err().to_string(), "deadline has elapsed");
    /// # });
    /// ```
    #[doc(alias = "orTimeout")]
    #[inline]
    pub fn timeout<F: IntoFuture>(&self, delay: Duration, future: F) -> TimeoutFuture<F::IntoFuture> {
        TimeoutFuture::new(future.into_future(), self.sleep(delay))
    }

    /// Limits `future` to an instant. Otherwise the same as [`timeout`](Self::timeout).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use timer_core::Timer;
    ///
    /// # futures::executor::block_on(async {
    /// let timer = Timer::new();
    /// let deadline = Instant::now() + Duration::from_secs(5);
    /// assert_eq!(timer.timeout_at(deadline, async { 7 }).await, Ok(7));
    /// # });
    /// ```
    pub fn timeout_at<F: IntoFuture>(&self, deadline: Instant, future: F) -> TimeoutFuture<F::IntoFuture> {
        TimeoutFuture::new(future.into_future(), self.sleep_until(deadline))
    }

    /// Returns an interval that ticks once per `period`, for the first time at once. A period of
    /// zero is one millisecond.
    ///
    /// Missed ticks take place one right after the other, unless
    /// [`set_missed_tick_behavior`](Interval::set_missed_tick_behavior) chooses otherwise.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// # futures::executor::block_on(async {
    /// let timer = Timer::new();
    /// let mut ticks = timer.interval(Duration::from_millis(1));
    /// let first = ticks.tick().await;
    /// let second = ticks.tick().await;
    /// assert!(second >= first + Duration::from_millis(1));
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
    /// use std::time::{Duration, Instant};
    /// use timer_core::Timer;
    ///
    /// # futures::executor::block_on(async {
    /// let timer = Timer::new();
    /// let start = Instant::now() + Duration::from_millis(2);
    /// let mut ticks = timer.interval_at(start, Duration::from_secs(1));
    /// assert_eq!(ticks.tick().await, start);
    /// # });
    /// ```
    pub fn interval_at(&self, start: Instant, period: Duration) -> Interval {
        Interval::new(self.sleep_until(start), period)
    }

    #[inline]
    fn sleep_to(&self, deadline: Deadline) -> Sleep {
        let engine = &self.engine;
        // If the worker cannot start, the poll that needs it tries again.
        let started = self.ensure_started().is_ok();
        Sleep::new(engine.lease.block.id, started, self.has_virtual_time(), deadline)
    }
}
