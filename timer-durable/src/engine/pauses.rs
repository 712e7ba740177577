//! The clock of the keeper's pauses.

use crate::store::Micros;
use crate::time::between;
use std::time::{Duration, Instant};

/// The first pause after a failure of the store, while a timeout is locked, and after a task was
/// rejected by its executor.
pub(super) const MIN_PAUSE: Duration = Duration::from_millis(10);
/// The longest of these pauses.
pub(super) const MAX_PAUSE: Duration = Duration::from_secs(1);

/// The clock of the keeper's pauses, which is the system's. On virtual time it is the store's, so
/// that a pause ends when the driver has moved the time.
#[derive(Clone, Copy)]
pub(super) struct PauseClock {
    /// An instant on virtual time, and the same time on the store's clock.
    origin: Option<(Instant, Micros)>,
}

impl PauseClock {
    pub(super) fn new(is_virtual: bool, now: Micros) -> Self {
        Self { origin: is_virtual.then(|| (Instant::now(), now)) }
    }

    pub(super) fn is_virtual(&self) -> bool {
        self.origin.is_some()
    }

    /// Returns the current time. `now` reads the store's clock.
    pub(super) fn present(&self, now: impl FnOnce() -> Micros) -> Instant {
        let Some((begin, then)) = self.origin else { return Instant::now() };
        begin.checked_add(between(then, now())).unwrap_or(begin)
    }

    /// Returns the first pause after a failure of the store. On virtual time the keeper tries again
    /// at once.
    pub(super) fn first_pause(&self) -> Duration {
        if self.is_virtual() { Duration::ZERO } else { MIN_PAUSE }
    }

    /// Returns the pause after another failure. On virtual time it begins with a microsecond, so
    /// that a few failures make no run late.
    pub(super) fn next_pause(&self, pause: Duration, max: Duration) -> Duration {
        (pause * 2).clamp(if self.is_virtual() { Duration::from_micros(1) } else { MIN_PAUSE }, max)
    }
}
