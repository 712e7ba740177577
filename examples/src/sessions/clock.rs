//! The clock that moves the timer's time during a replay, the real clock or the replay itself.
//!
//! After [`ReplayClock::reach`] the timer's time is at that second of the log or later. A clock
//! converts seconds of the log to delays. It knows no sessions and no requests.

use std::thread;
use std::time::{Duration, Instant};

use timer_core::{ManualDriver, Timeout, Timer};

use super::watch::Watch;

/// The number of steps in which virtual time advances after the last request, so that a watcher
/// sees timeouts run.
const STEPS: u64 = 100;

/// The delay of the replay behind the real clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Behind {
    /// The number of seconds of the log that contain requests.
    pub seconds: u64,
    /// The number of them that began when the next second was already due.
    pub late: u64,
    /// The greatest delay in real time.
    pub worst: Duration,
}

pub(crate) trait ReplayClock {
    /// Returns when the timer's time has reached `second` of the log.
    fn reach(&mut self, second: u64);

    /// Returns the time from now until `second` of the log, or zero if it is past.
    fn until(&self, second: u64) -> Duration;

    /// Hands a timeout whose deadline has come over to the executor, if no worker does so. Returns
    /// `false` if the timer does not hand it over.
    fn hand_over(&mut self, due: &Timeout) -> bool;

    /// Moves virtual time beyond `second`, the last deadline, in steps, and calls `watch` after
    /// each step. Does nothing on the real clock, where the worker hands over.
    fn finish(&mut self, second: u64, watch: &mut dyn Watch);

    /// Returns the timer's time in seconds of the log.
    fn position(&self) -> u64;

    fn behind(&self) -> Option<Behind>;
}

/// The real clock, on which the log runs `speed` times as fast as it was recorded.
#[derive(Debug)]
pub(crate) struct RealClock {
    start: Instant,
    speed: u32,
    behind: Behind,
}

impl RealClock {
    pub(crate) fn start(speed: u32) -> Self {
        Self { start: Instant::now(), speed: speed.max(1), behind: Behind::default() }
    }
}

impl ReplayClock for RealClock {
    fn reach(&mut self, second: u64) {
        let left = self.until(second);
        if !left.is_zero() {
            thread::sleep(left);
        }
        let late = self.start.elapsed().saturating_sub(Duration::from_secs(second) / self.speed);
        self.behind.seconds += 1;
        self.behind.late += u64::from(late >= Duration::from_secs(1) / self.speed);
        self.behind.worst = self.behind.worst.max(late);
    }

    fn until(&self, second: u64) -> Duration {
        (Duration::from_secs(second) / self.speed).saturating_sub(self.start.elapsed())
    }

    fn hand_over(&mut self, _due: &Timeout) -> bool {
        true
    }

    fn finish(&mut self, _second: u64, _watch: &mut dyn Watch) {}

    fn position(&self) -> u64 {
        self.start.elapsed().saturating_mul(self.speed).as_secs()
    }

    fn behind(&self) -> Option<Behind> {
        Some(self.behind)
    }
}

/// Virtual time, which the replay moves from second to second of the log.
#[derive(Debug)]
pub(crate) struct VirtualClock {
    driver: ManualDriver,
    timer: Timer,
    tick: Duration,
}

impl VirtualClock {
    pub(crate) fn new(driver: ManualDriver, timer: Timer, tick: Duration) -> Self {
        Self { driver, timer, tick }
    }

    /// Advances the time, and waits until the executor has run the tasks handed over. A task in the
    /// executor's queue could still be moved, and its session must not depend on the pool's speed.
    fn advance(&mut self, by: Duration) {
        let expired = self.driver.advance(by);
        while expired > 0 && self.timer.stats().in_flight > 0 {
            thread::yield_now();
        }
    }

    fn beyond(&self) -> Duration {
        self.tick.max(Duration::from_secs(1))
    }
}

impl ReplayClock for VirtualClock {
    fn reach(&mut self, second: u64) {
        // This is zero if a coarse tick has carried the timer's time beyond this second. Advancing
        // by zero also runs the timeouts that are due.
        let left = self.until(second);
        self.advance(left);
    }

    fn until(&self, second: u64) -> Duration {
        Duration::from_secs(second).saturating_sub(self.driver.elapsed())
    }

    // A deadline is rounded up to a tick, so a timeout may wait for the rest of a tick after its
    // second.
    fn hand_over(&mut self, due: &Timeout) -> bool {
        for step in [Duration::ZERO, self.beyond()] {
            if due.is_expired() {
                break;
            }
            self.advance(step);
        }
        due.is_expired()
    }

    fn finish(&mut self, second: u64, watch: &mut dyn Watch) {
        let from = self.position();
        for step in 1..STEPS {
            self.reach(from + second.saturating_sub(from) / STEPS * step);
            watch.reached(self.position().min(second));
        }
        let left = self.until(second) + self.beyond();
        self.advance(left);
    }

    fn position(&self) -> u64 {
        self.driver.elapsed().as_secs()
    }

    fn behind(&self) -> Option<Behind> {
        None
    }
}
