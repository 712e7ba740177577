//! Durations at which a level, a round or the unit of deadlines changes.

use std::time::Duration;

/// Nanoseconds of the usual units.
pub(crate) const UNITS: [u64; 3] = [1, 1_000, 1_000_000];

/// The exponent of the longest edge, in units.
pub(crate) const TOP: u32 = 48;

pub(crate) fn nanos(nanos: u128) -> Duration {
    let seconds = u64::try_from(nanos / 1_000_000_000).unwrap_or(u64::MAX);
    Duration::new(seconds, (nanos % 1_000_000_000) as u32)
}

/// Returns 2^k units, and that many units or nanoseconds beside it.
pub(crate) fn edge(unit: u64, k: u32, beside: i8, in_units: bool) -> Duration {
    let edge = 1i128 << k;
    let unit = i128::from(unit);
    let beside = i128::from(beside);
    let edge = if in_units { (edge + beside) * unit } else { edge * unit + beside };
    nanos(edge as u128)
}
