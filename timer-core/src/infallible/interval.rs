//! Ticks at a fixed rate, with the rules of `tokio::time::Interval`.

use super::Sleep;
use crate::config::MissedRuns;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

/// The period that stands for zero, at which tokio panics.
const MIN_PERIOD: Duration = Duration::from_millis(1);

/// The treatment of missed ticks by an [`Interval`].
///
/// A tick is missed if it is polled more than 5 ms, or more than one tick of a coarser wheel, after
/// its deadline. Any other tick is followed by one that is due exactly one period after it,
/// whatever the behavior.
///
/// # Examples
///
/// ```
/// # use timer_core::global::{Duration, MissedTickBehavior, interval};
/// let mut ticks = interval(Duration::from_secs(1));
/// assert_eq!(ticks.missed_tick_behavior(), MissedTickBehavior::Burst);
/// ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissedTickBehavior {
    /// The missed ticks take place one right after the other, until the interval has caught up.
    #[default]
    Burst,
    /// The next tick is due one period after the poll that was late, so the phase moves.
    Delay,
    /// The next tick is due at the next multiple of the period after the first tick.
    Skip,
}

impl From<MissedRuns> for MissedTickBehavior {
    fn from(missed: MissedRuns) -> Self {
        match missed {
            MissedRuns::Burst => Self::Burst,
            MissedRuns::Delay => Self::Delay,
            MissedRuns::Skip => Self::Skip,
        }
    }
}

impl From<MissedTickBehavior> for MissedRuns {
    fn from(behavior: MissedTickBehavior) -> Self {
        match behavior {
            MissedTickBehavior::Burst => Self::Burst,
            MissedTickBehavior::Delay => Self::Delay,
            MissedTickBehavior::Skip => Self::Skip,
        }
    }
}

/// A sequence of ticks at a fixed rate without errors, made by
/// [`global::interval`](crate::global::interval) and
/// [`InfallibleTimer::interval`](crate::InfallibleTimer::interval).
///
/// A tick takes place when it is awaited. A tick for which no task waits costs nothing.
///
/// # Examples
///
/// ```
/// # use timer_core::global::{Duration, MissedTickBehavior, interval};
/// # futures::executor::block_on(async {
/// let mut ticks = interval(Duration::from_millis(1));
/// ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
/// ticks.tick().await;
/// # });
/// ```
#[derive(Debug)]
pub struct Interval {
    /// Ready at the next tick.
    sleep: Sleep,
    period: Duration,
    behavior: MissedTickBehavior,
}

impl Interval {
    pub(crate) fn new(sleep: Sleep, period: Duration) -> Self {
        let period = if period.is_zero() { MIN_PERIOD } else { period };
        Self { sleep, period, behavior: MissedTickBehavior::default() }
    }

    /// Sets the treatment of missed ticks. The default is
    /// [`Burst`](MissedTickBehavior::Burst).
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, MissedTickBehavior, interval};
    /// interval(Duration::from_secs(1)).set_missed_tick_behavior(MissedTickBehavior::Skip);
    /// ```
    pub fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.behavior = behavior;
    }

    /// Returns the treatment of missed ticks.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, MissedTickBehavior, interval};
    /// let ticks = interval(Duration::from_secs(1));
    /// assert_eq!(ticks.missed_tick_behavior(), MissedTickBehavior::Burst);
    /// ```
    pub fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.behavior
    }

    /// Sets the treatment of missed ticks and returns the interval.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, MissedTickBehavior, interval};
    /// let ticks = interval(Duration::from_secs(1)).with_missed_runs(MissedTickBehavior::Skip);
    /// ```
    #[must_use]
    pub fn with_missed_runs(mut self, missed_runs: impl Into<MissedTickBehavior>) -> Self {
        self.behavior = missed_runs.into();
        self
    }

    /// Waits for the next tick and returns the instant at which it was due.
    ///
    /// Dropping the future before it is ready loses no tick.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, Instant, interval};
    /// # futures::executor::block_on(async {
    /// assert!(interval(Duration::from_secs(1)).tick().await <= Instant::now());
    /// # });
    /// ```
    pub async fn tick(&mut self) -> Instant {
        poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// Polls for the next tick and returns the instant at which it was due.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::task::{Context, Waker};
    /// # use timer_core::global::{Duration, interval};
    /// let mut cx = Context::from_waker(Waker::noop());
    /// assert!(interval(Duration::from_secs(1)).poll_tick(&mut cx).is_ready());
    /// ```
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        ready!(Pin::new(&mut self.sleep).poll(cx));
        Poll::Ready(self.sleep.inner.next_tick(self.period, self.behavior.into()))
    }

    /// Returns the time from tick to tick.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, interval};
    /// assert_eq!(interval(Duration::ZERO).period(), Duration::from_millis(1));
    /// ```
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Moves the next tick to one period from now. The later ticks follow it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, interval};
    /// interval(Duration::from_secs(1)).reset();
    /// ```
    pub fn reset(&mut self) {
        self.sleep.reset_after(self.period);
    }

    /// Moves the next tick to the present. The later ticks follow it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, interval};
    /// interval(Duration::from_secs(1)).reset_immediately();
    /// ```
    pub fn reset_immediately(&mut self) {
        self.sleep.reset_after(Duration::ZERO);
    }

    /// Moves the next tick to `delay` from now. The later ticks follow it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, interval};
    /// interval(Duration::from_secs(1)).reset_after(Duration::from_secs(5));
    /// ```
    pub fn reset_after(&mut self, delay: Duration) {
        self.sleep.reset_after(delay);
    }

    /// Moves the next tick to `deadline`, which may have passed. The later ticks follow it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, Instant, interval};
    /// interval(Duration::from_secs(1)).reset_at(Instant::now() + Duration::from_secs(5));
    /// ```
    pub fn reset_at(&mut self, deadline: Instant) {
        self.sleep.reset_at(deadline);
    }
}
