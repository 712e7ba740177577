//! Transactions of the user.

use super::failed;
use super::queued::QueuedCalls;
use super::rows::{self, Instance};
use super::tombstones::Tombstones;
use rusqlite::Connection;
use timer_durable::StoreError;
use timer_durable::store::{Micros, StoreClock, StoreTransaction};
use timer_durable::transaction::{Operation, Outcome};

/// A transaction of the user, with the operations that it has executed.
pub(super) struct OpenTransaction<'c> {
    pub(super) connection: &'c Connection,
    clock: &'c StoreClock,
    epoch: i64,
    pub(super) operations: Vec<Operation>,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) calls: QueuedCalls,
}

impl<'c> OpenTransaction<'c> {
    pub(super) fn new(connection: &'c Connection, clock: &'c StoreClock, epoch: i64) -> Self {
        let calls = QueuedCalls::default();
        Self { connection, clock, epoch, operations: Vec::new(), outcomes: Vec::new(), calls }
    }

    /// Lets queued calls take effect when the work is done.
    pub(super) fn settle(&mut self) -> Result<(), StoreError> {
        self.calls.settle(Tombstones::new(self.connection, self.epoch, self.clock.now())).map_err(failed)
    }
}

impl StoreTransaction for OpenTransaction<'_> {
    fn execute(&mut self, operation: &Operation) -> Result<Outcome, StoreError> {
        let instance = Instance { epoch: self.epoch, now: self.clock.now(), is_in_work: true };
        // A savepoint undoes an operation that fails half-way.
        let outcome = rows::execute_in_savepoint(self.connection, operation, instance, &mut self.calls);
        let outcome = outcome.map_err(failed)?;
        self.operations.push(operation.clone());
        self.outcomes.push(outcome.clone());
        Ok(outcome)
    }

    fn time(&self) -> Option<Micros> {
        Some(self.clock.now())
    }
}

/// Returns an error if a temporary table or view hides a table of the store.
pub(super) fn check_names(connection: &Connection) -> Result<(), StoreError> {
    let hidden = "select name from temp.sqlite_schema where type in ('table', 'view')
                  and name like 'timer\\_%' escape '\\'";
    match connection.prepare_cached(hidden).and_then(|mut hidden| hidden.query_row([], |row| row.get::<_, String>(0))) {
        Err(rusqlite::Error::QueryReturnedNoRows) => Ok(()),
        Ok(name) => Err(StoreError::Failed(format!("the temporary `{name}` has the name of a table of the store"))),
        Err(error) => Err(failed(error)),
    }
}
