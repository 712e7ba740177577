//! What moves the timer's time while a log is replayed: the real clock, or the replay itself.
//!
//! Promises: after [`ReplayClock::reach`] the timer's time is at that second of the log or later, never
//! before it. Says how long from now a second of the log is; knows no sessions and no requests.

use std::thread;
use std::time::{Duration, Instant};

use timer_core::{ManualDriver, Timeout, Timer};

use super::watch::Watch;

// In how many steps virtual time goes on after the last request, so that a watcher sees timeouts run.
const STEPS: u64 = 100;

/// How far the replay was behind the real clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Behind {
    /// Seconds of the log that hold requests.
    pub seconds: u64,
    /// How many of them began when the next second was due already.
    pub late: u64,
    /// The latest of all, in real time.
    pub worst: Duration,
}

pub(crate) trait ReplayClock {
    /// Returns when the timer's time has come to `second` of the log.
    fn reach(&mut self, second: u64);

    /// From now until `second` of the log; zero if it is past.
    fn until(&self, second: u64) -> Duration;

    /// Sees to it that a timeout whose deadline has been reached is handed to the executor. Where a
    /// worker does that by itself there is nothing to do. `false` if the timer does not.
    fn hand_over(&mut self, due: &Timeout) -> bool;

    /// The log is over, and no timeout is later than `second`: sees to it that all are handed over.
    /// Calls `watch` on the way if that is over when it returns.
    fn finish(&mut self, second: u64, watch: &mut dyn Watch);

    /// Where the timer's time is, in seconds of the log.
    fn position(&self) -> u64;

    fn behind(&self) -> Option<Behind>;
}

/// The log runs on the real clock, `speed` times as fast as it happened.
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

/// The replay moves the timer's time, from second to second of the log.
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

    /// Time stands still until the executor has run what it was handed: a task that waits in its
    /// queue can still be moved, and a log's second must not depend on a pool's.
    fn advance(&mut self, by: Duration) {
        self.driver.advance(by);
        while self.timer.stats().in_flight > 0 {
            thread::yield_now();
        }
    }

    fn beyond(&self) -> Duration {
        self.tick.max(Duration::from_secs(1))
    }
}

impl ReplayClock for VirtualClock {
    fn reach(&mut self, second: u64) {
        // Zero where a coarse tick has carried the timer's time beyond this second: that runs what
        // is due, too.
        let left = self.until(second);
        self.advance(left);
    }

    fn until(&self, second: u64) -> Duration {
        Duration::from_secs(second).saturating_sub(self.driver.elapsed())
    }

    // A deadline is rounded up to a tick, so a timeout may wait for the rest of one after its
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
