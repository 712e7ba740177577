//! The store's side of the trait.

use super::begun::BegunSlot;
use super::queued::QueuedCalls;
use super::rows::{self, Instance};
use super::slots::{self, Loaded, Page};
use super::tally::Tally;
use super::transaction::{OpenTransaction, check_names};
use super::{SqliteReader, SqliteStore, failed, open, read, topics, unreadable};
use rusqlite::backup::{Backup, StepResult};
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};
use timer_durable::store::{Connect, Divided, Micros, Position, Reader, Store, TransactionWork, Upkeep};
use timer_durable::transaction::{Operation, Outcome, are_accepted};
use timer_durable::{StoreError, TimeoutId};

/// The longest sleep of the keeper while timeouts wait for the wall clock. Nothing tells it of a
/// step forward or of a suspend.
const MAX_SLEEP: Duration = Duration::from_secs(30);

/// The time for which a call of the keeper waits while another program has locked the file. The
/// keeper looks at its messages in between.
const LOCK_WAIT: Duration = Duration::from_millis(20);

impl Store for SqliteStore {
    fn describe(&self) -> String {
        format!("sqlite:{}", self.path.display())
    }

    fn instance(&self) -> u32 {
        // The epoch grows with each start, and only its lower half is needed to tell instances
        // apart.
        self.epoch as u32
    }

    fn now(&self) -> Micros {
        self.clock.now()
    }

    fn time_until(&self, time: Micros) -> Duration {
        self.clock.time_until(time)
    }

    fn lease_end(&self) -> Option<Instant> {
        None
    }

    fn connect_reader(&self) -> Option<Connect> {
        let path = self.owner.path().to_owned();
        let files = self.owner.files();
        let connect = move || SqliteReader::beside(&path, &files).map(|reader| Box::new(reader) as Box<dyn Reader>);
        Some(Box::new(connect))
    }

    fn max_sleep(&self) -> Option<Duration> {
        (!self.clock.is_virtual()).then_some(MAX_SLEEP)
    }

    fn advance_time(&mut self, by: Duration) -> Result<(), StoreError> {
        if !self.clock.is_virtual() {
            // No test survives its machine.
            self.connection.execute_batch("pragma synchronous = off").map_err(failed)?;
        }
        self.clock.advance(by);
        Ok(())
    }

    fn write(&mut self, batch: &[Operation], until: Instant) -> Result<Vec<Outcome>, StoreError> {
        let mut divider = std::mem::take(&mut self.divider);
        let divided = divider.execute(batch, until, |part| self.execute(part));
        self.divider = divider;
        Ok(divided?.into_iter().map(Divided::outcome).collect())
    }

    fn write_all(&mut self, inserts: &[Operation]) -> Result<Vec<Outcome>, StoreError> {
        let mut outcomes = Vec::new();
        let mut calls = QueuedCalls::default();
        let result = self.commit(|connection, epoch, clock| {
            let instance = Instance { epoch, now: clock.now(), is_in_work: false };
            outcomes = rows::execute(connection, inserts, instance, &mut calls).map_err(failed)?;
            // The error rolls the transaction back.
            if are_accepted(inserts, &outcomes) { Ok(()) } else { Err(StoreError::Locked) }
        });
        match result {
            Ok(()) => self.note(inserts, &outcomes, calls),
            Err(StoreError::Locked) => {}
            Err(error) => return Err(error),
        }
        Ok(outcomes)
    }

    fn load(
        &mut self,
        topic: &str,
        range: Range<Position>,
        max: usize,
        out: &mut Vec<Position>,
    ) -> Result<Position, StoreError> {
        self.check()?;
        let page = Page { topic, range, max, epoch: self.epoch };
        let start = page.range.start;
        match page.load(&self.connection, self.clock.now(), &mut self.begun_slot, out).map_err(failed)? {
            Loaded::Before(bound) => return Ok(bound),
            Loaded::Unsorted(slot) => {
                self.commit(|connection, _, _| slots::move_rows(connection, slot).map_err(failed))?;
            }
            Loaded::Unreadable(rows) => self.bury(rows)?,
        }
        Ok(start)
    }

    fn topics(&mut self) -> Result<Vec<String>, StoreError> {
        topics::all(&self.connection).map_err(failed)
    }

    fn set_paused(&mut self, topic: &str, is_paused: bool) -> Result<(), StoreError> {
        self.commit(|connection, _, _| topics::set_paused(connection, topic, is_paused).map_err(failed))
    }

    fn paused_topics(&mut self) -> Result<Vec<String>, StoreError> {
        topics::paused(&self.connection).map_err(failed)
    }

    fn rejoin(&mut self) -> Result<(), StoreError> {
        self.check()?;
        self.roll_back();
        // `query_row` ends a statement without looking at the result of its commit. If the commit
        // failed, the next instance would use the same epoch, so the update returns no row.
        self.connection.execute("update timer_meta set epoch = epoch + 1", []).map_err(failed)?;
        self.epoch = self.connection.query_row("select epoch from timer_meta", [], |row| row.get(0)).map_err(failed)?;
        self.begun_slot = BegunSlot::default();
        topics::forget(&self.connection).map_err(failed)?;
        // A later look has to find the writes behind the reads of this function.
        self.foreign.look(&self.connection).map_err(failed)?;
        self.settle_orphans()?;
        let lost = topics::find_lost(&self.connection).map_err(failed)?;
        self.bury(lost)?;
        if !self.clock.is_virtual() {
            self.connection.busy_timeout(LOCK_WAIT).map_err(failed)?;
        }
        Ok(())
    }

    fn dead_before(&mut self, topic: &str, time: Micros, max: usize) -> Result<Vec<TimeoutId>, StoreError> {
        self.check()?;
        read::dead_before(&self.connection, topic, time, max).map_err(failed)
    }

    fn pending(&self) -> Option<u64> {
        self.tally.pending()
    }

    fn next_upkeep(&self) -> Option<Instant> {
        if self.foreign.are_found || !self.settled.is_empty() { Some(Instant::now()) } else { self.tally.next() }
    }

    /// Counts a part of the timeouts, and reports those that queued calls have created or changed.
    fn upkeep(&mut self, _: &[TimeoutId]) -> Result<Upkeep, StoreError> {
        if self.foreign.are_found {
            self.settle_orphans()?;
        }
        let shards_gained = std::mem::take(&mut self.foreign.are_found);
        if shards_gained {
            self.begun_slot = BegunSlot::default();
            self.tally = Tally::start(&self.connection).map_err(failed)?;
        } else {
            self.tally.step(&self.connection).map_err(failed)?;
        }
        let mut upkeep = Upkeep::default();
        upkeep.foreign = std::mem::take(&mut self.settled);
        upkeep.shards_gained = shards_gained;
        upkeep.pauses_changed = shards_gained;
        Ok(upkeep)
    }

    fn transact(&mut self, work: TransactionWork<'_>) -> Result<(), StoreError> {
        let mut operations = Vec::new();
        let mut outcomes = Vec::new();
        let mut calls = QueuedCalls::default();
        self.commit(|connection, epoch, clock| {
            let connection = &*connection;
            let mut open = OpenTransaction::new(connection, clock, epoch);
            work(&mut open, Some(connection))?;
            check_names(open.connection)?;
            open.settle()?;
            operations = open.operations;
            outcomes = open.outcomes;
            calls = open.calls;
            Ok(())
        })?;
        self.note(&operations, &outcomes, calls);
        Ok(())
    }

    fn backup(&mut self, path: &Path) -> Result<(), StoreError> {
        self.check()?;
        let (mut copy, _owner) = open::connect(path).map_err(|error| StoreError::Failed(error.to_string()))?;
        // All calls wait during a backup, so it does not wait for others that use the target.
        copy.busy_timeout(Duration::ZERO).map_err(failed)?;
        let backup = Backup::new(&self.connection, &mut copy).map_err(failed)?;
        // All pages in one step, because the file changes only between the turns of the keeper.
        let begun = Instant::now();
        match backup.step(-1).map_err(failed)? {
            StepResult::Done => {}
            result => {
                let reason = format!("the target {} is in use, so nothing was copied ({result:?})", path.display());
                return Err(StoreError::Failed(reason));
            }
        }
        tracing::info!(to = %path.display(), took = ?begun.elapsed(), "the store was copied");
        Ok(())
    }

    fn leave(&mut self) -> Result<(), StoreError> {
        self.check()?;
        // A clean end leaves no log behind, so that the file alone can be copied.
        if let Err(error) = self.connection.execute_batch("pragma wal_checkpoint(truncate)") {
            tracing::warn!(%error, "the log could not be written back");
        }
        Ok(())
    }
}

impl SqliteStore {
    /// Executes a part of a batch as one transaction. A timeout that cannot begin, because its row
    /// cannot be read, becomes a dead letter.
    fn execute(&mut self, part: &[Operation]) -> Result<Vec<Outcome>, StoreError> {
        let mut unreadable = None;
        let mut calls = QueuedCalls::default();
        let result = self.commit(|connection, epoch, clock| {
            let instance = Instance { epoch, now: clock.now(), is_in_work: false };
            rows::execute(connection, part, instance, &mut calls).map_err(|error| {
                let refusal = failed(&error);
                let row = unreadable::row_of_begin(connection, part, &error).unwrap_or_default();
                unreadable = row.map(|row| (row, error));
                refusal
            })
        });
        if let Some(row) = unreadable {
            self.bury(vec![row])?;
            return Ok(vec![Outcome::NotFound]);
        }
        let outcomes = result?;
        self.note(part, &outcomes, calls);
        Ok(outcomes)
    }

    /// Notes a commit.
    fn note(&mut self, batch: &[Operation], outcomes: &[Outcome], calls: QueuedCalls) {
        self.tally.add(batch, outcomes, &calls.rows);
        self.settled.extend(calls.settled);
    }
}
