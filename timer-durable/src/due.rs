//! A due timeout, as its handler receives it.

use crate::TimeoutId;
use crate::call::Call;
use crate::engine::Started;
use crate::work::{Transaction, Work, WorkError};
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

    /// Returns the id. It is the same for all attempts and serves as an idempotency key.
    pub fn id(&self) -> TimeoutId {
        self.started.id
    }

    /// Returns the topic.
    pub fn topic(&self) -> &str {
        &self.started.attempt.topic
    }

    /// Returns the key, or `None` if the timeout was scheduled without one.
    pub fn key(&self) -> Option<&str> {
        self.started.attempt.key.as_deref()
    }

    /// Returns the trace of the call that has scheduled the timeout, as a `traceparent` of the W3C,
    /// or `None` if the call was not traced, or the timeout was requeued.
    pub fn traceparent(&self) -> Option<&str> {
        self.started.attempt.traceparent.as_deref()
    }

    /// Returns the number of the attempt, from 1. It grows with each start and is never used twice
    /// for the same id, so it serves as a fencing token.
    pub fn attempt(&self) -> u32 {
        self.started.attempt.attempt
    }

    /// Returns the due time of the attempt on the store's clock. A retry and a wait for a handler
    /// move it.
    pub fn due(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_micros(u64::try_from(self.started.attempt.due).unwrap_or(0))
    }

    /// Returns how late the attempt has begun, on the store's clock.
    pub fn lag(&self) -> Duration {
        Duration::from_micros(u64::try_from(self.started.begun - self.started.attempt.due).unwrap_or(0))
    }

    /// Returns `true` once the attempt is over, because it ran longer than the
    /// [time limit](crate::DurableTimerBuilder::time_limit) of its topic. The timeout has another
    /// attempt then, or is a dead letter, and the answer of this handler has no effect. A handler
    /// that may take long looks at this from time to time, and returns.
    pub fn is_cancelled(&self) -> bool {
        self.started.progress().is_cut_off()
    }

    /// Runs `work` in a transaction of the store that ends the attempt, for an effect that happens
    /// exactly once. With PostgreSQL, use `complete_in` of its crate.
    ///
    /// If `work` returns an error or panics, or if the attempt is no longer the last one, nothing
    /// is written, and an `Ok` of the handler counts as a failed attempt, unless a later call
    /// succeeds. Otherwise the handler should return `Ok`, and its result has no effect. The work
    /// runs as that of [`DurableTimer::transaction`](crate::DurableTimer::transaction), and also if
    /// the handler does not wait for the [`Call`].
    ///
    /// # Errors
    ///
    /// - [`Error::Store`](crate::Error::Store) with
    ///   [`StoreError::Fenced`](crate::StoreError::Fenced) if the attempt is no longer the last one,
    ///   or if another instance has taken the timeout over. Return from the handler.
    /// - Otherwise as for [`DurableTimer::transaction`](crate::DurableTimer::transaction).
    pub fn complete_with<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<R, WorkError> + Send + 'static,
    ) -> Call<R> {
        let (work, result) = Work::new(work);
        let answer = self.started.keeper.transact(self.id(), self.attempt(), work);
        Call::sent(answer, |answer| result.of(answer.map(drop)))
    }

    /// Notes that a transaction outside of the timer ends the attempt if it is committed. From then
    /// on, an `Ok` of the handler does not end the timeout by itself. A crate that ends attempts by
    /// a driver calls this before it sends its statement.
    pub fn ends_elsewhere(&self) {
        self.started.keeper.end_in_transaction();
    }
}
