//! The answers to calls.

use crate::TimeoutId;

/// The answer to a call that schedules a timeout with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScheduleAnswer {
    /// The call has created this timeout.
    Created(TimeoutId),
    /// The key has this pending timeout, which was left alone.
    Kept(TimeoutId),
    /// The key has this pending timeout, which was moved or updated.
    Moved(TimeoutId),
    /// The attempt of the key's timeout runs, and the call waits beside it under this id. It has
    /// its effect when the attempt has ended, see [`IfPending`](crate::IfPending).
    Queued(TimeoutId),
}

impl ScheduleAnswer {
    /// Returns the timeout that is pending after the call, or the call that is queued.
    #[must_use]
    pub const fn id(self) -> TimeoutId {
        match self {
            Self::Created(id) | Self::Kept(id) | Self::Moved(id) | Self::Queued(id) => id,
        }
    }
}

/// The answer to a cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "Cancelled")]
pub enum CancelAnswer {
    /// The timeout has ended. No attempt runs, and none will begin.
    Cancelled,
    /// An attempt has begun, and nothing was changed.
    Running,
    /// An attempt has begun and goes on. The call that was [queued](ScheduleAnswer::Queued) beside
    /// it was cancelled and has no effect.
    QueuedCancelled,
    /// No timeout is pending under this key or id.
    Unknown,
}

/// The answer to a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResetAnswer {
    /// The timeout has the new due time.
    Reset,
    /// An attempt has begun, and nothing was changed.
    Running,
    /// An attempt has begun and goes on. The call that is [queued](ScheduleAnswer::Queued) beside it
    /// has the new due time.
    QueuedReset,
    /// No timeout is pending under this key or id.
    Unknown,
}

/// The answer to a requeue of a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequeueAnswer {
    /// The dead letter is pending again and due now.
    Requeued,
    /// The key of the dead letter has this pending timeout, and nothing was changed.
    KeyTaken(TimeoutId),
    /// There is no such dead letter.
    Unknown,
}

/// The answer to a requeue of many dead letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequeueCounts {
    /// The dead letters that are pending again.
    pub requeued: u64,
    /// The dead letters that stay dead, because other timeouts have their keys.
    pub key_taken: u64,
}

/// The answer to a cancel of many timeouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CancelCounts {
    /// The timeouts and the queued calls that were cancelled.
    pub cancelled: u64,
    /// The timeouts whose attempts are running, which were left alone.
    pub running: u64,
}
