//! Transactions of the user in the store of a timer.

use crate::TimeoutId;
use crate::answer::{CancelAnswer, ResetAnswer, ScheduleAnswer};
use crate::call::Call;
use crate::engine::{answer_of, insert};
use crate::error::Error;
use crate::message::{Answer, Request};
use crate::payload::{AsPayload, Payload};
use crate::schedule::{Schedule, check_delay};
use crate::timer::{DurableTimer, by_key};
use crate::topic::Topic;
use crate::transaction::Operation;
use crate::work::{Transaction, Work, WorkError};
use std::time::Duration;

/// The longest payload in bytes, as in the functions of PostgreSQL.
const MAX_PAYLOAD: usize = 1 << 20;

impl Transaction<'_> {
    /// Schedules a timeout that is due `delay` from now. This is the short form of
    /// [`schedule`](Self::schedule).
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

    /// Schedules a timeout as the schedule describes it. Its topic may have its handler in another
    /// program.
    ///
    /// In a handler, the key of its own timeout is taken until its attempt has ended, which
    /// [`Due::complete_with`](crate::Due::complete_with) does first.
    ///
    /// # Errors
    ///
    /// [`Error::TooLong`], [`Error::NulCharacter`], [`Error::DelayTooLong`], [`Error::ZeroPeriod`],
    /// [`Error::Setting`] and [`Error::Payload`] for arguments that are not allowed,
    /// [`Error::KeyTaken`], [`Error::IdTooOld`] and [`Error::Store`].
    pub fn schedule<P: Payload>(
        &mut self,
        topic: Topic<P>,
        schedule: Schedule,
        payload: &(impl AsPayload<P> + ?Sized),
    ) -> Result<ScheduleAnswer, Error> {
        let new = topic.with(schedule.traced(topic.name), payload).check(MAX_PAYLOAD)?;
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
        let due = self.now().saturating_add(check_delay(delay)?);
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
    /// Runs `work` in a transaction of the store and commits it if `work` returns a value. Its
    /// timeouts are scheduled, cancelled and moved together or not at all.
    ///
    /// A store with tables of the user has a call of its own that also gives the connection, such
    /// as the handle of an SQLite file. With PostgreSQL, use the transaction of a driver instead.
    ///
    /// The call answers when the transaction is durable, with the value of `work`. `work` runs on
    /// the keeper's thread and should only execute a few statements, because all other calls wait
    /// for it.
    ///
    /// # Errors
    ///
    /// [`Error::Work`] with the error or the panic of `work`, [`Error::Store`] with
    /// [`StoreError::Unsupported`](crate::StoreError::Unsupported) for a store without such
    /// transactions, and [`Error::Stopped`]. Nothing was written. [`Error::OutcomeUnknown`] if the
    /// commit may or may not have been executed.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_durable::{Due, DurableTimer, MemoryStore, Topic};
    ///
    /// const REMIND: Topic<String> = Topic::new("order.remind");
    /// const CLOSE: Topic<String> = Topic::new("order.close");
    ///
    /// let builder = DurableTimer::builder().topic(CLOSE, |_: &Due<String>| Ok(()));
    /// let (timer, mut driver) = builder.topic(REMIND, |_| Ok(())).build_manual(MemoryStore::new())?;
    /// timer.transaction(|tx| {
    ///     tx.new_timeout(REMIND, Duration::from_secs(900), "17")?;
    ///     tx.new_timeout(CLOSE, Duration::from_secs(1800), "17")?;
    ///     Ok(())
    /// })
    /// .wait()?;
    /// assert_eq!(driver.advance(Duration::from_secs(1800)), 2);
    /// # Ok::<(), timer_durable::Error>(())
    /// ```
    pub fn transaction<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<R, WorkError> + Send + 'static,
    ) -> Call<R> {
        let (work, result) = Work::new(work);
        self.inner.client.call(Request::Transact(None, work), |answer| result.of(answer.map(drop)))
    }
}
