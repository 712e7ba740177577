//! Where the present comes from: the system's monotonic clock, or a number that a manual driver sets.
//!
//! Only the monotonic source is ever read; wall-clock steps do not exist here. A clock that seems to go backwards reads
//! as one that stands still.

use crate::sync::Mutex;
use crate::time::{Nanos, Stamp, duration};
use std::time::{Duration, Instant};

/// The present, in nanoseconds since the epoch, which is when the timer was built.
#[derive(Debug)]
pub(crate) struct Clock {
    epoch: Instant,
    /// `Some` on virtual time.
    by_hand: Option<Mutex<Nanos>>,
}

impl Clock {
    /// The system's monotonic clock.
    pub(crate) fn real() -> Self {
        Self { epoch: Instant::now(), by_hand: None }
    }

    /// A clock that stands still until it is [set](Self::set).
    pub(crate) fn by_hand() -> Self {
        Self { epoch: Instant::now(), by_hand: Some(Mutex::new(0)) }
    }

    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        match &self.by_hand {
            None => Nanos::from(nanos_u64(Instant::now().saturating_duration_since(self.epoch))),
            Some(now) => *now.lock(),
        }
    }

    /// Moves a clock that is set by hand; the present never goes back.
    pub(crate) fn set(&self, now: Nanos) {
        if let Some(by_hand) = &self.by_hand {
            let mut present = by_hand.lock();
            *present = now.max(*present);
        }
    }

    /// When `at` is, or the latest instant that can be named.
    pub(crate) fn instant(&self, at: Nanos) -> Instant {
        self.instant_after(duration(at))
    }

    fn instant_after(&self, elapsed: Duration) -> Instant {
        let mut elapsed = elapsed;
        loop {
            match self.epoch.checked_add(elapsed) {
                Some(instant) => return instant,
                None => elapsed /= 2,
            }
        }
    }

    /// The time of `instant`; what lies before the epoch is the epoch.
    pub(crate) fn nanos_of(&self, instant: Instant) -> Nanos {
        instant.saturating_duration_since(self.epoch).as_nanos()
    }

    /// The latest present that virtual time can reach.
    pub(crate) fn end_of_time() -> Nanos {
        Stamp::down(Nanos::MAX).nanos()
    }
}

/// A real uptime fits 64 bits for 584 years.
#[inline]
fn nanos_u64(elapsed: Duration) -> u64 {
    elapsed.as_secs().wrapping_mul(1_000_000_000).wrapping_add(u64::from(elapsed.subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    // B81: a clock that goes back.
    #[test]
    fn a_clock_that_goes_back_stands_still() {
        let clock = Clock::by_hand();
        clock.set(1_000);
        clock.set(1);
        assert_eq!(clock.now(), 1_000);
        assert_eq!(clock.nanos_of(clock.instant(0) - Duration::from_secs(1)), 0);
    }

    #[test]
    fn every_stamp_has_an_instant() {
        let clock = Clock::real();
        assert!(clock.instant(Nanos::MAX) > clock.instant(Stamp::NEVER.nanos() / 1_000_000));
        assert_eq!(clock.nanos_of(clock.instant(5)), 5);
    }
}
