//! Random cases for proptest.

use super::edges;
use super::executors::Mode;
use super::ops::{Kind, Op, Spawn, Target, When};
use super::run::{End, SLOTS, Setup};
use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Duration;
use timer_core::{MissedTickBehavior, WheelKind};

pub(crate) fn hierarchical() -> impl Strategy<Value = Setup> {
    setup(Just(WheelKind::Hierarchical))
}

pub(crate) fn hashed() -> impl Strategy<Value = Setup> {
    setup(prop::sample::select(&SLOTS[..]).prop_map(|ticks_per_wheel| WheelKind::Hashed { ticks_per_wheel }))
}

fn setup(wheel: impl Strategy<Value = WheelKind>) -> impl Strategy<Value = Setup> {
    let bound = prop_oneof![2 => Just(None), 1 => (1usize..12).prop_map(Some)];
    let end = prop::sample::select(&End::ALL[..]);
    let missed_runs =
        prop::sample::select(&[MissedTickBehavior::Skip, MissedTickBehavior::Burst, MissedTickBehavior::Delay][..]);
    let mode = prop::sample::select(&Mode::ALL[..]);
    (wheel, mode, uptime(), bound, missed_runs, end).prop_map(|(wheel, mode, uptime, bound, missed_runs, end)| Setup {
        wheel,
        mode,
        uptime,
        bound,
        missed_runs,
        end,
    })
}

/// Generates 2^k and its neighbors, in units or in nanoseconds.
fn edge() -> impl Strategy<Value = Duration> {
    (prop::sample::select(&edges::UNITS[..]), 0..=edges::TOP, -1i8..=1, any::<bool>())
        .prop_map(|(unit, k, beside, in_units)| edges::edge(unit, k, beside, in_units))
}

/// Generates delays, most of which are short, so that timeouts meet.
fn delay() -> impl Strategy<Value = Duration> {
    prop_oneof![
        2 => Just(Duration::ZERO),
        8 => (0u64..150).prop_map(Duration::from_nanos),
        2 => (0u64..5).prop_map(Duration::from_millis),
        8 => edge(),
        1 => Just(Duration::MAX),
    ]
}

/// Generates the distances by which time moves.
fn jump() -> impl Strategy<Value = Duration> {
    prop_oneof![
        2 => Just(Duration::ZERO),
        8 => (0u64..70).prop_map(Duration::from_nanos),
        2 => (0u64..3_000_000).prop_map(Duration::from_nanos),
        3 => edge(),
        // Time stands still at the end of time.
        1 => (0u32..4).prop_map(|sooner| if sooner == 0 { Duration::MAX } else { Duration::ZERO }),
    ]
}

/// Generates uptimes just below, at and just above a power of two, and zero.
fn uptime() -> impl Strategy<Value = Duration> {
    prop_oneof![
        2 => Just(Duration::ZERO),
        6 => (edge(), 0u64..70).prop_map(|(edge, before)| edge.saturating_sub(Duration::from_nanos(before))),
        2 => edge(),
    ]
}

fn target() -> impl Strategy<Value = Target> {
    prop_oneof![
        3 => any::<usize>().prop_map(Target::Any),
        6 => any::<usize>().prop_map(Target::Waiting),
        2 => Just(Target::Own),
    ]
}

fn when() -> impl Strategy<Value = When> {
    prop_oneof![
        6 => delay().prop_map(When::In),
        3 => (any::<usize>(), -1i64..=1).prop_map(|(whom, by)| When::Beside(whom, by)),
        1 => delay().prop_map(When::Ago),
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        4 => Just(Kind::Once),
        3 => Just(Kind::At),
        3 => Just(Kind::Task),
        2 => delay().prop_map(Kind::Rate),
        2 => delay().prop_map(Kind::Delay),
    ]
}

fn spawn(run: BoxedStrategy<Vec<Op>>, end: BoxedStrategy<Vec<Op>>) -> impl Strategy<Value = Spawn> {
    let one_in = |n: u32| (0..n).prop_map(move |it| it + 1 == n);
    (kind(), when(), run, end, one_in(12), one_in(12), 1u32..9).prop_map(
        |(kind, when, run, end, panics, hook_panics, runs)| Spawn { kind, when, run, end, panics, hook_panics, runs },
    )
}

/// Generates the operations of a task or a hook. At depth 0 they schedule nothing.
fn inner_ops(depth: u32, most: usize) -> BoxedStrategy<Vec<Op>> {
    let ops = prop_oneof![
        3 => target().prop_map(Op::Cancel),
        4 => (target(), when()).prop_map(|(target, when)| Op::Reset(target, when)),
        1 => target().prop_map(Op::Forget),
        1 => Just(Op::Stop),
        1 => target().prop_map(Op::ExpireNow),
        1 => (target(), when()).prop_map(|(target, when)| Op::ResetAt(target, when)),
        1 => vec(target(), 0..5).prop_map(Op::CancelAll),
    ];
    let some = match depth {
        0 => vec(ops, 0..=most).boxed(),
        _ => {
            let spawn = spawn(inner_ops(depth - 1, 2), inner_ops(0, 1)).prop_map(Op::Schedule);
            vec(prop_oneof![ops, spawn], 0..=most).boxed()
        }
    };
    prop_oneof![2 => Just(Vec::new()), 3 => some].boxed()
}

/// Generates an outer operation.
fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => spawn(inner_ops(2, 3), inner_ops(1, 2)).prop_map(Op::Schedule),
        4 => target().prop_map(Op::Cancel),
        5 => (target(), when()).prop_map(|(target, when)| Op::Reset(target, when)),
        1 => target().prop_map(Op::Forget),
        1 => Just(Op::Stop),
        5 => jump().prop_map(Op::Advance),
        4 => (-1i64..=1).prop_map(Op::AdvanceToNext),
        3 => any::<usize>().prop_map(Op::RunQueued),
        1 => any::<usize>().prop_map(Op::DropQueued),
        1 => target().prop_map(Op::ExpireNow),
        2 => (target(), when()).prop_map(|(target, when)| Op::ResetAt(target, when)),
        1 => vec(target(), 0..5).prop_map(Op::CancelAll),
        2 => vec(spawn(inner_ops(1, 2), inner_ops(0, 1)).prop_map(|spawn| Spawn { kind: Kind::Once, ..spawn }), 0..6)
            .prop_map(Op::ScheduleAll),
    ]
}

pub(crate) fn program() -> impl Strategy<Value = Vec<Op>> {
    vec(op(), 0..60)
}

/// Generates durations from 2^`least` ns on, every magnitude with the same probability.
fn magnitudes(least: u32, most: u32) -> impl Strategy<Value = Duration> {
    (least..most).prop_flat_map(|bit| (1u64 << bit)..(2u64 << bit)).prop_map(Duration::from_nanos)
}

/// Generates years of timeouts of all magnitudes, many of which are moved before they run. Time
/// hops from expiry to expiry, and jumps over up to two months.
pub(crate) fn years() -> impl Strategy<Value = Vec<Op>> {
    let far = || magnitudes(10, 58).prop_map(When::In);
    let kind = prop_oneof![
        6 => Just(Kind::Once),
        1 => magnitudes(44, 54).prop_map(Kind::Rate),
        1 => magnitudes(44, 54).prop_map(Kind::Delay),
    ];
    let spawn = move |run| {
        (kind.clone(), far(), run, 1u32..9).prop_map(|(kind, when, run, runs)| Spawn {
            kind,
            when,
            run,
            end: Vec::new(),
            panics: false,
            hook_panics: false,
            runs,
        })
    };
    let next = spawn(Just(Vec::new()).boxed()).prop_map(Op::Schedule);
    let op = prop_oneof![
        6 => spawn(vec(next, 0..=1).boxed()).prop_map(Op::Schedule),
        1 => target().prop_map(Op::Cancel),
        4 => (target(), far()).prop_map(|(target, when)| Op::Reset(target, when)),
        8 => Just(Op::AdvanceToNext(0)),
        2 => magnitudes(10, 41).prop_map(Op::Advance),
        1 => magnitudes(41, 52).prop_map(Op::Advance),
    ];
    vec(op, 0..300)
}
