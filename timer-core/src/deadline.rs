//! Time inside the timer, as nanoseconds and as deadlines that share a word with a state.
//!
//! This module and [`crate::resolution`] keep the promise that no timeout is early. A deadline
//! rounds **up** to 60 bits and to a tick, and the current time rounds **down**. No function here
//! reads a clock.

use std::time::Duration;

/// A point in time: nanoseconds of the clock that `Instant` reads ([`crate::clock`]). 64 bits are
/// 584 years.
pub(crate) type Nanos = u64;

/// A tick before every other one, for entries that are due already.
pub(crate) const IMMEDIATE: u64 = 0;
/// A tick after every other one, for entries that are never due.
pub(crate) const NO_TICK: u64 = u64::MAX;
/// The latest present. A deadline that never comes is later.
pub(crate) const END_OF_TIME: Nanos = Nanos::MAX - 1;

/// Coarse deadlines count units of 2^5 ns.
const COARSE_SHIFT: u32 = 5;

/// The time at which a timeout is due, in 60 bits, so that it fits into a word beside a state. It
/// is exact for the first 18 years of the clock and a multiple of 32 ns after that. Deadlines
/// compare like their times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Deadline(u64);

impl Deadline {
    /// The number of bits of a deadline.
    pub(crate) const BITS: u32 = 60;
    /// Deadlines below this value are exact.
    pub(crate) const EXACT: u64 = 1 << 59;
    /// A deadline that never comes.
    pub(crate) const NEVER: Deadline = Deadline((1 << Self::BITS) - 1);

    /// Returns the first deadline at or after `nanos`.
    #[inline]
    pub(crate) fn up(nanos: Nanos) -> Deadline {
        if nanos < Self::EXACT { Deadline(nanos) } else { Self::coarse_up(nanos) }
    }

    #[cold]
    fn coarse_up(nanos: Nanos) -> Deadline {
        if nanos > END_OF_TIME {
            Self::NEVER
        } else {
            Deadline(Self::EXACT + ((nanos - Self::EXACT).div_ceil(1 << COARSE_SHIFT)))
        }
    }

    /// Returns the deadline `delay` from `now`. Without a delay that is `now` itself, not the next
    /// nanosecond that a deadline can represent.
    #[inline]
    pub(crate) fn after(now: Nanos, delay: Duration) -> Deadline {
        let at = after(now, delay);
        // Below `EXACT` both directions are the same.
        if at < Self::EXACT || !delay.is_zero() { Self::up(at) } else { Self::down(at) }
    }

    /// Returns the deadline at the time `at`. It is due now if `at` is past. Only a deadline that
    /// is not exact needs a reading of the clock.
    #[inline]
    pub(crate) fn at(now: impl FnOnce() -> Nanos, at: Nanos) -> Deadline {
        if at >= Self::EXACT && at <= now() { Self::down(at) } else { Self::up(at) }
    }

    /// Returns a deadline between `now + delay` and `now + delay + slack`. Ranges of the same slack
    /// that contain a common multiple of it get the same deadline.
    pub(crate) fn within(now: Nanos, delay: Duration, slack: Duration) -> Deadline {
        let earliest = after(now, delay);
        let slack = after(0, slack);
        if delay.is_zero() && slack == 0 {
            return Self::down(now);
        }
        let multiple = earliest.checked_next_multiple_of(slack).unwrap_or(earliest);
        let latest = earliest.saturating_add(slack);
        let deadline = Self::up(multiple);
        if deadline.nanos() <= latest { deadline } else { Self::up(earliest) }
    }

    /// Returns the last deadline at or before `nanos`.
    #[inline]
    pub(crate) fn down(nanos: Nanos) -> Deadline {
        if nanos < Self::EXACT {
            Deadline(nanos)
        } else {
            Deadline(Self::EXACT + ((nanos.min(END_OF_TIME) - Self::EXACT) >> COARSE_SHIFT))
        }
    }

    /// Returns `true` if the deadline has come by `now`.
    #[inline]
    pub(crate) fn is_due(self, now: Nanos) -> bool {
        self.nanos() <= now
    }

    /// Returns the time of an exact deadline, and `None` for others.
    #[inline]
    pub(crate) fn exact(self) -> Option<Nanos> {
        (self.0 < Self::EXACT).then_some(self.0)
    }

    /// Returns the time of the deadline.
    #[inline]
    pub(crate) fn nanos(self) -> Nanos {
        if self.0 < Self::EXACT { self.0 } else { self.coarse_nanos() }
    }

    #[cold]
    fn coarse_nanos(self) -> Nanos {
        // The greatest of these numbers lie after the end of time and never come either.
        if self == Self::NEVER {
            Nanos::MAX
        } else {
            Self::EXACT.saturating_add((self.0 - Self::EXACT) << COARSE_SHIFT)
        }
    }

    /// Returns the deadline as a number below 2^[`Deadline::BITS`].
    #[inline]
    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    /// Returns the deadline of a number from [`Deadline::to_bits`]. Higher bits are ignored.
    #[inline]
    pub(crate) fn from_bits(bits: u64) -> Deadline {
        Deadline(bits & Self::NEVER.0)
    }
}

/// Returns `at + delay`, or [`Nanos::MAX`], which never comes.
#[inline]
pub(crate) fn after(at: Nanos, delay: Duration) -> Nanos {
    let nanos = delay.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(delay.subsec_nanos()));
    at.saturating_add(nanos)
}

/// Returns the values at which the encoding or a level of a wheel changes.
#[cfg(test)]
pub(crate) fn edges() -> impl Iterator<Item = Nanos> {
    (0..64).flat_map(|bit| {
        let edge: Nanos = 1 << bit;
        [edge.saturating_sub(1), edge, edge + 1, edge.saturating_add(12_345)]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // Guards against sozu-proxy/sozu#1354, early firing by rounding.
    #[test]
    fn a_deadline_rounds_up_and_the_present_down() {
        for nanos in edges() {
            let up = Deadline::up(nanos);
            assert!(up.nanos() >= nanos, "{nanos}");
            assert!(Deadline::down(nanos).nanos() <= nanos, "{nanos}");
        }
    }

    #[test]
    fn slack_gathers_deadlines_and_is_never_exceeded() {
        let second = Duration::from_secs(1);
        let picked = |now| Deadline::within(now, 30 * second, second).nanos();
        for now in edges().filter(|now| *now < END_OF_TIME - 40_000_000_000) {
            let earliest = now + 30_000_000_000;
            assert!((earliest..=earliest + 1_000_000_000).contains(&picked(now)), "{now}");
            assert_eq!(Deadline::within(now, second, Duration::ZERO), Deadline::up(after(now, second)));
        }
        let distinct: std::collections::BTreeSet<_> = (0..1_000).map(|nth| picked(nth * 30_000_000)).collect();
        assert!(distinct.len() <= 32, "{}", distinct.len());
        assert_eq!(Deadline::within(5, Duration::MAX, second), Deadline::NEVER);
    }

    #[test]
    fn a_short_slack_is_kept_among_coarse_deadlines() {
        for (now, slack) in (0..64).flat_map(|now| (1..40).map(move |slack| (Deadline::EXACT + now, slack))) {
            let picked = Deadline::within(now, Duration::from_nanos(1), Duration::from_nanos(slack));
            // Without slack a deadline rounds up to 32 ns as well.
            let latest = Deadline::up(now + 1).nanos().max(now + 1 + slack);
            assert!((now + 1..=latest).contains(&picked.nanos()), "{now} {slack}");
        }
    }

    #[test]
    fn a_deadline_is_due_at_its_time_and_not_before() {
        for deadline in edges().map(Deadline::up) {
            assert!(deadline.is_due(deadline.nanos()));
            assert!(deadline.nanos() == 0 || !deadline.is_due(deadline.nanos() - 1));
        }
        assert!(!Deadline::NEVER.is_due(END_OF_TIME));
    }

    #[test]
    fn a_deadline_beyond_the_end_of_time_never_comes() {
        for nanos in (END_OF_TIME - 100)..=END_OF_TIME {
            let up = Deadline::up(nanos);
            assert!(up.nanos() >= nanos, "{nanos}");
            assert_eq!(up.is_due(END_OF_TIME), nanos <= Nanos::MAX - 31, "{nanos}");
        }
    }

    // Guards against tokio-rs/tokio#3551, in which large values overflowed into marker values.
    #[test]
    fn deadlines_compare_like_the_times_they_stand_for() {
        let mut times: Vec<Nanos> = edges().collect();
        times.sort_unstable();
        for pair in times.windows(2) {
            assert!(Deadline::up(pair[0]) <= Deadline::up(pair[1]));
            assert!(Deadline::down(pair[0]) <= Deadline::down(pair[1]));
        }
        assert_eq!(Deadline::up(Nanos::MAX), Deadline::NEVER);
        assert!(Deadline::down(Nanos::MAX) < Deadline::NEVER, "the end of time never comes");
    }

    #[test]
    fn the_first_eighteen_years_are_exact() {
        let years: Nanos = 18 * 365 * 86_400 * 1_000_000_000;
        assert_eq!(Deadline::up(years + 1).nanos(), years + 1);
        assert_eq!(Deadline::down(years + 1).nanos(), years + 1);
        assert_eq!(Deadline::up(Deadline::EXACT + 1).nanos(), Deadline::EXACT + 32);
    }

    // Guards against netty/netty#7760, in which `now + delay` overflowed and fired at once.
    #[test]
    fn the_longest_delay_saturates() {
        assert_eq!(Deadline::up(after(0, Duration::MAX)), Deadline::NEVER);
        assert_eq!(Deadline::up(after(END_OF_TIME, Duration::from_nanos(1))), Deadline::NEVER);
        assert_eq!(after(5, Duration::new(3, 7)), 3_000_000_012);
    }
}
