//! Virtual time: the driver for tests, simulations and replays.

use crate::clock::Clock;
use crate::sync::yield_now;
use crate::time::{Nanos, after, duration};
use crate::turn::Turner;
use crate::unprocessed::Unprocessed;
use std::fmt;
use std::time::{Duration, Instant};

/// Moves the time of a timer built by [`build_manual`](crate::TimerBuilder::build_manual).
///
/// Time hops from due instant to due instant, so five years cost no more than what is due in them. With the default
/// executor tasks run on the thread that advances, in the order of their deadlines, the same way every time. Dropping the
/// driver stops the timer.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::Timer;
///
/// let (timer, mut driver) = Timer::builder().build_manual()?;
/// timer.new_timeout(Duration::from_secs(3600), |_| println!("an hour is over"))?;
/// assert_eq!(driver.next_expiry(), Some(Duration::from_secs(3600)));
/// assert_eq!(driver.advance(Duration::from_secs(7200)), 1);
/// assert_eq!(driver.elapsed(), Duration::from_secs(7200));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "MockTimer")]
#[doc(alias = "MockClock")]
pub struct ManualDriver {
    turner: Turner,
}

impl ManualDriver {
    pub(crate) fn new(turner: Turner) -> Self {
        Self { turner }
    }

    /// Moves time on by `by` and runs everything that comes due on the way, also what tasks schedule meanwhile; returns how
    /// many timeouts were handed over (a periodic one counts with each run). `Duration::ZERO` runs what is due already.
    ///
    /// A task that schedules itself again with no delay, for ever, keeps this from returning. Time ends after 19 million
    /// years: there it stands still.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// timer.new_timeout(Duration::from_millis(10), |_| {})?;
    /// assert_eq!(driver.advance(Duration::from_millis(9)), 0);
    /// assert_eq!(driver.advance(Duration::from_millis(1)), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "advanceClock")]
    #[doc(alias = "sleep")]
    pub fn advance(&mut self, by: Duration) -> usize {
        let engine = self.turner.engine().clone();
        let (clock, resolution) = (&engine.context.clock, engine.context.resolution);
        let target = after(clock.now(), by).min(Clock::end_of_time());
        let mut expired = 0;
        loop {
            let next = engine.next();
            if !engine.context.has_orphans() {
                if next > resolution.tick_at(target) {
                    break;
                }
                clock.set(resolution.start_of(next).min(target));
            }
            let turned = self.turner.turn(clock.now());
            expired += turned.expired;
            if !turned.complete {
                // Another thread is at work on the shard; it holds the latch for an instant only.
                yield_now();
            }
        }
        clock.set(target);
        expired
    }

    /// How far off the next timeout is: never later than the earliest deadline, and exactly that unless it, or one due
    /// earlier, was cancelled or reset to a later one. Zero if something is due already; `None` if nothing waits, or what
    /// waits lies beyond the end of time. (A periodic task that runs on a pool just now is pending and does not wait.)
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// timer.new_timeout(Duration::from_millis(10), |_| {})?;
    /// while let Some(next) = driver.next_expiry() {
    ///     driver.advance(next);
    /// }
    /// assert_eq!(driver.elapsed(), Duration::from_millis(10));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn next_expiry(&self) -> Option<Duration> {
        let engine = self.turner.engine();
        let next = engine.shards.iter().filter_map(|shard| shard.earliest()).min()?;
        let (present, at) = (self.present(), engine.context.resolution.start_of(next));
        (at <= present || present < Clock::end_of_time()).then(|| duration(at.saturating_sub(present)))
    }

    /// How far time has come since the timer was built.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (_timer, mut driver) = Timer::builder().build_manual()?;
    /// driver.advance(Duration::from_secs(5 * 365 * 86_400));
    /// assert_eq!(driver.elapsed(), Duration::from_secs(5 * 365 * 86_400));
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn elapsed(&self) -> Duration {
        duration(self.present())
    }

    /// The present, as the timer's timeouts see it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, driver) = Timer::builder().build_manual()?;
    /// let timeout = timer.new_timeout(Duration::from_millis(10), |_| {})?;
    /// assert_eq!(timeout.deadline() - driver.now(), Duration::from_millis(10));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn now(&self) -> Instant {
        self.turner.engine().context.clock.instant(self.present())
    }

    fn present(&self) -> Nanos {
        self.turner.engine().context.clock.now()
    }

    /// Stops the timer and hands back what has not run. O(pending), however far off it is.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, driver) = Timer::builder().build_manual()?;
    /// timer.new_timeout(Duration::MAX, |_| {})?;
    /// assert_eq!(driver.stop().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stop(self) -> Vec<Unprocessed> {
        self.turner.engine().stop()
    }
}

impl Drop for ManualDriver {
    fn drop(&mut self) {
        self.turner.engine().abandon();
    }
}

impl fmt::Debug for ManualDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualDriver").field("elapsed", &self.elapsed()).finish_non_exhaustive()
    }
}
