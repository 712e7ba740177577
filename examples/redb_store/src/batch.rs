//! The operations of a transaction, from its start until the store commits it.

use crate::file::failed;
use crate::rows::RedbRows;
use crate::tables::{FLOOR, META};
use redb::{Error, WriteTransaction};
use timer_durable::StoreError;
use timer_durable::store::{Micros, Position, RowBatch, StoreClock, StoreTransaction};
use timer_durable::transaction::{Operation, Outcome};

pub(crate) struct Batch<'t> {
    transaction: &'t WriteTransaction,
    rows: RedbRows<'t>,
    operations: RowBatch,
    clock: &'t StoreClock,
    /// The error of an operation, which may have written a part of its rows.
    intact: Result<(), StoreError>,
}

/// The values that the store keeps in memory after the commit.
pub(crate) struct Written {
    /// The number of rows.
    pub(crate) pending: u64,
    /// The timeouts that queued calls have created or changed.
    pub(crate) settled: Vec<(Position, String)>,
}

impl<'t> Batch<'t> {
    pub(crate) fn open(
        transaction: &'t WriteTransaction,
        epoch: i64,
        clock: &'t StoreClock,
    ) -> Result<Self, StoreError> {
        let rows = RedbRows::open(transaction).map_err(failed)?;
        Ok(Self { transaction, rows, operations: RowBatch::new(epoch), clock, intact: Ok(()) })
    }

    pub(crate) fn write(&mut self, operations: &[Operation]) -> Result<Vec<Outcome>, StoreError> {
        self.operations.write(&mut self.rows, operations, self.clock.now()).map_err(failed)
    }

    /// Ends the batch, so that its transaction can be committed. Fails if an operation has failed,
    /// because the user's work may have ignored that.
    pub(crate) fn finish(mut self) -> Result<Written, StoreError> {
        self.intact?;
        let now = self.clock.now();
        let finish = || {
            let settled = self.operations.finish(&mut self.rows, now)?;
            self.transaction.open_table(META)?.insert(FLOOR, now)?;
            Ok(Written { pending: self.rows.count()?, settled })
        };
        finish().map_err(failed::<Error>)
    }
}

impl StoreTransaction for Batch<'_> {
    fn execute(&mut self, operation: &Operation) -> Result<Outcome, StoreError> {
        self.intact.clone()?;
        let outcome = self.operations.execute(&mut self.rows, operation, self.clock.now()).map_err(failed);
        self.intact = outcome.as_ref().map(drop).map_err(StoreError::clone);
        outcome
    }

    fn time(&self) -> Option<Micros> {
        Some(self.clock.now())
    }
}
