//! What a case does: a list of operations, some of which tasks carry out later.

use crate::edges;
use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Schedule(Spawn),
    Cancel(Target),
    Reset(Target, When),
    /// Drops the handle; the timeout goes on.
    Forget(Target),
    /// `Timer::stop`, which belongs to the driver here.
    Stop,
    // Not in tasks:
    Advance(Duration),
    /// To so many nanoseconds before or after the next expiry.
    AdvanceToNext(i64),
    /// One of the tasks that wait in the executor's queue.
    RunQueued(usize),
    DropQueued(usize),
}

/// A timeout to be.
#[derive(Clone, Debug)]
pub(crate) struct Spawn {
    pub(crate) kind: Kind,
    pub(crate) when: When,
    /// What its task does.
    pub(crate) run: Vec<Op>,
    /// What its hook does if it has one, else what happens when its captures are dropped.
    pub(crate) end: Vec<Op>,
    /// Its task ends in a panic.
    pub(crate) panics: bool,
    /// Its hook ends in a panic.
    pub(crate) hook_panics: bool,
    /// A periodic one cancels itself in the last of so many runs.
    pub(crate) runs: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Once,
    /// `new_timeout_at`.
    At,
    /// `new_timeout_task`.
    Task,
    Rate(Duration),
    Delay(Duration),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    In(Duration),
    /// With a waiting timeout, or so many nanoseconds beside it.
    Beside(usize, i64),
    /// Before now, where a deadline is asked for; else now.
    Ago(Duration),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    Any(usize),
    Waiting(usize),
    /// In a task: its own timeout.
    Own,
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
        6 => edges::delay().prop_map(When::In),
        3 => (any::<usize>(), -1i64..=1).prop_map(|(whom, by)| When::Beside(whom, by)),
        1 => edges::delay().prop_map(When::Ago),
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        4 => Just(Kind::Once),
        3 => Just(Kind::At),
        3 => Just(Kind::Task),
        2 => edges::delay().prop_map(Kind::Rate),
        2 => edges::delay().prop_map(Kind::Delay),
    ]
}

fn spawn(run: BoxedStrategy<Vec<Op>>, end: BoxedStrategy<Vec<Op>>) -> impl Strategy<Value = Spawn> {
    let one_in = |n: u32| (0..n).prop_map(move |it| it + 1 == n);
    (kind(), when(), run, end, one_in(12), one_in(12), 1u32..9).prop_map(
        |(kind, when, run, end, panics, hook_panics, runs)| Spawn { kind, when, run, end, panics, hook_panics, runs },
    )
}

/// What a task or a hook may do; tasks of tasks of `depth` do nothing.
fn within(depth: u32, most: usize) -> BoxedStrategy<Vec<Op>> {
    let ops = prop_oneof![
        3 => target().prop_map(Op::Cancel),
        4 => (target(), when()).prop_map(|(target, when)| Op::Reset(target, when)),
        1 => target().prop_map(Op::Forget),
        1 => Just(Op::Stop),
    ];
    let some = match depth {
        0 => vec(ops, 0..=most).boxed(),
        _ => {
            let spawn = spawn(within(depth - 1, 2), within(0, 1)).prop_map(Op::Schedule);
            vec(prop_oneof![ops, spawn], 0..=most).boxed()
        }
    };
    prop_oneof![2 => Just(Vec::new()), 3 => some].boxed()
}

/// One operation from outside.
fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => spawn(within(2, 3), within(1, 2)).prop_map(Op::Schedule),
        4 => target().prop_map(Op::Cancel),
        5 => (target(), when()).prop_map(|(target, when)| Op::Reset(target, when)),
        1 => target().prop_map(Op::Forget),
        1 => Just(Op::Stop),
        5 => edges::jump().prop_map(Op::Advance),
        4 => (-1i64..=1).prop_map(Op::AdvanceToNext),
        3 => any::<usize>().prop_map(Op::RunQueued),
        1 => any::<usize>().prop_map(Op::DropQueued),
    ]
}

pub(crate) fn program() -> impl Strategy<Value = Vec<Op>> {
    vec(op(), 0..60)
}
