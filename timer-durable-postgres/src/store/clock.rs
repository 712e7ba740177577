//! An estimate of the server's clock.
//!
//! A delay counts from the estimate at the call, so the estimate must not be behind the server.
//! Otherwise the timeout would be early. It may be ahead by the shortest time that a query has
//! taken to the server. A begin takes at least as long, and the server compares its own clock.

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
    /// A moment, and a time that the server's clock had not passed before it.
    sample: (Instant, Micros),
    /// The shortest round trip.
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
    /// - The estimate for the moment `sent` need not exceed the answer. If it does, it is ahead of
    ///   the server by more than this query has taken to the server.
    /// - The estimate for the current time must not be below the answer. If it is, the server's
    ///   clock was set forward or has drifted. The estimate then allows the answer one shortest
    ///   round trip. An answer that was delayed must not set the estimate forward by its delay.
    ///
    /// An estimate within both bounds stays, apart from the drift.
    pub(super) fn take(&mut self, sent: Instant, server: Micros) {
        self.trip = self.trip.min(sent.elapsed());
        let ours = self.sample.1 + micros(sent.saturating_duration_since(self.sample.0));
        if server > self.estimate() {
            self.sample = (Instant::now(), server + micros(self.trip));
        } else if server < ours {
            self.sample = (sent, server);
        } else if self.sample.0.elapsed() > LIFE {
            self.sample = (sent, server.min(ours + DRIFT));
        }
    }

    /// Discards the estimate and takes the answer to a query that only asked for the time.
    pub(super) fn start(&mut self, sent: Instant, server: Micros) {
        self.trip = sent.elapsed();
        self.sample = (sent, server);
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
    fn the_estimate_is_never_behind_the_server() {
        let now = Instant::now();
        let server_at = |moment: Instant| 1_000_000_000 - micros(now - moment);
        let mut clock = Clock::new();
        for n in 0..100 {
            // The way back takes up to ten times as long as the way to the server, and vice versa.
            let there = Duration::from_micros(fastrand::u64(100..1_000));
            let back = Duration::from_micros(fastrand::u64(100..10_000));
            let read = now - back;
            let take = if n == 0 { Clock::start } else { Clock::take };
            take(&mut clock, read - there, server_at(read));
            let passed = micros(now.elapsed());
            let ahead = clock.now() - server_at(now) - passed;
            assert!(ahead >= 0, "after {n} answers, the clock is behind by {} us", -ahead);
        }
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
        let before = passed();
        let shift = clock.now() - 1_000_000_000;
        let after = passed();
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
