//! Ticks of a fixed rate.

use super::Sleep;
use crate::clock;
use crate::config::MissedRuns;
use crate::entry::{Period, period_nanos};
use crate::error::RejectReason;
use crate::time::{Deadline, Nanos};
use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

/// Ticks at a fixed rate: [`Timer::interval`](crate::Timer::interval), [`Timer::interval_at`](crate::Timer::interval_at).
///
/// A tick takes place when it is awaited; one that nothing waits for costs nothing. A tick is
/// missed if it is awaited more than 5 ms after its deadline. Missed ticks are skipped and the
/// phase is kept, unless [`with_missed_runs`](Self::with_missed_runs) says otherwise.
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
pub struct Interval {
    /// To the next tick.
    sleep: Sleep,
    period: Duration,
    missed_runs: MissedRuns,
}

impl Interval {
    pub(crate) fn new(sleep: Sleep, period: Duration) -> Self {
        Self { sleep, period, missed_runs: MissedRuns::default() }
    }

    /// What it does about missed ticks. Default: [`MissedRuns::Skip`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{MissedRuns, Timer};
    /// let ticks = Timer::new().interval(Duration::from_secs(1)).with_missed_runs(MissedRuns::Burst);
    /// ```
    #[must_use]
    pub fn with_missed_runs(mut self, missed_runs: MissedRuns) -> Self {
        self.missed_runs = missed_runs;
        self
    }

    /// Waits for the next tick and returns when it was due. Dropped before it is ready, it loses no
    /// tick.
    ///
    /// # Errors
    ///
    /// [`RejectReason::ZeroPeriod`] for a period of zero; else as for [`Sleep`].
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

    /// [`tick`](Self::tick), for those who write their own futures.
    ///
    /// # Errors
    ///
    /// As for `tick`.
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
        let (due, now) = (self.sleep.due(), self.sleep.now());
        self.sleep.set(Deadline::up(next_tick(due, now, self.period, self.missed_runs)), now);
        Poll::Ready(Ok(clock::instant(due)))
    }

    /// From tick to tick.
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

    /// The next tick is one period from now, and the others follow it.
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

    /// The next tick is now, and the others follow it.
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

    /// The next tick is `delay` from now, and the others follow it.
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

    /// The next tick is at `deadline`, or now if that is past, and the others follow it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # use timer_core::Timer;
    /// Timer::new().interval(Duration::from_secs(30)).reset_at(Instant::now() + Duration::from_secs(5));
    /// ```
    pub fn reset_at(&mut self, deadline: Instant) {
        self.sleep.reset_at(deadline);
    }
}

/// How late a tick may be without being missed, as in tokio. Executors poll some milliseconds late
/// under load, and a short interval would lose its rate otherwise.
const TOLERANCE: Nanos = 5_000_000;

/// Returns the tick after the one that was due at `due` and was polled at `now`.
pub(crate) fn next_tick(due: Nanos, now: Nanos, period: Duration, missed: MissedRuns) -> Nanos {
    let period = period_nanos(period).unwrap_or(1);
    if now <= due.saturating_add(TOLERANCE) {
        return due.saturating_add(period);
    }
    Period::Rate(period).next(due, now, 0, missed)
}

impl fmt::Debug for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interval")
            .field("next", &self.sleep.deadline())
            .field("period", &self.period)
            .field("missed_runs", &self.missed_runs)
            .finish_non_exhaustive()
    }
}
