//! Time inside the timer: nanoseconds, and deadlines that fit beside a state.
//!
//! Never early is made here and in [`crate::resolution`]: a deadline rounds **up** to 60 bits and to a tick, the present rounds
//! **down**. Nothing in this file reads a clock.

use std::time::Duration;

/// A point in time: nanoseconds of the clock that `Instant` reads ([`crate::clock`]). 64 bits are 584 years.
pub(crate) type Nanos = u64;

/// A tick that lies before every other: the entry is due already.
pub(crate) const IMMEDIATE: u64 = 0;
/// No tick at all.
pub(crate) const NO_TICK: u64 = u64::MAX;
/// The latest present there can be: a deadline that never comes is later.
pub(crate) const END_OF_TIME: Nanos = Nanos::MAX - 1;

/// Above, it counts units of 32 ns.
const COARSE_SHIFT: u32 = 5;

/// When a timeout is due, in 60 bits, so that it fits into a state word beside the state: whole nanoseconds for the first
/// 18 years of the clock, 32 ns after that. Deadlines compare like the times they stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Deadline(u64);

impl Deadline {
    /// How many bits a deadline takes.
    pub(crate) const BITS: u32 = 60;
    /// Below this a deadline is exact.
    pub(crate) const EXACT: u64 = 1 << 59;
    /// A deadline that never comes.
    pub(crate) const NEVER: Deadline = Deadline((1 << Self::BITS) - 1);

    /// The first deadline at or after `nanos`.
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

    /// The first deadline at or after `delay` from `now`.
    #[inline]
    pub(crate) fn after(now: Nanos, delay: Duration) -> Deadline {
        Self::up(after(now, delay))
    }

    /// A deadline between `delay` and `delay + slack` from `now`, the same for all whose range it lies in and who have as much slack.
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

    /// The last deadline at or before `nanos`.
    #[inline]
    pub(crate) fn down(nanos: Nanos) -> Deadline {
        if nanos < Self::EXACT {
            Deadline(nanos)
        } else {
            Deadline(Self::EXACT + ((nanos.min(END_OF_TIME) - Self::EXACT) >> COARSE_SHIFT))
        }
    }

    /// Whether it has come by `now`.
    #[inline]
    pub(crate) fn is_due(self, now: Nanos) -> bool {
        self.nanos() <= now
    }

    /// The time it stands for, if that is below [`EXACT`](Self::EXACT).
    #[inline]
    pub(crate) fn exact(self) -> Option<Nanos> {
        (self.0 < Self::EXACT).then_some(self.0)
    }

    /// The time it stands for.
    #[inline]
    pub(crate) fn nanos(self) -> Nanos {
        if self.0 < Self::EXACT { self.0 } else { self.coarse_nanos() }
    }

    #[cold]
    fn coarse_nanos(self) -> Nanos {
        // The last of these numbers lie beyond the end of time: they never come either.
        if self == Self::NEVER {
            Nanos::MAX
        } else {
            Self::EXACT.saturating_add((self.0 - Self::EXACT) << COARSE_SHIFT)
        }
    }

    /// The deadline as a number below 2^[`Deadline::BITS`].
    #[inline]
    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    /// The deadline of a number from [`Deadline::to_bits`]; higher bits are ignored.
    #[inline]
    pub(crate) fn from_bits(bits: u64) -> Deadline {
        Deadline(bits & Self::NEVER.0)
    }
}

/// `at` later by `delay`, or [`Nanos::MAX`], which never comes.
#[inline]
pub(crate) fn after(at: Nanos, delay: Duration) -> Nanos {
    let nanos = delay.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(delay.subsec_nanos()));
    at.saturating_add(nanos)
}

/// Every edge at which the encoding or a level of a wheel changes.
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

    // B10, B19, B23: early firing by rounding.
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
            assert_eq!(Deadline::within(now, second, Duration::ZERO), Deadline::after(now, second));
        }
        let distinct: std::collections::BTreeSet<_> = (0..1_000).map(|nth| picked(nth * 30_000_000)).collect();
        assert!(distinct.len() <= 32, "{}", distinct.len());
        assert_eq!(Deadline::within(5, Duration::MAX, second), Deadline::NEVER);
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
    fn what_rounds_up_beyond_the_end_of_time_never_comes() {
        for nanos in (END_OF_TIME - 100)..=END_OF_TIME {
            let up = Deadline::up(nanos);
            assert!(up.nanos() >= nanos, "{nanos}");
            assert_eq!(up.is_due(END_OF_TIME), nanos <= Nanos::MAX - 31, "{nanos}");
        }
    }

    // B88: large values overflow into marker values.
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

    // B21, B22: now + delay overflowed and fired at once.
    #[test]
    fn the_longest_delay_saturates() {
        assert_eq!(Deadline::after(0, Duration::MAX), Deadline::NEVER);
        assert_eq!(Deadline::after(END_OF_TIME, Duration::from_nanos(1)), Deadline::NEVER);
        assert_eq!(Deadline::after(5, Duration::new(3, 7)).nanos(), 3_000_000_012);
    }
}
