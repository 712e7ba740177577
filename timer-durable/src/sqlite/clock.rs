//! The clock of a file.

use crate::store::Micros;
use std::cell::Cell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The wall clock, which never goes back.
#[derive(Debug)]
pub(super) struct Clock {
    /// The latest time that this clock has returned. The clock never returns an earlier one.
    floor: Cell<Micros>,
    /// The latest time that the file contains.
    pub(super) written: Micros,
}

impl Clock {
    /// Returns a clock that begins at the latest time that the file contains.
    pub(super) fn new(floor: Micros) -> Self {
        Self { floor: Cell::new(floor), written: floor }
    }

    pub(super) fn now(&self) -> Micros {
        let now = wall().max(self.floor.get());
        self.floor.set(now);
        now
    }

    /// Returns how long it takes to reach `time`. After a step back the wall clock has to catch up
    /// first.
    pub(super) fn time_until(&self, time: Micros) -> Duration {
        let wait = if time <= self.now() { 0 } else { time.saturating_sub(wall()) };
        Duration::from_micros(u64::try_from(wait).unwrap_or(0))
    }
}

fn wall() -> Micros {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Micros::try_from(wall.as_micros()).unwrap_or(Micros::MAX)
}
