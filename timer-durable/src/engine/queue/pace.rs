//! The rate of attempts, on the store's clock.
//!
//! A rate of all nodes that share a store is divided by their shards. A node that gains shards
//! begins with nothing saved, so the nodes together keep the rate while shards move.

use crate::store::{Micros, SHARDS};
use std::time::Duration;

/// A rate that allows a burst of a tenth of a second.
pub(super) struct Pace {
    /// Times in nanoseconds, so that high rates are exact.
    interval: Option<i128>,
    /// The interval of all nodes together, if this is the share of one of them.
    whole: Option<i128>,
    /// The time for which events can be saved up.
    burst: i128,
    next: i128,
    /// The value that `next` would have if each event happened as soon as it was allowed.
    undelayed_next: i128,
}

const SECOND: i128 = 1_000_000_000;
const BURST: i128 = SECOND / 10;
const MICROSECOND: i128 = 1_000;

impl Pace {
    /// Returns a pace of `per_second` events from `now`, or without a limit.
    pub(super) fn new(per_second: Option<u32>, now: Micros) -> Self {
        Self::every(per_second.map(|rate| (rate, Duration::from_secs(1))), now)
    }

    /// Returns a pace of a number of events in each period from `now`, or without a limit.
    pub(super) fn every(rate: Option<(u32, Duration)>, now: Micros) -> Self {
        let interval = |(events, period): (u32, Duration)| {
            (i128::try_from(period.as_nanos()).unwrap_or(i128::MAX) / i128::from(events.max(1))).max(1)
        };
        Self { interval: rate.map(interval), whole: None, burst: BURST, next: nanos(now), undelayed_next: nanos(now) }
    }

    /// Returns the pace of a node without shards, of a rate that all nodes share.
    pub(super) fn shared(rate: (u32, Duration), now: Micros) -> Self {
        let mut pace = Self::every(Some(rate), now);
        pace.whole = pace.interval;
        pace.interval = Some(i128::MAX / 2);
        pace.set_share(0, now);
        pace
    }

    /// Takes the share of a node that owns this many of all [`SHARDS`].
    pub(super) fn set_share(&mut self, shards: u32, now: Micros) {
        let (Some(whole), Some(before)) = (self.whole, self.interval) else { return };
        // A node without shards has nothing to begin.
        let interval = whole * i128::from(SHARDS) / i128::from(shards.max(1));
        if interval < before {
            self.next = nanos(now) + interval;
        }
        self.interval = Some(interval);
        // The event that is allowed at once is a part of the burst.
        self.burst = (BURST - interval).max(0);
    }

    /// Returns the number of events that are allowed at `now`.
    pub(super) fn room(&self, now: Micros) -> usize {
        let Some(interval) = self.interval else { return usize::MAX };
        let now = nanos(now);
        if self.next > now {
            return 0;
        }
        usize::try_from((now - self.next.max(now - self.burst)) / interval + 1).unwrap_or(usize::MAX)
    }

    /// Returns `true` and counts an event if one is allowed at `now`.
    pub(super) fn allows(&mut self, now: Micros) -> bool {
        let Some(interval) = self.interval else { return true };
        let now = nanos(now);
        if self.next > now {
            return false;
        }
        self.next = self.next.max(now - self.burst) + interval;
        true
    }

    /// Returns the time up to which the pace alone has delayed an event that was due at `due`. The
    /// caller calls this once for each event, in the order of the due times.
    pub(super) fn delay(&mut self, due: Micros) -> Micros {
        let Some(interval) = self.interval else { return due };
        let allowed = self.undelayed_next.max(nanos(due));
        self.undelayed_next = self.undelayed_next.max(allowed - self.burst) + interval;
        micros(allowed)
    }

    /// Returns the time at which the next event is allowed.
    pub(super) fn next(&self) -> Option<Micros> {
        self.interval.map(|_| micros(self.next))
    }
}

/// Returns the first microsecond that is not before a time, because an event is refused before its
/// time.
fn micros(time: i128) -> Micros {
    Micros::try_from((time + MICROSECOND - 1).div_euclid(MICROSECOND)).unwrap_or(Micros::MAX)
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
        let mut pace = Pace::every(Some((2, Duration::from_secs(60))), 0);
        assert_eq!((pace.room(0), count(&mut pace, 0), pace.room(0), pace.next()), (1, 1, 0, Some(30_000_000)));
        assert_eq!(count(&mut pace, 30_000_000), 1);
    }

    #[test]
    fn a_share_grows_without_a_burst() {
        let mut pace = Pace::shared((640, Duration::from_secs(1)), 0);
        pace.set_share(32, 0);
        assert_eq!((count(&mut pace, 0), count(&mut pace, 1_000_000), pace.room(1_000_000)), (0, 32, 0));
        pace.set_share(64, 2_000_000);
        assert_eq!((count(&mut pace, 2_000_000), count(&mut pace, 2_010_000)), (0, 6));
        pace.set_share(16, 2_010_000);
        assert_eq!((count(&mut pace, 3_010_000), count(&mut pace, 3_016_250)), (16, 1));
    }

    #[test]
    fn the_next_event_is_allowed_at_its_time() {
        let mut pace = Pace::new(Some(3), 7);
        assert_eq!((count(&mut pace, 7), pace.next()), (1, Some(333_341)));
        assert_eq!((count(&mut pace, 333_340), count(&mut pace, 333_341)), (0, 1));
        assert_eq!(Pace::new(None, 0).next(), None);
    }
}
