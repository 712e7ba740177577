//! The answers to calls that change a timeout.

use crate::message::Answer;

/// The answer to a cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cancelled {
    /// The timeout has ended. No attempt runs, and none will begin.
    Cancelled,
    /// An attempt has begun, and nothing was changed.
    Running,
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
    /// No timeout is pending under this key or id.
    Unknown,
}

pub(crate) fn cancelled(answer: Answer) -> Cancelled {
    match answer {
        Answer::Changed | Answer::Scheduled(_) => Cancelled::Cancelled,
        Answer::Running => Cancelled::Running,
        Answer::Unknown => Cancelled::Unknown,
    }
}

pub(crate) fn reset(answer: Answer) -> ResetAnswer {
    match answer {
        Answer::Changed | Answer::Scheduled(_) => ResetAnswer::Reset,
        Answer::Running => ResetAnswer::Running,
        Answer::Unknown => ResetAnswer::Unknown,
    }
}
