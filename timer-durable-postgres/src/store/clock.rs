//! An estimate of the server's clock.

use std::cell::Cell;
use std::time::{Duration, Instant};
use timer_durable::store::Micros;

/// The age of a sample at which the clocks may have drifted apart.
const LIFE: Duration = Duration::from_secs(15);

/// The largest drift between two clocks in that time.
const DRIFT: Micros = 1_000;

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

    /// Returns the duration until [`now`](Self::now) reaches `time`. After a step back, the current
    /// time stands still until the estimate has reached the latest time that was reported.
    pub(super) fn until(&self, time: Micros) -> Duration {
        if time <= self.now() {
            return Duration::ZERO;
        }
        Duration::from_micros(u64::try_from(time - self.estimate()).unwrap_or(0))
    }

    fn estimate(&self) -> Micros {
        self.sample.1 + micros(self.sample.0.elapsed())
    }

    /// Takes the time `server` of an answer to a query that was sent at `sent`.
    ///
    /// The server has read its clock after `sent` and before the current time, which gives two
    /// bounds for any delay:
    ///
    /// - The estimate for the earliest moment of the reading must not exceed the answer. Otherwise
    ///   it is ahead of the server.
    /// - The estimate for the current time must not be below the answer. Otherwise it is behind,
    ///   because the server's clock was set forward or has drifted.
    ///
    /// An estimate within both bounds stays, apart from the drift. An answer that was delayed must
    /// not replace it.
    pub(super) fn take(&mut self, sent: Instant, server: Micros) {
        let at = sent + self.trip;
        let ours = self.sample.1 + micros(at.saturating_duration_since(self.sample.0));
        if server > self.estimate() {
            self.sample = (Instant::now(), server);
        } else if server < ours {
            self.sample = (at, server);
        } else if self.sample.0.elapsed() > LIFE {
            self.sample = (at, server.min(ours + DRIFT));
        }
    }

    /// Discards the estimate and takes the answer to a query that only asked for the time.
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
        let now = Instant::now();
        let ago = |seconds| now - Duration::from_secs(seconds);
        clock.start(ago(10), 1_000_000_000);
        let (sampled, told) = clock.sample;
        // The query was on its way for five seconds until the server has read its clock.
        let server = told + micros(now - sampled);
        clock.take(ago(5), server);
        let ahead = clock.now() - server - micros(now.elapsed());
        assert!(ahead < 50_000, "the clock is ahead by {ahead} us");
    }

    #[test]
    fn an_old_sample_follows_the_drift_and_no_delay() {
        let mut clock = Clock::new();
        let begun = Instant::now();
        clock.start(begun, 1_000_000_000);
        clock.sample = (begun - 2 * LIFE, 1_000_000_000 - 2 * micros(LIFE));
        let sent = begun - Duration::from_secs(5);
        clock.take(sent, 1_000_000_000);
        let passed = || micros(begun.elapsed());
        let (before, shift, after) = (passed(), clock.now() - 1_000_000_000, passed());
        assert!((before..=after + DRIFT).contains(&shift), "{shift} us after {before} us");
    }

    #[test]
    fn a_leap_of_the_server_is_followed() {
        let mut clock = Clock::new();
        let begun = Instant::now();
        clock.start(begun, 1_000_000_000);
        clock.take(begun, 1_060_000_000);
        assert!(clock.now() >= 1_060_000_000);
        clock.take(begun, 1_000_000_000);
        assert!(clock.now() >= 1_060_000_000, "time never goes back");
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
