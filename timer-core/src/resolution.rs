//! Ticks, the unit of time of a wheel.
//!
//! A deadline rounds **up** to a tick and the current time rounds **down**, so no timeout is early.
//!
//! Each call divides by the length of a tick. The length is known when the timer is built. The
//! division is therefore a multiplication (Granlund and Montgomery, *Division by Invariant Integers
//! using Multiplication*, 1994). It saves 1 of the 55 ns of a schedule and a cancel.

use crate::deadline::{Deadline, IMMEDIATE, NO_TICK, Nanos};

/// The relation of time and ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Resolution {
    /// Timeouts that are due within one tick run in one turn.
    Ticks(TickLength),
    /// Every deadline is its own tick, for virtual time. Ticks count from the deadline with these
    /// bits.
    Exact(u64),
}

impl Resolution {
    /// Creates ticks of `nanos` nanoseconds, at least 2.
    pub(crate) fn ticks(nanos: u64) -> Self {
        Resolution::Ticks(TickLength::new(nanos))
    }

    /// Returns the first tick at or after `deadline`, whose turn may run the timeout.
    #[inline]
    pub(crate) fn tick_of(&self, deadline: Deadline) -> u64 {
        self.tick_from(deadline, 0)
    }

    /// Returns the tick under which a deadline is linked. A deadline that has come does not wait
    /// for the next tick.
    #[inline]
    pub(crate) fn tick_from(&self, deadline: Deadline, now: Nanos) -> u64 {
        match (self, deadline.exact()) {
            (Resolution::Ticks(length), Some(nanos)) if nanos > now => length.up(nanos),
            _ if deadline.is_due(now) => IMMEDIATE,
            _ => self.tick_of_others(deadline),
        }
    }

    #[inline(never)]
    fn tick_of_others(&self, deadline: Deadline) -> u64 {
        match self {
            Resolution::Ticks(_) if deadline == Deadline::NEVER => NO_TICK,
            Resolution::Ticks(length) => deadline.nanos().div_ceil(length.nanos),
            Resolution::Exact(origin) => deadline.to_bits().saturating_sub(*origin),
        }
    }

    /// Returns the last tick at or before `now`, whose turn it is.
    #[inline]
    pub(crate) fn tick_at(self, now: Nanos) -> u64 {
        match self {
            Resolution::Ticks(length) => length.down(now),
            Resolution::Exact(origin) => Deadline::down(now).to_bits().saturating_sub(origin),
        }
    }

    /// Returns the length of a tick, by which the wheel may make a timeout late.
    pub(crate) fn tick_nanos(self) -> Nanos {
        match self {
            Resolution::Ticks(length) => length.nanos,
            Resolution::Exact(_) => 0,
        }
    }

    /// Returns the time at which `tick` begins.
    pub(crate) fn start_of(self, tick: u64) -> Nanos {
        match self {
            Resolution::Ticks(length) => tick.saturating_mul(length.nanos),
            Resolution::Exact(origin) => {
                let bits = tick.saturating_add(origin).min(Deadline::NEVER.to_bits());
                Deadline::from_bits(bits).nanos()
            }
        }
    }
}

/// The length of a tick, and the factor that divides by it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TickLength {
    nanos: u64,
    /// 2^(64 + shift) divided by the length, rounded up. The product of this and the length is too
    /// large by less than the length, at most 2^(5 + shift). The quotient of a dividend below 2^59
    /// is therefore too large by less than 1 / length, and rounds down to the right number. Exact
    /// deadlines are below 2^59.
    inverse: u64,
    shift: u32,
}

impl TickLength {
    fn new(nanos: u64) -> Self {
        let nanos = nanos.max(2);
        let shift = (u64::BITS - (nanos - 1).leading_zeros()).saturating_sub(5);
        let inverse = (1_u128 << (u64::BITS + shift)).div_ceil(u128::from(nanos)) as u64;
        Self { nanos, inverse, shift }
    }

    #[inline]
    fn down(self, nanos: Nanos) -> u64 {
        if nanos < Deadline::EXACT { self.quotient(nanos) } else { nanos / self.nanos }
    }

    /// Returns the first tick at or after an exact deadline.
    #[inline]
    fn up(self, nanos: Nanos) -> u64 {
        nanos.checked_sub(1).map_or(0, |before| self.quotient(before) + 1)
    }

    /// Divides `nanos` by the length. `nanos` is below 2^59.
    #[inline]
    fn quotient(self, nanos: Nanos) -> u64 {
        ((u128::from(nanos) * u128::from(self.inverse)) >> u64::BITS) as u64 >> self.shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadline::{END_OF_TIME, edges};

    // sozu-proxy/sozu#1354: early firing by rounding.
    #[test]
    fn a_tick_is_not_before_its_deadlines() {
        for nanos in edges() {
            let up = Deadline::up(nanos);
            for tick in [1_000, 1_500_000, 1_000_000, 7_000_000, 86_400_000_000_000] {
                let resolution = Resolution::ticks(tick);
                let linked = resolution.tick_of(up);
                assert!(resolution.start_of(linked) >= nanos, "{nanos} at {tick}");
                assert!(resolution.start_of(resolution.tick_at(nanos)) <= nanos, "{nanos} at {tick}");
                let due = resolution.start_of(linked);
                assert!(due > END_OF_TIME || resolution.tick_at(due) >= linked, "due at its tick");
                assert_eq!(
                    resolution.tick_from(up, nanos.saturating_sub(1)),
                    if nanos == 0 { IMMEDIATE } else { linked }
                );
                assert_eq!(resolution.tick_from(up, up.nanos()), IMMEDIATE);
            }
            for origin in [0, 1 << 40, nanos.min(1 << 50)] {
                let resolution = Resolution::Exact(origin);
                assert_eq!(resolution.tick_at(up.nanos()), resolution.tick_of(up));
                assert!(up.to_bits() < origin || resolution.start_of(resolution.tick_of(up)) == up.nanos());
            }
        }
    }

    #[test]
    fn a_multiplication_divides_exactly() {
        let lengths = edges().chain((3..19).map(|tens| 10_u64.pow(tens))).filter(|length| *length > 1);
        for length in lengths {
            let ticks = TickLength::new(length);
            let last = (Deadline::EXACT - 1) / length;
            let quotients = edges().chain([last, last - last / 3]).filter(|quotient| *quotient <= last);
            let edges_of_ticks = quotients.flat_map(|quotient| [0, 1, length - 1].map(|more| quotient * length + more));
            for nanos in edges().chain(edges_of_ticks) {
                assert_eq!(ticks.down(nanos), nanos / length, "{nanos} by {length}");
                if nanos < Deadline::EXACT {
                    assert_eq!(ticks.up(nanos), nanos.div_ceil(length), "{nanos} by {length}");
                }
            }
        }
    }
}
