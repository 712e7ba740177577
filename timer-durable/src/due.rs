//! The view of a handler, which receives a due timeout and returns the outcome of the attempt.

use crate::TimeoutId;
use crate::engine::Link;
use crate::error::Error;
use crate::store::{Micros, StoreError};
use crate::work::on_connection;
use std::any::Any;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A timeout whose attempt has begun. A handler receives it.
///
/// # Examples
///
/// ```
/// use timer_durable::{Due, DurableTimer, Retry};
///
/// let builder = DurableTimer::builder().topic("order.close", |due: &Due<String>| -> Result<(), Retry> {
///     println!("closing {}, attempt {}, {:?} late", due.payload(), due.attempt(), due.lag());
///     Ok(())
/// });
/// ```
#[derive(Debug)]
pub struct Due<P> {
    pub(crate) payload: P,
    pub(crate) started: Started,
}

/// The facts about an attempt, which do not depend on the type of its payload.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) id: TimeoutId,
    pub(crate) topic: String,
    pub(crate) key: Option<String>,
    pub(crate) attempt: u32,
    pub(crate) due: Micros,
    pub(crate) begun: Micros,
    pub(crate) link: Link,
}

impl<P> Due<P> {
    /// Returns the payload.
    pub fn payload(&self) -> &P {
        &self.payload
    }

    /// Returns the payload by value.
    pub fn into_payload(self) -> P {
        self.payload
    }

    /// Returns the id, which is the same for all attempts. It serves as an idempotency key.
    pub fn id(&self) -> TimeoutId {
        self.started.id
    }

    /// Returns the topic.
    pub fn topic(&self) -> &str {
        &self.started.topic
    }

    /// Returns the key, or `None` if the timeout was scheduled without one.
    pub fn key(&self) -> Option<&str> {
        self.started.key.as_deref()
    }

    /// Returns the number of the attempt, from 1. It grows with each start and is never used twice
    /// for the same id, so it serves as a fencing token.
    pub fn attempt(&self) -> u32 {
        self.started.attempt
    }

    /// Returns the due time of the attempt on the store's clock. A retry and a wait for a handler
    /// move it.
    pub fn due(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_micros(u64::try_from(self.started.due).unwrap_or(0))
    }

    /// Returns how late the attempt has begun, on the store's clock.
    pub fn lag(&self) -> Duration {
        Duration::from_micros(u64::try_from(self.started.begun - self.started.due).unwrap_or(0))
    }

    /// Ends the attempt in one transaction with `work`, for an effect that happens exactly once.
    ///
    /// `work` receives the store's connection inside a transaction. The type `C` is the one that
    /// the store documents, `rusqlite::Connection` for SQLite. If `work` returns an error or
    /// panics, or if the attempt is no longer the last one, nothing is written. `work` follows the
    /// rules of [`with_connection`](crate::DurableTimer::with_connection).
    ///
    /// The call blocks until the transaction is durable. `work` runs on the keeper's thread and
    /// should only execute a few statements, because all other calls wait for it.
    ///
    /// # Errors
    ///
    /// - [`CompleteError::Fenced`] if the attempt is no longer the last one, or if another instance
    ///   has taken the timeout over. Return from the handler. Its result has no effect.
    /// - [`CompleteError::Failed`] if `work` or the store has failed and nothing was written.
    /// - [`CompleteError::OutcomeUnknown`] if the commit may or may not have been executed.
    pub fn complete_in<C: Any>(
        &self,
        work: impl FnOnce(&mut C) -> Result<(), Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
    ) -> Result<(), CompleteError> {
        self.started.link.complete_in(self.id(), self.attempt(), Box::new(on_connection(work)))
    }
}

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
///         return Err(Retry::bury("there is no order 0"));
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
    Bury,
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
    pub fn bury(reason: impl fmt::Display) -> Self {
        Self::cut(How::Bury, reason)
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
