//! Times on the store's clock.

use std::time::Duration;

/// Microseconds since 1970 on the store's clock, or a length of time in microseconds.
pub type Micros = i64;

/// A due time, relative to the store's clock or absolute.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    In(Micros),
    At(Micros),
}

impl When {
    /// Returns the due time. A time in the past is now, so that it sorts behind older timeouts.
    pub(crate) fn from(self, now: Micros) -> Micros {
        match self {
            Self::In(delay) => now.saturating_add(delay),
            Self::At(due) => due.max(now),
        }
    }
}

/// Returns a duration in microseconds, rounded up.
pub(crate) fn micros(duration: Duration) -> Micros {
    Micros::try_from(duration.as_nanos().div_ceil(1_000)).unwrap_or(Micros::MAX)
}
