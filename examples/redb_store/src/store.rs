//! The implementation of the trait of stores.

use crate::batch::Batch;
use crate::file::{self, File, OpenError, failed};
use crate::reader::{RedbReader, View};
use crate::tables::{EPOCH, META, PAUSED, TIMEOUTS};
use redb::{Error, ReadableTable, ReadableTableMetadata, WriteTransaction};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use timer_durable::store::{
    Connect, Micros, Position, Reader, Store, StoreClock, StoredPending, TransactionWork, Upkeep,
};
use timer_durable::transaction::{Operation, Outcome, Target, are_accepted};
use timer_durable::{Counts, DeadLetter, Filter, PendingRow, StoreError, TimeoutId, TopicDue};

/// The longest sleep of the keeper while timeouts wait for the wall clock. Nothing tells the keeper
/// when the clock steps forward or when the machine was suspended.
const MAX_SLEEP: Duration = Duration::from_secs(30);

/// A store of timeouts in a file of redb.
#[derive(Debug)]
pub struct RedbStore {
    file: Arc<File>,
    reader: RedbReader,
    clock: StoreClock,
    /// The number of this instance. An attempt with an earlier number belongs to a process that has
    /// ended.
    epoch: i64,
    pending: u64,
    /// The timeouts that queued calls have created or changed, for the next upkeep.
    settled: Vec<(Position, String)>,
}

impl RedbStore {
    /// Opens a file, or creates it.
    ///
    /// # Errors
    ///
    /// [`OpenError`] if the file is in use, or if it cannot be used.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let file = Arc::new(File::new(path.as_ref()));
        let clock = StoreClock::new(file.open()?);
        let reader = RedbReader::new(file.clone(), clock.clone());
        Ok(Self { file, reader, clock, epoch: 0, pending: 0, settled: Vec::new() })
    }

    /// Executes `body` in a transaction.
    fn execute<T>(&self, body: impl FnOnce(&WriteTransaction) -> Result<T, Error>) -> Result<T, StoreError> {
        let transaction = self.file.begin_write()?;
        let result = body(&transaction).map_err(failed)?;
        file::commit(transaction, self.clock.is_virtual())?;
        Ok(result)
    }

    /// Executes a batch, and commits it if `is_accepted` is true of the result.
    fn execute_batch<T>(
        &mut self,
        body: impl FnOnce(&mut Batch<'_>, &WriteTransaction) -> Result<T, StoreError>,
        is_accepted: impl FnOnce(&T) -> bool,
    ) -> Result<T, StoreError> {
        let transaction = self.file.begin_write()?;
        let mut batch = Batch::open(&transaction, self.epoch, &self.clock)?;
        let result = body(&mut batch, &transaction)?;
        let written = batch.finish()?;
        if is_accepted(&result) {
            file::commit(transaction, self.clock.is_virtual())?;
            self.pending = written.pending;
            self.settled.extend(written.settled);
        }
        Ok(result)
    }
}

/// Closes the file when the store is dropped, so that it is free for its next owner even while a
/// reader exists.
impl Drop for RedbStore {
    fn drop(&mut self) {
        self.file.close();
    }
}

impl Store for RedbStore {
    fn describe(&self) -> String {
        format!("redb:{}", self.file.path().display())
    }

    fn instance(&self) -> u32 {
        self.epoch as u32
    }

    fn now(&self) -> Micros {
        self.clock.now()
    }

    fn time_until(&self, time: Micros) -> Duration {
        self.clock.time_until(time)
    }

    fn max_sleep(&self) -> Option<Duration> {
        (!self.clock.is_virtual()).then_some(MAX_SLEEP)
    }

    fn advance_time(&mut self, by: Duration) -> Result<(), StoreError> {
        self.clock.advance(by);
        Ok(())
    }

    fn lease_end(&self) -> Option<Instant> {
        None
    }

    fn rejoin(&mut self) -> Result<(), StoreError> {
        if self.epoch > 0 {
            let floor = self.file.open().map_err(|error| StoreError::Disconnected(error.to_string()))?;
            // Another process may have had the file in between.
            self.clock.raise_to(floor);
        }
        let raise = |transaction: &WriteTransaction| {
            let mut meta = transaction.open_table(META)?;
            let epoch = meta.get(EPOCH)?.map_or(0, |epoch| epoch.value()) + 1;
            meta.insert(EPOCH, epoch)?;
            Ok((epoch, transaction.open_table(TIMEOUTS)?.len()?))
        };
        let (epoch, pending) = self.execute(raise)?;
        self.epoch = epoch;
        self.pending = pending;
        Ok(())
    }

    fn write(&mut self, batch: &[Operation], _: Instant) -> Result<Vec<Outcome>, StoreError> {
        self.execute_batch(|open, _| open.write(batch), |_| true)
    }

    fn write_all(&mut self, inserts: &[Operation]) -> Result<Vec<Outcome>, StoreError> {
        self.execute_batch(|open, _| open.write(inserts), |outcomes| are_accepted(inserts, outcomes))
    }

    /// Gives the work the transaction, in which it can open tables of its own.
    fn transact(&mut self, work: TransactionWork<'_>) -> Result<(), StoreError> {
        self.execute_batch(|open, transaction| work(open, Some(transaction)), |()| true)
    }

    fn load(
        &mut self,
        topic: &str,
        range: Range<Position>,
        max: usize,
        out: &mut Vec<Position>,
    ) -> Result<Position, StoreError> {
        let epoch = self.epoch;
        let place = |position: Position| (topic, position.due, position.id.as_u128());
        self.reader.read(|view| {
            let most = out.len() + max;
            for entry in view.lists.range(place(range.start)..place(range.end))? {
                let (place, begun) = entry?;
                let (_, due, id) = place.value();
                let position = Position { due, id: TimeoutId::from_u128(id) };
                if out.len() == most {
                    return Ok(position);
                }
                if begun.value() < epoch {
                    out.push(position);
                }
            }
            Ok(range.end)
        })
    }

    fn topics(&mut self) -> Result<Vec<String>, StoreError> {
        self.reader.read(View::topics)
    }

    fn set_paused(&mut self, topic: &str, is_paused: bool) -> Result<(), StoreError> {
        self.execute(|transaction| {
            let mut paused = transaction.open_table(PAUSED)?;
            if is_paused {
                paused.insert(topic, ())?;
            } else {
                paused.remove(topic)?;
            }
            Ok(())
        })
    }

    fn paused_topics(&mut self) -> Result<Vec<String>, StoreError> {
        self.reader.read(View::paused)
    }

    fn connect_reader(&self) -> Option<Connect> {
        let reader = self.reader.clone();
        Some(Box::new(move || Ok(Box::new(reader.clone()))))
    }

    fn pending(&self) -> Option<u64> {
        Some(self.pending)
    }

    fn next_upkeep(&self) -> Option<Instant> {
        (!self.settled.is_empty()).then(Instant::now)
    }

    /// Reports the timeouts that queued calls have created or changed.
    fn upkeep(&mut self, _: &[TimeoutId]) -> Result<Upkeep, StoreError> {
        let mut upkeep = Upkeep::default();
        upkeep.foreign = std::mem::take(&mut self.settled);
        Ok(upkeep)
    }
}

/// The reads of the keeper, which are those of a reader.
impl Reader for RedbStore {
    fn get(&mut self, target: &Target) -> Result<Option<StoredPending>, StoreError> {
        self.reader.get(target)
    }

    fn list(
        &mut self,
        filter: &Filter,
        after: Option<&PendingRow>,
        limit: usize,
    ) -> Result<Vec<PendingRow>, StoreError> {
        self.reader.list(filter, after, limit)
    }

    fn due_within(&mut self, delays: &[Micros]) -> Result<Vec<TopicDue>, StoreError> {
        self.reader.due_within(delays)
    }

    fn dead_letters(
        &mut self,
        topic: Option<&str>,
        after: Option<TimeoutId>,
        max: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        self.reader.dead_letters(topic, after, max)
    }

    fn counts(&mut self) -> Result<Counts, StoreError> {
        self.reader.counts()
    }
}
