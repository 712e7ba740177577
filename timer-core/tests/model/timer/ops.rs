//! What a case does: a list of operations, some of which tasks carry out later.

use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Schedule(Spawn),
    Cancel(Target),
    Reset(Target, When),
    ResetAt(Target, When),
    ExpireNow(Target),
    CancelAll(Vec<Target>),
    /// `new_timeouts`, of closures.
    ScheduleAll(Vec<Spawn>),
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
