//! The failures of an attempt.

use crate::error::Error;
use crate::store::StoreError;
use std::fmt;
use std::time::Duration;

/// An attempt that could not be ended in the user's transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompleteError {
    /// The attempt is no longer the last one, or another instance has taken the timeout over.
    /// Nothing was written.
    Fenced,
    /// The work or the store failed, and nothing was written.
    Failed(String),
    /// It is unknown whether the transaction was executed.
    OutcomeUnknown(String),
}

impl fmt::Display for CompleteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fenced => f.write_str("the attempt is not the last one any more"),
            Self::Failed(why) => write!(f, "nothing was written: {why}"),
            Self::OutcomeUnknown(why) => write!(f, "it is unknown whether the transaction was executed: {why}"),
        }
    }
}

impl std::error::Error for CompleteError {}

impl From<StoreError> for CompleteError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::InDoubt(why) => Self::OutcomeUnknown(why),
            StoreError::Fenced => Self::Fenced,
            other => Self::Failed(other.to_string()),
        }
    }
}

impl From<Error> for CompleteError {
    fn from(error: Error) -> Self {
        match error {
            Error::OutcomeUnknown { why, .. } => Self::OutcomeUnknown(why),
            error => Self::Failed(error.to_string()),
        }
    }
}

/// A failed attempt.
///
/// Every error converts to one, so that handlers can use the question mark. The attempt is then
/// repeated after the backoff of its topic, until the limit of attempts is reached. The first 64
/// KiB of a reason are kept.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_durable::{Due, Retry};
///
/// fn close(due: &Due<String>) -> Result<(), Retry> {
///     let number: u32 = due.payload().parse()?; // repeated after the backoff
///     if number == 0 {
///         return Err(Retry::dead("there is no order 0"));
///     }
///     if number > 1_000 {
///         return Err(Retry::after(Duration::from_secs(60), "the shop is closed"));
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    pub(crate) reason: String,
    pub(crate) how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Backoff,
    After(Duration),
    Dead,
}

/// The longest reason in bytes. It is written with the other parts of a batch, which it must not
/// delay.
const MAX_REASON: usize = 64 << 10;

impl Retry {
    fn cut(how: How, reason: impl fmt::Display) -> Self {
        let mut reason = reason.to_string();
        let end = (0..=reason.len().min(MAX_REASON)).rev().find(|end| reason.is_char_boundary(*end));
        reason.truncate(end.unwrap_or(0));
        Self { reason, how }
    }

    /// Repeats the attempt after the backoff of its topic.
    pub fn new(reason: impl fmt::Display) -> Self {
        Self::cut(How::Backoff, reason)
    }

    /// Repeats the attempt after `delay`.
    pub fn after(delay: Duration, reason: impl fmt::Display) -> Self {
        Self::cut(How::After(delay), reason)
    }

    /// Makes the timeout a dead letter at once.
    #[doc(alias = "bury")]
    pub fn dead(reason: impl fmt::Display) -> Self {
        Self::cut(How::Dead, reason)
    }

    /// Returns the reason.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl<E: std::error::Error> From<E> for Retry {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}
