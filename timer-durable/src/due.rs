//! A due timeout, as its handler receives it.

use crate::TimeoutId;
use crate::engine::Started;
use crate::retry::CompleteError;
use crate::work::on_connection;
use std::any::Any;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A timeout whose attempt has begun. A handler receives it.
///
/// # Examples
///
/// ```
/// use timer_durable::{Due, DurableTimer, Retry, Topic};
///
/// const CLOSE: Topic<String> = Topic::new("order.close");
///
/// let builder = DurableTimer::builder().topic(CLOSE, |due: &Due<String>| -> Result<(), Retry> {
///     println!("closing {}, attempt {}, {:?} late", due.payload(), due.attempt(), due.lag());
///     Ok(())
/// });
/// ```
#[derive(Debug)]
pub struct Due<P> {
    pub(crate) payload: P,
    pub(crate) started: Started,
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

    /// Returns `true` once the attempt is over, because it ran longer than the
    /// [time limit](crate::DurableTimerBuilder::time_limit) of its topic. The timeout has another
    /// attempt then, or is a dead letter, and the answer of this handler has no effect. A handler
    /// that may take long looks at this from time to time, and returns.
    pub fn is_cancelled(&self) -> bool {
        self.started.progress().is_cut_off()
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
        self.started.keeper.complete_in(self.id(), self.attempt(), Box::new(on_connection(work)))
    }
}
