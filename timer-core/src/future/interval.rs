//! Ticks at a fixed rate, with the rules of `tokio::time::Interval`.

use super::Sleep;
use crate::config::MissedTickBehavior;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

/// The period that stands for zero, at which tokio panics.
const MIN_PERIOD: Duration = Duration::from_millis(1);

/// A sequence of ticks at a fixed rate, made by [`Timer::interval`](crate::Timer::interval) and
/// [`Timer::interval_at`](crate::Timer::interval_at).
///
/// A tick takes place when it is awaited. A tick for which no task waits costs nothing. A tick is
/// missed if it is polled more than 5 ms, or more than one tick of a coarser wheel, after its
/// deadline. A period that is shorter than the tick of the wheel therefore loses no ticks. Those
/// that fall into one tick of the wheel take place one after the other at its end.
///
/// # Examples
///
/// ```
/// # use timer_core::time::{Duration, MissedTickBehavior, interval};
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
    /// # use timer_core::time::{Duration, MissedTickBehavior, interval};
    /// interval(Duration::from_secs(1)).set_missed_tick_behavior(MissedTickBehavior::Skip);
    /// ```
    #[doc(alias = "with_missed_runs")]
    pub fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.behavior = behavior;
    }

    /// Returns the treatment of missed ticks.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::time::{Duration, MissedTickBehavior, interval};
    /// let ticks = interval(Duration::from_secs(1));
    /// assert_eq!(ticks.missed_tick_behavior(), MissedTickBehavior::Burst);
    /// ```
    pub fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.behavior
    }

    /// Waits for the next tick and returns the instant at which it was due.
    ///
    /// Dropping the future before it is ready loses no tick.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::time::{Duration, Instant, interval};
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
    /// # use timer_core::time::{Duration, interval};
    /// let mut cx = Context::from_waker(Waker::noop());
    /// assert!(interval(Duration::from_secs(1)).poll_tick(&mut cx).is_ready());
    /// ```
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        ready!(Pin::new(&mut self.sleep).poll(cx));
        Poll::Ready(self.sleep.next_tick(self.period, self.behavior))
    }

    /// Returns the time from tick to tick.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::time::{Duration, interval};
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
    /// # use timer_core::time::{Duration, interval};
    /// interval(Duration::from_secs(1)).reset();
    /// ```
    pub fn reset(&mut self) {
        self.sleep.reset_after(self.period);
    }

    /// Moves the next tick to the current time. The later ticks follow it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::time::{Duration, interval};
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
    /// # use timer_core::time::{Duration, interval};
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
    /// # use timer_core::time::{Duration, Instant, interval};
    /// interval(Duration::from_secs(1)).reset_at(Instant::now() + Duration::from_secs(5));
    /// ```
    pub fn reset_at(&mut self, deadline: Instant) {
        self.sleep.reset_at(deadline);
    }
}
