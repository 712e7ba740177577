//! The operations of a case. Tasks perform some of them later.

use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Schedule(Spawn),
    Cancel(Target),
    Reset(Target, When),
    ResetAt(Target, When),
    ExpireNow(Target),
    ResetPeriod(Target, Duration),
    CancelAll(Vec<Target>),
    /// Calls `new_timeouts` with closures.
    ScheduleAll(Vec<Spawn>),
    /// Drops the handle, while the timeout goes on.
    Forget(Target),
    /// Calls `Timer::stop`, which fails because the driver stops this timer.
    Stop,
    // The following operations are not for tasks.
    Advance(Duration),
    /// Moves time to beside the next expiry, with an offset in nanoseconds.
    AdvanceToNext(i64),
    /// Runs one of the tasks in the executor's queue.
    RunQueued(usize),
    DropQueued(usize),
}

/// A timeout to schedule.
#[derive(Clone, Debug)]
pub(crate) struct Spawn {
    pub(crate) kind: Kind,
    pub(crate) when: When,
    /// The operations of its task.
    pub(crate) run: Vec<Op>,
    /// The operations of its hook if it has one, or else of the drop of its captures.
    pub(crate) end: Vec<Op>,
    /// Whether its task ends in a panic.
    pub(crate) panics: bool,
    /// Whether its hook ends in a panic.
    pub(crate) hook_panics: bool,
    /// The run in which a periodic timeout cancels itself.
    pub(crate) runs: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Once,
    /// Scheduled by `new_timeout_at`.
    At,
    /// Scheduled by `new_timeout_task`.
    Task,
    Rate(Duration),
    Delay(Duration),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    In(Duration),
    /// At the deadline of a waiting timeout, or that many nanoseconds beside it.
    Beside(usize, i64),
    /// Before now if a deadline is given, or else now.
    Ago(Duration),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    Any(usize),
    Waiting(usize),
    /// The timeout of the running task.
    Own,
}
