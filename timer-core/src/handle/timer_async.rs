//! The methods of [`Timer`] that return futures.

use super::timer::Timer;
use crate::context::{deadline_after, deadline_at};
use crate::future::{Interval, Sleep, TimeoutFuture};
use crate::time::Deadline;
use std::time::{Duration, Instant};

impl Timer {
    /// A future that is ready `delay` from now, which is the instant of this call: never earlier,
    /// and at most a tick later but for what the machine and the executor add. On any executor; see
    /// [`future`](crate::future).
    ///
    /// Zero is ready at the first poll. A delay beyond the range of the clock never comes. Made and
    /// dropped unpolled it touches nothing that is shared (but that the timer's first future starts
    /// the worker).
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
    /// timer.sleep(Duration::from_millis(2)).await?;
    /// assert!(before.elapsed() >= Duration::from_millis(2));
    /// # Ok::<(), timer_core::RejectReason>(())
    /// # }).unwrap();
    /// ```
    #[doc(alias = "delay")]
    #[inline]
    pub fn sleep(&self, delay: Duration) -> Sleep {
        self.sleep_to(deadline_after(self.engine().context.now(), delay))
    }

    /// A future that is ready at `deadline`, or at its first poll if that is past. Otherwise as
    /// [`sleep`](Self::sleep).
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
    /// timer.sleep_until(deadline).await?;
    /// assert!(Instant::now() >= deadline);
    /// # Ok::<(), timer_core::RejectReason>(())
    /// # }).unwrap();
    /// ```
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        self.sleep_to(deadline_at(self.engine().context.now(), deadline))
    }

    /// Gives `future` `delay` from now to be ready: then its output is `Ok`, and otherwise
    /// [`TimeoutError::Elapsed`](crate::TimeoutError::Elapsed).
    ///
    /// The inner future is polled first, also when time is up; only if it waits is the deadline
    /// registered.
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
    /// assert!(late.unwrap_err().is_elapsed());
    /// # });
    /// ```
    #[doc(alias = "orTimeout")]
    #[inline]
    pub fn timeout<F: IntoFuture>(&self, delay: Duration, future: F) -> TimeoutFuture<F::IntoFuture> {
        TimeoutFuture::new(future.into_future(), self.sleep(delay))
    }

    /// As [`timeout`](Self::timeout), until an instant.
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

    /// Ticks every `period`, for the first time at once. Ticks that were missed are skipped, unless
    /// [`with_missed_runs`](Interval::with_missed_runs) says otherwise. A period of zero: each tick says
    /// [`RejectReason::ZeroPeriod`](crate::RejectReason::ZeroPeriod).
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
    /// let first = ticks.tick().await?;
    /// assert_eq!(ticks.tick().await? - first, Duration::from_millis(1));
    /// # Ok::<(), timer_core::RejectReason>(())
    /// # }).unwrap();
    /// ```
    pub fn interval(&self, period: Duration) -> Interval {
        Interval::new(self.sleep(Duration::ZERO), period)
    }

    /// Ticks every `period`, for the first time at `start`. Otherwise as [`interval`](Self::interval).
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
    /// assert_eq!(ticks.tick().await?, start);
    /// # Ok::<(), timer_core::RejectReason>(())
    /// # }).unwrap();
    /// ```
    pub fn interval_at(&self, start: Instant, period: Duration) -> Interval {
        Interval::new(self.sleep_until(start), period)
    }

    #[inline]
    fn sleep_to(&self, deadline: Deadline) -> Sleep {
        let engine = self.engine();
        // The poll that needs a worker reports a refusal.
        let started = self.start().is_ok();
        Sleep::new(engine.block_id(), started, deadline)
    }
}
