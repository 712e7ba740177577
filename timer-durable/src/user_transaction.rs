//! Transactions of the user in the store of a timer.

use crate::TimeoutId;
use crate::answer::{CancelAnswer, ResetAnswer, ScheduleAnswer};
use crate::engine::{answer_of, insert};
use crate::error::Error;
use crate::message::{Answer, Request};
use crate::new_timeout::{NewTimeout, after, check_length, check_name};
use crate::payload::{AsPayload, Payload};
use crate::schedule::Schedule;
use crate::timer::{DurableTimer, by_key};
use crate::topic::Topic;
use crate::traces;
use crate::transaction::Operation;
use crate::work::{Transaction, Work, WorkError};
use std::future::Future;
use std::time::Duration;

/// The longest payload in bytes, as in the functions of PostgreSQL.
const MAX_PAYLOAD: usize = 1 << 20;

impl Transaction<'_> {
    /// Returns the connection to the file, inside the transaction.
    ///
    /// The names `meta`, `timeout`, `dead`, and those that begin with `timer_` or `timeout_by_`,
    /// belong to the store. A temporary table or view that hides a table of the store fails the
    /// transaction. Do not end the transaction by a statement.
    ///
    /// # Panics
    ///
    /// Panics if the store of the timer is no [`SqliteStore`](crate::SqliteStore). The transaction
    /// is rolled back then, and its caller gets an error.
    #[cfg(feature = "sqlite")]
    #[must_use]
    #[expect(clippy::expect_used, reason = "it is documented, and becomes an error of the caller")]
    pub fn connection(&self) -> &rusqlite::Connection {
        self.store.connection().expect("the store of this timer is no SQLite file, so it has no connection")
    }

    /// Schedules a timeout.
    ///
    /// # Errors
    ///
    /// As for [`schedule`](Self::schedule).
    pub fn new_timeout<P: Payload>(
        &mut self,
        topic: Topic<P>,
        delay: Duration,
        payload: &(impl AsPayload<P> + ?Sized),
    ) -> Result<TimeoutId, Error> {
        self.schedule(topic, Schedule::after(delay), payload).map(ScheduleAnswer::id)
    }

    /// Schedules a timeout with a key or with other rules. Its topic may have its handler in
    /// another program.
    ///
    /// In a handler, the key of its own timeout is taken until its attempt has ended, which
    /// [`Due::complete_with`](crate::Due::complete_with) does first.
    ///
    /// # Errors
    ///
    /// [`Error::TooLong`], [`Error::NulCharacter`], [`Error::ZeroPeriod`] and [`Error::Payload`]
    /// for arguments that are not allowed, [`Error::KeyTaken`], [`Error::IdTooOld`] and
    /// [`Error::Store`].
    pub fn schedule<P: Payload>(
        &mut self,
        topic: Topic<P>,
        schedule: Schedule,
        payload: &(impl AsPayload<P> + ?Sized),
    ) -> Result<ScheduleAnswer, Error> {
        check_name("topic", topic.name)?;
        schedule.key.as_deref().map_or(Ok(()), |key| check_name("key", key))?;
        schedule.traceparent.as_deref().map_or(Ok(()), |trace| check_name("traceparent", trace))?;
        if schedule.period == Some(0) {
            return Err(Error::ZeroPeriod);
        }
        let payload = payload.encode_as()?;
        check_length("payload", payload.len(), MAX_PAYLOAD)?;
        let Schedule { when, key, if_pending, id, period, max_lateness, traceparent } = schedule;
        let traceparent = traceparent.or_else(|| traces::created(topic.name));
        let new = NewTimeout::new(topic.name.into(), P::FORMAT, payload);
        let new = NewTimeout { when, key, if_pending, id, period, max_lateness, traceparent, ..new };
        self.execute(Operation::Insert(insert(new, self.now(), self.instance)))?.scheduled()
    }

    /// Cancels the pending timeout with this key.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store has failed.
    pub fn cancel<P>(&mut self, topic: Topic<P>, key: &str) -> Result<CancelAnswer, Error> {
        self.execute(Operation::Cancel(by_key(topic, key))).map(Answer::cancelled)
    }

    /// Moves the pending timeout with this key to `delay` from now.
    ///
    /// # Errors
    ///
    /// [`Error::DelayTooLong`], and [`Error::Store`] if the store has failed.
    pub fn reset<P>(&mut self, topic: Topic<P>, key: &str, delay: Duration) -> Result<ResetAnswer, Error> {
        let due = after(delay)?.from(self.now());
        self.execute(Operation::Reset { target: by_key(topic, key), due }).map(Answer::reset)
    }

    fn execute(&mut self, operation: Operation) -> Result<Answer, Error> {
        let outcome = self.store.execute(&operation)?;
        let answer = answer_of(&operation, &outcome);
        self.executed.push((operation, outcome));
        answer
    }
}

impl DurableTimer {
    /// Runs `work` in a transaction of the store and commits it if `work` returns a value. An
    /// order and the timeout that closes it are written together or not at all.
    ///
    /// The store is an [`SqliteStore`](crate::SqliteStore), whose file has the tables of the user
    /// as well, or a [`MemoryStore`](crate::MemoryStore), which has no tables. With a
    /// [`PostgresStore`](crate::PostgresStore), use the transaction of a driver, see
    /// [`Topic::schedule_in`].
    ///
    /// The call blocks until the transaction is durable. `work` runs on the keeper's thread and
    /// should only execute a few statements, because all other calls wait for it.
    ///
    /// # Errors
    ///
    /// [`Error::Work`] with the error or the panic of `work`, [`Error::Store`] with
    /// [`StoreError::Unsupported`](crate::StoreError::Unsupported) for another store, and [`Error::Stopped`]. Nothing was written.
    /// [`Error::OutcomeUnknown`] if the commit may or may not have been executed.
    ///
    /// # Examples
    ///
    #[cfg_attr(feature = "sqlite", doc = "```no_run")]
    #[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
    /// use std::time::Duration;
    /// use timer_durable::{Due, DurableTimer, SqliteStore, Topic};
    ///
    /// const CLOSE: Topic<String> = Topic::new("order.close");
    ///
    /// let builder = DurableTimer::builder().topic(CLOSE, |_: &Due<String>| Ok(()));
    /// let timer = builder.open(SqliteStore::open("shop.db")?)?;
    /// timer.transaction(|tx| {
    ///     tx.connection().execute("create table orders(number text primary key)", ())?;
    ///     tx.connection().execute("insert into orders values ('17')", ())?;
    ///     tx.new_timeout(CLOSE, Duration::from_secs(1800), "17")?;
    ///     Ok(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "with_connection")]
    pub fn transaction<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<R, WorkError> + Send + 'static,
    ) -> Result<R, Error> {
        let (work, result) = Work::new(work);
        result.of(self.call(Request::Transact(None, work)).map(drop))
    }

    /// The same as [`transaction`](Self::transaction), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`transaction`](Self::transaction).
    pub fn transaction_async<R: Send + 'static, W>(
        &self,
        work: W,
    ) -> impl Future<Output = Result<R, Error>> + Send + use<R, W>
    where
        W: FnOnce(&mut Transaction<'_>) -> Result<R, WorkError> + Send + 'static,
    {
        let (work, result) = Work::new(work);
        let call = self.call_async(Request::Transact(None, work));
        async move { result.of(call.await.map(drop)) }
    }
}
