//! The rate of overdue timeouts after downtime.

use std::time::{Duration, Instant};

/// A rate that allows a burst of a tenth of a second.
pub(super) struct Pace {
    interval: Option<Duration>,
    next: Instant,
}

const BURST: Duration = Duration::from_millis(100);

impl Pace {
    /// Returns a pace of `per_second` events, or without a limit.
    pub(super) fn new(per_second: Option<u32>) -> Self {
        let interval = per_second.map(|rate| Duration::from_secs(1) / rate.max(1));
        Self { interval, next: Instant::now() }
    }

    /// Returns `true` and counts an event if one is allowed at `now`.
    pub(super) fn allows(&mut self, now: Instant) -> bool {
        let Some(interval) = self.interval else { return true };
        if self.next > now {
            return false;
        }
        let earliest = now.checked_sub(BURST).unwrap_or(now);
        self.next = self.next.max(earliest) + interval;
        true
    }

    /// Returns the time at which the next event is allowed.
    pub(super) fn next(&self) -> Option<Instant> {
        self.interval.map(|_| self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_allows_its_rate_after_a_small_burst() {
        let mut pace = Pace::new(Some(100));
        let start = Instant::now() + Duration::from_secs(1);
        let count = |pace: &mut Pace, now| (0..1_000).filter(|_| pace.allows(now)).count();
        assert_eq!(count(&mut pace, start), 11);
        assert_eq!(count(&mut pace, start + Duration::from_millis(50)), 5);
        assert_eq!(count(&mut Pace::new(None), start), 1_000);
    }
}
