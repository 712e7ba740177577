//! Transactions of the user.

use super::clock::Clock;
use super::failed;
use super::rows::{self, Instance};
use rusqlite::Connection;
use timer_durable::StoreError;
use timer_durable::store::{Micros, StoreTransaction};
use timer_durable::transaction::{Operation, Outcome};

/// A transaction of the user, with the operations that it has executed.
pub(super) struct OpenTransaction<'c> {
    pub(super) connection: &'c Connection,
    clock: &'c Clock,
    epoch: i64,
    pub(super) operations: Vec<Operation>,
    pub(super) outcomes: Vec<Outcome>,
}

impl<'c> OpenTransaction<'c> {
    pub(super) fn new(connection: &'c Connection, clock: &'c Clock, epoch: i64) -> Self {
        Self { connection, clock, epoch, operations: Vec::new(), outcomes: Vec::new() }
    }
}

impl StoreTransaction for OpenTransaction<'_> {
    fn execute(&mut self, operation: &Operation) -> Result<Outcome, StoreError> {
        let instance = Instance { epoch: self.epoch, now: self.clock.now() };
        // A savepoint undoes an operation that fails half-way.
        let outcome = rows::execute_in_savepoint(self.connection, operation, instance).map_err(failed)?;
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
