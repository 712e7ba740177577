//! The clock of a file.

use std::cell::Cell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use timer_durable::store::Micros;
use timer_durable::store::{VIRTUAL_START, between, micros};

/// The wall clock, which never goes back, or a time that stands still.
#[derive(Debug)]
pub(super) struct Clock {
    /// The latest time that this clock has returned. The clock never returns an earlier one.
    floor: Cell<Micros>,
    /// The latest time that the file contains.
    pub(super) written: Micros,
    /// Whether only [`advance`](Self::advance) moves the time.
    pub(super) is_virtual: bool,
}

impl Clock {
    /// Returns a clock that begins at the latest time that the file contains.
    pub(super) fn new(floor: Micros) -> Self {
        Self { floor: Cell::new(floor), written: floor, is_virtual: false }
    }

    pub(super) fn now(&self) -> Micros {
        let now = self.wall().max(self.floor.get());
        self.floor.set(now);
        now
    }

    /// Returns how long it takes to reach `time`. After a step back the wall clock has to catch up
    /// first.
    pub(super) fn time_until(&self, time: Micros) -> Duration {
        if time <= self.now() { Duration::ZERO } else { between(self.wall(), time) }
    }

    /// Moves the time forward. From the first call on, nothing else moves it.
    pub(super) fn advance(&mut self, by: Duration) {
        self.is_virtual = true;
        self.floor.set(self.now().saturating_add(micros(by)));
    }

    fn wall(&self) -> Micros {
        if self.is_virtual {
            return self.floor.get().max(VIRTUAL_START);
        }
        // Rounded up, so that a delay which counts from here is not too short. No handler starts
        // within this microsecond, because the attempt is committed before it runs.
        micros(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO))
    }
}

#[cfg(test)]
mod tests {
    use super::{Clock, Duration, SystemTime, UNIX_EPOCH};

    #[test]
    fn a_delay_never_counts_from_before_the_call() {
        let clock = Clock::new(0);
        for _ in 0..1_000 {
            let called = SystemTime::now();
            assert!(UNIX_EPOCH + Duration::from_micros(clock.now().unsigned_abs()) >= called);
        }
    }
}
