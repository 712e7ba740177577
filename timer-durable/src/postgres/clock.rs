//! An estimate of the server's clock.

use crate::store::Micros;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long a sample is used. Clocks drift by less than a millisecond meanwhile.
const LIFE: Duration = Duration::from_secs(15);

/// A sample that is later by more than this shows a clock that was set forward.
const LEAP: Micros = 100_000;

/// The server's clock, estimated from the times that come with answers.
#[derive(Debug)]
pub(super) struct Clock {
    /// A moment on both clocks.
    sample: (Instant, Micros),
    /// Half of the shortest round trip.
    trip: Duration,
    /// The latest time that was reported.
    told: Cell<Micros>,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self { sample: (Instant::now(), 0), trip: Duration::from_secs(1), told: Cell::new(0) }
    }

    /// Returns the estimate, which never goes back.
    pub(super) fn now(&self) -> Micros {
        let now = self.estimate().max(self.told.get());
        self.told.set(now);
        now
    }

    /// Returns the duration until [`now`](Self::now) reaches `time`. After a step back, the present
    /// stands still until the estimate has reached the latest time that was reported.
    pub(super) fn until(&self, time: Micros) -> Duration {
        if time <= self.now() {
            return Duration::ZERO;
        }
        Duration::from_micros(u64::try_from(time - self.estimate()).unwrap_or(0))
    }

    fn estimate(&self) -> Micros {
        self.sample.1 + micros(self.sample.0.elapsed())
    }

    /// Takes the time `server` of an answer to a question that was sent at `sent`.
    ///
    /// A delay before the server reads its clock makes an estimate too late, never too early. So a
    /// sample that gives an earlier estimate is better than the one in use. A clock that was set
    /// forward shows in a leap.
    pub(super) fn take(&mut self, sent: Instant, server: Micros) {
        let at = sent + self.trip;
        let ours = self.sample.1 + micros(at.saturating_duration_since(self.sample.0));
        if server < ours || server - ours > LEAP || self.sample.0.elapsed() > LIFE {
            self.sample = (at, server);
        }
    }

    /// Discards the estimate and takes the answer to a question that only asked for the time.
    pub(super) fn start(&mut self, sent: Instant, server: Micros) {
        self.trip = self.trip.min(sent.elapsed() / 2);
        self.sample = (sent + self.trip, server);
    }

    /// Returns by how much the last reported time exceeds `server`, which was read just now.
    pub(super) fn ahead(&self, server: Micros) -> Micros {
        self.told.get() - server
    }
}

fn micros(duration: Duration) -> Micros {
    Micros::try_from(duration.as_micros()).unwrap_or(Micros::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delayed_answer_does_not_set_the_clock_forward() {
        let mut clock = Clock::new();
        let begun = Instant::now();
        clock.start(begun, 1_000_000_000);
        clock.take(begun, 1_000_050_000);
        assert!(clock.now() < 1_000_050_000 + micros(begun.elapsed()), "the question was 50 ms on its way");
    }

    #[test]
    fn a_leap_of_the_server_is_followed() {
        let mut clock = Clock::new();
        let begun = Instant::now();
        clock.start(begun, 1_000_000_000);
        clock.take(begun, 1_060_000_000);
        assert!(clock.now() >= 1_060_000_000);
        clock.take(begun, 1_000_000_000);
        assert!(clock.now() >= 1_060_000_000, "the present never goes back");
        assert!(clock.ahead(1_000_000_000) >= 60_000_000);
    }

    #[test]
    fn a_clock_that_stands_adds_the_time_until_it_moves() {
        let mut clock = Clock::new();
        let begun = Instant::now();
        clock.start(begun, 1_000_000_000);
        assert!(clock.now() >= 1_000_000_000);
        clock.take(begun, 940_000_000);
        let told = clock.now();
        assert_eq!(clock.until(told), Duration::ZERO);
        assert!(clock.until(told + 1_000) > Duration::from_secs(50), "{:?}", clock.until(told + 1_000));
    }
}
