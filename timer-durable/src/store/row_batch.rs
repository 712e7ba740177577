//! The operations of a transaction on rows, for a store whose database finds values by keys.
//!
//! [`calls`] has the operations that callers ask for, [`attempts`] those of attempts, and
//! [`queued`] the calls that wait for the end of an attempt. Only [`Rows`] touches the database.

mod attempts;
mod calls;
mod queued;

use super::dead_letter::DeadLetter;
use super::position::Position;
use super::row::Row;
use crate::TimeoutId;
use crate::time::Micros;
use crate::transaction::{Operation, Outcome};

/// The rows of a store in an open transaction, which a [`RowBatch`] reads and writes.
///
/// The methods see the earlier writes of the same transaction.
pub trait Rows {
    /// The failure of the database. The store then rolls the transaction back.
    type Error;

    /// Returns the row of a timeout or of a queued call.
    ///
    /// # Errors
    ///
    /// Fails if the database fails, as all methods do.
    fn get(&mut self, id: TimeoutId) -> Result<Option<Row>, Self::Error>;

    /// Returns the row that [holds](Row::held_key) the key.
    ///
    /// # Errors
    ///
    /// Fails if the database fails.
    fn holder(&mut self, topic: &str, key: &str) -> Result<Option<Row>, Self::Error>;

    /// Writes a row, which replaces the row with its id if there is one. The topic and the key of a
    /// row never change, but its [`position`](Row::position) may, and it may begin to hold its key.
    /// No other row holds this key.
    ///
    /// # Errors
    ///
    /// Fails if the database fails.
    fn put(&mut self, row: &Row) -> Result<(), Self::Error>;

    /// Removes a row. The row may not exist.
    ///
    /// # Errors
    ///
    /// Fails if the database fails.
    fn remove(&mut self, id: TimeoutId) -> Result<(), Self::Error>;

    /// Returns a dead letter.
    ///
    /// # Errors
    ///
    /// Fails if the database fails.
    fn letter(&mut self, id: TimeoutId) -> Result<Option<DeadLetter>, Self::Error>;

    /// Writes a new dead letter.
    ///
    /// # Errors
    ///
    /// Fails if the database fails.
    fn put_letter(&mut self, letter: &DeadLetter) -> Result<(), Self::Error>;

    /// Removes a dead letter.
    ///
    /// # Errors
    ///
    /// Fails if the database fails.
    fn remove_letter(&mut self, id: TimeoutId) -> Result<(), Self::Error>;

    /// Returns `true` if the id has a tombstone.
    ///
    /// # Errors
    ///
    /// Fails if the database fails.
    fn has_tombstone(&mut self, id: TimeoutId) -> Result<bool, Self::Error>;

    /// Leaves a tombstone. The store may remove some of those before
    /// [`oldest_repeatable`](TimeoutId::oldest_repeatable) at `now`.
    ///
    /// # Errors
    ///
    /// Fails if the database fails.
    fn put_tombstone(&mut self, id: TimeoutId, now: Micros) -> Result<(), Self::Error>;
}

/// The operations of one transaction, for a store that keeps [`Rows`].
///
/// It implements each [`Operation`]. A store whose database has a language of its own, such as SQL,
/// implements them in that language instead. A store makes a new batch for each transaction.
///
/// | method of the store | calls |
/// |---|---|
/// | [`write`](super::Store::write), [`write_all`](super::Store::write_all) | [`write`](Self::write), and [`finish`](Self::finish) |
/// | [`transact`](super::Store::transact) | [`finish`](Self::finish) after the work |
/// | [`StoreTransaction::execute`](super::StoreTransaction::execute) | [`execute`](Self::execute) |
#[derive(Clone, Debug)]
pub struct RowBatch {
    epoch: i64,
    /// The queued calls whose attempts have ended, but which have not taken effect yet.
    unsettled: Vec<TimeoutId>,
    /// The timeouts that queued calls have created or changed.
    settled: Vec<(Position, String)>,
}

impl RowBatch {
    /// Returns a batch without operations. `epoch` is the number of the instance, which is at least
    /// 1 and grows with each [`rejoin`](super::Store::rejoin). Its lower 32 bits are the
    /// [`instance`](super::Store::instance) of a store that uses this type.
    #[must_use]
    pub const fn new(epoch: i64) -> Self {
        Self { epoch, unsettled: Vec::new(), settled: Vec::new() }
    }

    /// Executes operations at `now`. After an operation that ends an attempt, the call that is
    /// queued beside the attempt takes effect. Returns one outcome for each operation.
    ///
    /// # Errors
    ///
    /// Returns the first error of `rows`.
    pub fn write<R: Rows>(
        &mut self,
        rows: &mut R,
        operations: &[Operation],
        now: Micros,
    ) -> Result<Vec<Outcome>, R::Error> {
        let execute = |operation: &Operation| {
            let outcome = self.execute(rows, operation, now)?;
            self.run(rows, now).settle()?;
            Ok(outcome)
        };
        operations.iter().map(execute).collect()
    }

    /// Executes one operation of the user's work at `now`. Queued calls take effect when the batch
    /// is [finished](Self::finish).
    ///
    /// # Errors
    ///
    /// Returns the error of `rows`. A part of the operation may be written then, and the work may
    /// ignore the error. So the store undoes the operation by a savepoint of its database, or lets
    /// each further operation and the commit fail.
    pub fn execute<R: Rows>(&mut self, rows: &mut R, operation: &Operation, now: Micros) -> Result<Outcome, R::Error> {
        self.run(rows, now).execute(operation)
    }

    /// Lets queued calls take effect if their attempts have ended. Returns the timeouts that queued
    /// calls of the whole batch have created or changed. After the commit, the store reports them
    /// by [`Upkeep::foreign`](super::Upkeep::foreign).
    ///
    /// # Errors
    ///
    /// Returns the error of `rows`.
    pub fn finish<R: Rows>(mut self, rows: &mut R, now: Micros) -> Result<Vec<(Position, String)>, R::Error> {
        self.run(rows, now).settle()?;
        Ok(self.settled)
    }

    fn run<'r, R: Rows>(&'r mut self, rows: &'r mut R, now: Micros) -> Run<'r, R> {
        Run { batch: self, rows, now }
    }
}

/// The execution of one operation.
struct Run<'r, R> {
    batch: &'r mut RowBatch,
    rows: &'r mut R,
    now: Micros,
}

impl<R: Rows> Run<'_, R> {
    fn execute(&mut self, operation: &Operation) -> Result<Outcome, R::Error> {
        match operation {
            Operation::Insert(insert) => self.insert(insert),
            Operation::Reset { target, due } => self.reset(target, *due),
            Operation::Cancel(target) => self.cancel(target),
            Operation::Done { id, attempt, next, then } => self.done(*id, *attempt, *next, then),
            Operation::Retry { id, attempt, due, forgive } => self.retry(*id, *attempt, *due, *forgive),
            Operation::Postpone { id, attempt, due, payload } => self.postpone(*id, *attempt, *due, payload.as_ref()),
            Operation::Bury { id, attempt, reason, next } => self.bury(*id, *attempt, reason, *next),
            Operation::Requeue { id, due, without_key } => self.requeue(*id, *due, *without_key),
            Operation::Purge(id) => self.purge(*id),
            Operation::Begin(id) => self.begin(*id),
        }
    }

    /// Returns the pending timeout that has a key.
    fn holder(&mut self, topic: &str, key: Option<&str>) -> Result<Option<Row>, R::Error> {
        key.map_or(Ok(None), |key| self.rows.holder(topic, key))
    }

    /// Returns the number that is part of the ids of this instance.
    const fn instance(&self) -> u32 {
        self.batch.epoch as u32
    }

    /// Moves a row. A retry keeps the time for which the run was planned.
    fn move_to(&mut self, mut row: Row, due: Micros, planned: Option<Micros>) -> Result<(), R::Error> {
        row.insert.due = due;
        row.planned = planned;
        self.rows.put(&row)
    }

    /// Ends the life of a timeout, and leaves a tombstone if somebody may insert its id again.
    fn end(&mut self, id: TimeoutId) -> Result<(), R::Error> {
        self.rows.remove(id)?;
        let is_repeatable = id.repeatable_until(self.instance()).is_some_and(|until| until > self.now);
        if is_repeatable { self.rows.put_tombstone(id, self.now) } else { Ok(()) }
    }
}
