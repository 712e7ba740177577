//! Ticks at a fixed rate.

use super::Sleep;
use crate::config::MissedRuns;
use crate::error::RejectReason;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

/// A sequence of ticks at a fixed rate, made by [`Timer::interval`](crate::Timer::interval) and
/// [`Timer::interval_at`](crate::Timer::interval_at).
///
/// A tick takes place when it is awaited. A tick for which no task waits costs nothing. A tick is
/// missed if it is polled more than 5 ms, or more than one tick of a coarser wheel, after its
/// deadline. Missed ticks are skipped and the phase is kept, unless
/// [`with_missed_runs`](Self::with_missed_runs) chooses otherwise. A period that is shorter than
/// the tick of the wheel therefore loses no ticks. Those that fall into one tick of the wheel take
/// place one after the other at its end.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::Timer;
///
/// # futures::executor::block_on(async {
/// let timer = Timer::new();
/// let mut heartbeat = timer.interval(Duration::from_millis(1));
/// for _ in 0..3 {
///     let due = heartbeat.tick().await?;
///     println!("ping, late by {:?}", due.elapsed());
/// }
/// # Ok::<(), timer_core::RejectReason>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Interval {
    /// Ready at the next tick.
    sleep: Sleep,
    period: Duration,
    missed_runs: MissedRuns,
}

impl Interval {
    pub(crate) fn new(sleep: Sleep, period: Duration) -> Self {
        Self { sleep, period, missed_runs: MissedRuns::default() }
    }

    /// Sets the treatment of missed ticks and returns the interval. The default is
    /// [`MissedRuns::Skip`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{MissedRuns, Timer};
    /// let second = Duration::from_secs(1);
    /// let ticks = Timer::new().interval(second).with_missed_runs(MissedRuns::Burst);
    /// ```
    #[must_use]
    pub fn with_missed_runs(mut self, missed_runs: MissedRuns) -> Self {
        self.missed_runs = missed_runs;
        self
    }

    /// Waits for the next tick and returns the instant at which it was due.
    ///
    /// Dropping the returned future before it is ready loses no tick.
    ///
    /// # Errors
    ///
    /// Returns [`RejectReason::ZeroPeriod`] if the period is zero, and otherwise the errors of
    /// [`Sleep`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{RejectReason, Timer};
    /// # futures::executor::block_on(async {
    /// let timer = Timer::new();
    /// assert!(timer.interval(Duration::from_secs(1)).tick().await.is_ok());
    /// assert_eq!(timer.interval(Duration::ZERO).tick().await, Err(RejectReason::ZeroPeriod));
    /// # });
    /// ```
    pub async fn tick(&mut self) -> Result<Instant, RejectReason> {
        poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// Polls for the next tick and returns the instant at which it was due.
    ///
    /// # Errors
    ///
    /// The same as for [`tick`](Self::tick).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::task::{Context, Waker};
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let timer = Timer::new();
    /// let mut ticks = timer.interval(Duration::from_secs(1));
    /// assert!(ticks.poll_tick(&mut Context::from_waker(Waker::noop())).is_ready());
    /// assert!(ticks.poll_tick(&mut Context::from_waker(Waker::noop())).is_pending());
    /// ```
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Result<Instant, RejectReason>> {
        if self.period.is_zero() {
            return Poll::Ready(Err(RejectReason::ZeroPeriod));
        }
        ready!(Pin::new(&mut self.sleep).poll(cx))?;
        Poll::Ready(Ok(self.sleep.next_tick(self.period, self.missed_runs)))
    }

    /// Returns the time from tick to tick.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// assert_eq!(Timer::new().interval(Duration::from_secs(1)).period(), Duration::from_secs(1));
    /// ```
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Moves the next tick to one period from now. The later ticks follow it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::task::{Context, Waker};
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// let mut cx = Context::from_waker(Waker::noop());
    /// let mut idle = timer.interval(Duration::from_secs(30));
    /// idle.reset();
    /// driver.advance(Duration::from_secs(29));
    /// assert!(idle.poll_tick(&mut cx).is_pending());
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn reset(&mut self) {
        self.sleep.reset(self.period);
    }

    /// Moves the next tick to the present. The later ticks follow it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// Timer::new().interval(Duration::from_secs(30)).reset_immediately();
    /// ```
    pub fn reset_immediately(&mut self) {
        self.sleep.reset(Duration::ZERO);
    }

    /// Moves the next tick to `delay` from now. The later ticks follow it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// Timer::new().interval(Duration::from_secs(30)).reset_after(Duration::from_secs(5));
    /// ```
    pub fn reset_after(&mut self, delay: Duration) {
        self.sleep.reset(delay);
    }

    /// Moves the next tick to `deadline`, which may be past. The later ticks follow it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # use timer_core::Timer;
    /// let start = Instant::now() + Duration::from_secs(5);
    /// Timer::new().interval(Duration::from_secs(30)).reset_at(start);
    /// ```
    pub fn reset_at(&mut self, deadline: Instant) {
        self.sleep.reset_at(deadline);
    }
}
