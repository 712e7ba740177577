//! The clock of a file.

use crate::store::Micros;
use crate::time::{VIRTUAL_START, between, micros};
use std::cell::Cell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

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
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Micros::try_from(wall.as_micros()).unwrap_or(Micros::MAX)
    }
}
