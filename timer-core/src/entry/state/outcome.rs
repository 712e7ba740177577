//! The outcomes of transitions of the state word.

use crate::deadline::Deadline;

/// The outcome of an attempt to expire an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Due<T> {
    /// The caller has won. Contains the deadline, or the right to the task.
    Won(T),
    /// A `reset` has moved the entry to this deadline. The caller must link it again.
    Later(Deadline),
    /// The entry is in another state, because it was cancelled or another thread has won it.
    Gone,
}

impl<T> Due<T> {
    #[inline]
    pub(in crate::entry) fn won<U>(self, right: impl FnOnce(T) -> U) -> Due<U> {
        match self {
            Due::Won(deadline) => Due::Won(right(deadline)),
            Due::Later(deadline) => Due::Later(deadline),
            Due::Gone => Due::Gone,
        }
    }
}

/// The outcome of `cancel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Cancel {
    /// Won, with the task. The entry is linked, or a step of the wheel has just taken it out.
    WasWaiting,
    /// Won, with the task. The entry may be in no wheel.
    WasUnlinked,
    /// Won, with the task. The worker's batch or the backlog keeps a reference to the entry, which
    /// has no effect.
    WasQueued,
    /// Won, but a run is in progress and drops the task when it returns.
    WasRunning,
    /// Lost, because the timeout had ended.
    Lost,
}

/// The outcome of `reset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Reset {
    /// Moved. The caller must link the entry under the new deadline.
    MustLink,
    /// Moved out of the executor's queue. The caller must link the entry under the new deadline.
    WasQueued,
    /// Moved. The wheel or a run in progress will find the new deadline.
    Done,
    /// Lost, because the timeout had ended. A call that brings a timeout forward also loses if the
    /// timeout is due or queued.
    Lost,
}
