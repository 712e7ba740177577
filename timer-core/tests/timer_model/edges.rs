//! Durations and uptimes at which something changes: a level, a round, the unit of a stamp.

use proptest::prelude::*;
use std::time::Duration;

/// Nanoseconds in the units in which people think.
const UNITS: [u64; 3] = [1, 1_000, 1_000_000];

/// The longest edge is 2^48 units.
pub(crate) const TOP: u32 = 48;

pub(crate) fn nanos(nanos: u128) -> Duration {
    let seconds = u64::try_from(nanos / 1_000_000_000).unwrap_or(u64::MAX);
    Duration::new(seconds, (nanos % 1_000_000_000) as u32)
}

/// 2^k and its neighbours, in units or in nanoseconds.
fn edge() -> impl Strategy<Value = Duration> {
    (prop::sample::select(&UNITS[..]), 0..=TOP, -1i128..=1, any::<bool>()).prop_map(|(unit, k, beside, in_units)| {
        let (edge, unit) = (1i128 << k, i128::from(unit));
        let edge = if in_units { (edge + beside) * unit } else { edge * unit + beside };
        nanos(edge as u128)
    })
}

/// How long until something: mostly soon, so that timeouts meet.
pub(crate) fn delay() -> impl Strategy<Value = Duration> {
    prop_oneof![
        2 => Just(Duration::ZERO),
        8 => (0u64..150).prop_map(Duration::from_nanos),
        2 => (0u64..5).prop_map(Duration::from_millis),
        8 => edge(),
        1 => Just(Duration::MAX),
    ]
}

/// How far to move time.
pub(crate) fn jump() -> impl Strategy<Value = Duration> {
    prop_oneof![
        2 => Just(Duration::ZERO),
        8 => (0u64..70).prop_map(Duration::from_nanos),
        2 => (0u64..3_000_000).prop_map(Duration::from_nanos),
        3 => edge(),
        // To the end of time, where it stands still.
        1 => (0u32..4).prop_map(|sooner| if sooner == 0 { Duration::MAX } else { Duration::ZERO }),
    ]
}

/// Just below, at or just above a power of two, and zero.
pub(crate) fn uptime() -> impl Strategy<Value = Duration> {
    prop_oneof![
        2 => Just(Duration::ZERO),
        6 => (edge(), 0u64..70).prop_map(|(edge, before)| edge.saturating_sub(Duration::from_nanos(before))),
        2 => edge(),
    ]
}

/// Every uptime just below 2^k of a unit.
pub(crate) fn uptimes_below_powers() -> impl Iterator<Item = Duration> {
    UNITS.into_iter().flat_map(|unit| {
        (0..=TOP).map(move |k| nanos(u128::from(unit) << k).saturating_sub(Duration::from_nanos(k.into())))
    })
}
