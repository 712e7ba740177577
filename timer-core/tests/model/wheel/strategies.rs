//! Random cases for proptest, with deadlines and uptimes beside the boundaries of levels and
//! rounds.

use super::ops::Op;
use proptest::prelude::*;

/// Generates 2^k and its neighbors for every boundary of a level or a round, small numbers, and the
/// largest ones.
fn edge() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => (0u32..49, -1i64..2).prop_map(|(k, d)| (1u64 << k).wrapping_add_signed(d)),
        2 => (0u32..8, 1u64..300, -1i64..2).prop_map(|(k, m, d)| (m << (k * 6)).wrapping_add_signed(d)),
        3 => 0u64..20,
        2 => 0u64..5000,
        1 => (0u64..3).prop_map(|d| u64::MAX - d),
        1 => any::<u64>(),
    ]
}

/// Generates jumps that leave some of the range of u64.
fn jump() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => 0u64..70,
        4 => (0u32..17, -1i64..2).prop_map(|(k, d)| (1u64 << k).wrapping_add_signed(d)),
        2 => (17u32..49, -1i64..2).prop_map(|(k, d)| (1u64 << k).wrapping_add_signed(d)),
    ]
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        10 => edge().prop_map(Op::Insert),
        1 => (edge(), 0u64..40, any::<u8>()).prop_map(|(delay, apart, many)| Op::InsertMany(delay, apart, many)),
        1 => (0u64..3).prop_map(Op::InsertOverdue),
        1 => edge().prop_map(Op::InsertAt),
        2 => (0u32..64, -1i8..2).prop_map(|(k, beside)| Op::InsertAtEdge(k, beside)),
        4 => any::<usize>().prop_map(Op::Remove),
        1 => Just(Op::RemoveEarliest),
        1 => any::<usize>().prop_map(Op::RemoveStale),
        3 => jump().prop_map(Op::Advance),
        3 => (-1i8..2).prop_map(Op::AdvanceToNext),
        2 => (0u32..50, -1i8..2).prop_map(|(k, beside)| Op::AdvanceToEdge(k, beside)),
        1 => edge().prop_map(Op::AdvanceBack),
        1 => (jump(), 0usize..5).prop_map(|(by, after)| Op::AdvancePanicking(by, after)),
    ]
}

/// Generates numbers just below, at and just above a power of two, and any others.
pub(crate) fn uptime() -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => Just(0),
        6 => (0u32..64, 0u64..70).prop_map(|(k, d)| (1u64 << k).wrapping_sub(d)),
        1 => (0u64..70).prop_map(|d| u64::MAX - d),
        1 => any::<u64>(),
    ]
}
