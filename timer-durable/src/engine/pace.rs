//! The rate of overdue timeouts after downtime, on the store's clock.

use crate::store::Micros;

/// A rate that allows a burst of a tenth of a second.
pub(super) struct Pace {
    /// Times in nanoseconds, so that high rates are exact.
    interval: Option<i128>,
    next: i128,
}

const SECOND: i128 = 1_000_000_000;
const BURST: i128 = SECOND / 10;
const MICROSECOND: i128 = 1_000;

impl Pace {
    /// Returns a pace of `per_second` events from `now`, or without a limit.
    pub(super) fn new(per_second: Option<u32>, now: Micros) -> Self {
        let interval = per_second.map(|rate| SECOND / i128::from(rate));
        Self { interval, next: nanos(now) }
    }

    /// Returns `true` and counts an event if one is allowed at `now`.
    pub(super) fn allows(&mut self, now: Micros) -> bool {
        let Some(interval) = self.interval else { return true };
        let now = nanos(now);
        if self.next > now {
            return false;
        }
        self.next = self.next.max(now - BURST) + interval;
        true
    }

    /// Returns the time at which the next event is allowed.
    pub(super) fn next(&self) -> Option<Micros> {
        self.interval?;
        // Rounded up, because the event is refused before its time.
        let next = (self.next + MICROSECOND - 1).div_euclid(MICROSECOND);
        Some(Micros::try_from(next).unwrap_or(Micros::MAX))
    }
}

fn nanos(time: Micros) -> i128 {
    i128::from(time) * MICROSECOND
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(pace: &mut Pace, now: Micros) -> usize {
        (0..1_000).filter(|_| pace.allows(now)).count()
    }

    #[test]
    fn a_pace_allows_its_rate_after_a_small_burst() {
        let mut pace = Pace::new(Some(100), 0);
        assert_eq!(count(&mut pace, 1_000_000), 11);
        assert_eq!(count(&mut pace, 1_050_000), 5);
        assert_eq!(count(&mut Pace::new(None, 0), 0), 1_000);
    }

    #[test]
    fn the_next_event_is_allowed_at_its_time() {
        let mut pace = Pace::new(Some(3), 7);
        assert_eq!((count(&mut pace, 7), pace.next()), (1, Some(333_341)));
        assert_eq!((count(&mut pace, 333_340), count(&mut pace, 333_341)), (0, 1));
        assert_eq!(Pace::new(None, 0).next(), None);
    }
}
