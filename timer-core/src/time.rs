//! Time inside the timer: nanoseconds since the timer's epoch, packed stamps, and ticks.
//!
//! Never early is made here: a deadline rounds **up** to a stamp and to a tick, the present rounds **down**. Nothing in
//! this file reads a clock.

use std::time::Duration;

/// Nanoseconds since the timer's epoch. 128 bits, so that no uptime and no delay overflows.
pub(crate) type Nanos = u128;

/// A tick that lies before every other: the entry is due already.
pub(crate) const IMMEDIATE: u64 = 0;
/// No tick at all.
pub(crate) const NO_TICK: u64 = u64::MAX;

/// Below this a stamp is exact.
const EXACT: u64 = 1 << 59;
/// Above, it counts units of 2^20 ns (about a millisecond).
const COARSE_SHIFT: u32 = 20;
/// Seconds that cannot overflow 64 bits of nanoseconds together with an exact stamp.
const NEAR: u64 = 1 << 29;
const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A point in time in 60 bits, so that it fits into a state word beside the state: whole nanoseconds for the first
/// 18 years of the timer, units of about a millisecond for 19 million years more. Stamps compare like the times they
/// stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stamp(u64);

impl Stamp {
    /// How many bits a stamp takes.
    pub(crate) const BITS: u32 = 60;
    /// The end of time: a deadline that never comes.
    pub(crate) const NEVER: Stamp = Stamp((1 << Self::BITS) - 1);

    /// The first stamp at or after `nanos`; [`Stamp::NEVER`] if there is none.
    #[inline]
    pub(crate) fn up(nanos: Nanos) -> Stamp {
        if nanos < Nanos::from(EXACT) {
            return Stamp(nanos as u64);
        }
        Self::coarse(nanos.div_ceil(1 << COARSE_SHIFT))
    }

    /// The first stamp at or after `delay` from `now`.
    #[inline]
    pub(crate) fn after(now: Nanos, delay: Duration) -> Stamp {
        // Nearly all of them, in 64 bits.
        if now < Nanos::from(EXACT) && delay.as_secs() < NEAR {
            let at = now as u64 + delay.as_secs() * NANOS_PER_SEC + u64::from(delay.subsec_nanos());
            if at < EXACT {
                return Stamp(at);
            }
        }
        Self::far_after(now, delay)
    }

    #[cold]
    fn far_after(now: Nanos, delay: Duration) -> Stamp {
        Self::up(after(now, delay))
    }

    /// Whether it has come by `now`.
    #[inline]
    pub(crate) fn is_due(self, now: Nanos) -> bool {
        self.nanos() <= now
    }

    /// The last stamp at or before `nanos` that is not [`Stamp::NEVER`].
    #[inline]
    pub(crate) fn down(nanos: Nanos) -> Stamp {
        if nanos < Nanos::from(EXACT) {
            return Stamp(nanos as u64);
        }
        Stamp(Self::coarse(nanos >> COARSE_SHIFT).0.min(Self::NEVER.0 - 1))
    }

    #[cold]
    fn coarse(units: u128) -> Stamp {
        Stamp(units.min(u128::from(EXACT - 1)) as u64 | EXACT)
    }

    /// The time it stands for.
    #[inline]
    pub(crate) fn nanos(self) -> Nanos {
        if self.0 < EXACT { Nanos::from(self.0) } else { Nanos::from(self.0 & (EXACT - 1)) << COARSE_SHIFT }
    }

    /// The stamp as a number below 2^[`Stamp::BITS`].
    #[inline]
    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    /// The stamp of a number from [`Stamp::to_bits`]; higher bits are ignored.
    #[inline]
    pub(crate) fn from_bits(bits: u64) -> Stamp {
        Stamp(bits & Self::NEVER.0)
    }
}

/// `at` later by `delay`, up to the end of time.
#[inline]
pub(crate) fn after(at: Nanos, delay: Duration) -> Nanos {
    at.saturating_add(delay.as_nanos())
}

/// How long after `then` it is at `now`, in 64 bits, which are enough for 584 years; 0 if it is not.
#[inline]
pub(crate) fn nanos_since(now: Nanos, then: Nanos) -> u64 {
    u64::try_from(now.saturating_sub(then)).unwrap_or(u64::MAX)
}

/// A [`Duration`] of so many nanoseconds, or the longest one there is.
pub(crate) fn duration(nanos: Nanos) -> Duration {
    let second = Nanos::from(NANOS_PER_SEC);
    match u64::try_from(nanos / second) {
        Ok(seconds) => Duration::new(seconds, (nanos % second) as u32),
        Err(_) => Duration::MAX,
    }
}

/// How finely the wheel counts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Resolution {
    /// Ticks of so many nanoseconds: what is due within one tick runs in one turn.
    Ticks(u64),
    /// A tick is a stamp: virtual time needs no coarser step.
    Exact,
}

impl Resolution {
    /// The first tick at or after `deadline`: the one whose turn may run it.
    #[inline]
    pub(crate) fn tick_of(self, deadline: Stamp) -> u64 {
        match self {
            Resolution::Ticks(_) if deadline == Stamp::NEVER => NO_TICK,
            Resolution::Ticks(tick) if deadline.0 < EXACT => deadline.0.div_ceil(tick),
            Resolution::Ticks(tick) => saturate(deadline.nanos().div_ceil(Nanos::from(tick)), NO_TICK),
            Resolution::Exact => deadline.0,
        }
    }

    /// The last tick at or before `now`: the one whose turn it is.
    #[inline]
    pub(crate) fn tick_at(self, now: Nanos) -> u64 {
        match self {
            Resolution::Ticks(tick) if now < Nanos::from(EXACT) => now as u64 / tick,
            Resolution::Ticks(tick) => saturate(now / Nanos::from(tick), NO_TICK - 1),
            Resolution::Exact => Stamp::down(now).0,
        }
    }

    /// When `tick` begins.
    pub(crate) fn start_of(self, tick: u64) -> Nanos {
        match self {
            Resolution::Ticks(nanos) => Nanos::from(tick) * Nanos::from(nanos),
            Resolution::Exact => Stamp::from_bits(tick).nanos(),
        }
    }
}

fn saturate(tick: Nanos, most: u64) -> u64 {
    u64::try_from(tick).map_or(most, |tick| tick.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every edge at which the encoding or a level of a wheel changes.
    fn edges() -> impl Iterator<Item = Nanos> {
        (0..100).flat_map(|bit| {
            let edge: Nanos = 1 << bit;
            [edge.saturating_sub(1), edge, edge + 1, edge + 12_345]
        })
    }

    // B10, B19, B23: early firing by rounding.
    #[test]
    fn a_deadline_rounds_up_and_the_present_rounds_down() {
        for nanos in edges() {
            let up = Stamp::up(nanos);
            assert!(up == Stamp::NEVER || up.nanos() >= nanos, "{nanos}");
            assert!(Stamp::down(nanos).nanos() <= nanos, "{nanos}");
            for tick in [1_000, 1_500_000, 1_000_000, 7_000_000, 86_400_000_000_000] {
                let resolution = Resolution::Ticks(tick);
                let linked = resolution.tick_of(up);
                assert!(linked == NO_TICK || resolution.start_of(linked) >= nanos, "{nanos} at {tick}");
                assert!(resolution.start_of(resolution.tick_at(nanos)) <= nanos, "{nanos} at {tick}");
                assert!(
                    linked == NO_TICK || resolution.tick_at(resolution.start_of(linked)) >= linked,
                    "due at its tick"
                );
            }
            let linked = Resolution::Exact.tick_of(up);
            assert!(up == Stamp::NEVER || Resolution::Exact.tick_at(up.nanos()) == linked);
        }
    }

    // B21: the short way of a sum and the long one.
    #[test]
    fn a_deadline_is_the_same_in_64_bits_and_in_128() {
        let delays = edges().map(duration).chain([NEAR - 1, NEAR, NEAR + 1, u64::MAX].map(Duration::from_secs));
        for delay in delays {
            for now in edges() {
                assert_eq!(Stamp::after(now, delay), Stamp::up(after(now, delay)), "{delay:?} from {now}");
            }
        }
    }

    #[test]
    fn a_stamp_is_due_at_its_time_and_not_before() {
        for stamp in edges().map(Stamp::up) {
            assert!(stamp.is_due(stamp.nanos()) && stamp.is_due(Nanos::MAX));
            assert!(stamp.nanos() == 0 || !stamp.is_due(stamp.nanos() - 1));
        }
    }

    // B88: large values overflow into marker values.
    #[test]
    fn stamps_compare_like_the_times_they_stand_for() {
        let mut times: Vec<Nanos> = edges().collect();
        times.sort_unstable();
        for pair in times.windows(2) {
            assert!(Stamp::up(pair[0]) <= Stamp::up(pair[1]));
            assert!(Stamp::down(pair[0]) <= Stamp::down(pair[1]));
        }
        assert_eq!(Stamp::up(Nanos::MAX), Stamp::NEVER);
        assert!(Stamp::down(Nanos::MAX) < Stamp::NEVER, "the end of time never comes");
    }

    #[test]
    fn the_first_eighteen_years_are_exact() {
        let years: Nanos = 18 * 365 * 86_400 * 1_000_000_000;
        assert_eq!(Stamp::up(years + 1).nanos(), years + 1);
        assert_eq!(Stamp::down(years + 1).nanos(), years + 1);
    }

    // B21, B22: now + delay overflowed and fired at once.
    #[test]
    fn the_longest_delay_saturates() {
        assert!(Stamp::up(after(0, Duration::MAX)) > Stamp::down(1 << 79));
        assert_eq!(after(Nanos::MAX - 1, Duration::MAX), Nanos::MAX);
        assert_eq!(duration(Nanos::MAX), Duration::MAX);
        assert_eq!(duration(1_500_000_000), Duration::from_millis(1500));
    }
}
