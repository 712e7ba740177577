//! A store in memory, for tests.
//!
//! Its clock stands still until a test moves it, and it fails when a test tells it to. Clones are
//! handles of the same store, so that a test can open it again after its timer was dropped.

mod faults;
mod inject;
mod rows;

pub use faults::{Fault, FaultPoint};

use self::rows::MemoryRows;
use crate::TimeoutId;
use crate::store::{
    Counts, DeadLetter, DueCounts, Filter, Micros, PendingRow, Position, Reader, RowBatch, Store, StoreError,
    StoreTransaction, StoredPending, TimeoutState, TopicDue, TransactionWork, Upkeep,
};
use crate::time::VIRTUAL_START;
use crate::transaction::{Operation, Outcome, Target, are_accepted};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A store in memory, with a clock that a test moves and with injected faults.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, Instant};
/// use timer_durable::{Due, DurableTimer, Error, Fault, MemoryStore, Schedule, Topic};
///
/// const GREET: Topic<()> = Topic::new("greet");
///
/// let store = MemoryStore::new();
/// let (timer, mut driver) = DurableTimer::builder().topic(GREET, |_: &Due<()>| Ok(())).build_manual(store.clone())?;
///
/// store.inject(Fault::LoseAnswer);
/// let Err(Error::OutcomeUnknown { id: Some(id), .. }) = timer.new_timeout(GREET, Duration::ZERO, &()).wait() else {
///     panic!("the answer was lost");
/// };
/// // The repeated call finds that the first one was executed.
/// timer.schedule(GREET, Schedule::after(Duration::ZERO).id(id), &()).wait()?;
/// assert_eq!(driver.advance(Duration::from_secs(1)), 1);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MemoryStore {
    inner: Arc<Mutex<Inner>>,
    epoch: u32,
}

#[derive(Clone, Debug, Default)]
struct Inner {
    now: Micros,
    /// The latest time that the store has told, below which it does not go.
    floor: Micros,
    epoch: u32,
    rows: MemoryRows,
    paused: BTreeSet<String>,
    /// The operations of the user's work while it runs.
    work: Option<RowBatch>,
    /// The timeouts that queued calls have created or changed, for the next upkeep.
    settled: Vec<(Position, String)>,
    faults: HashMap<FaultPoint, VecDeque<Fault>>,
    commits: u64,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// Creates an empty store. Its clock begins at 2001-09-09 and stands still until a test or a
    /// driver moves it, so a timeout with a delay does not run before that.
    ///
    /// Ids have the time of the wall clock, so none from [`TimeoutId::new`] is too old for this
    /// store until a test has moved the store's clock past the current time.
    #[must_use]
    pub fn new() -> Self {
        let now = VIRTUAL_START;
        Self { inner: Arc::new(Mutex::new(Inner { now, floor: now, ..Inner::default() })), epoch: 0 }
    }

    /// Moves the clock forward.
    pub fn advance_clock(&self, by: Duration) {
        let by = Micros::try_from(by.as_micros()).unwrap_or(Micros::MAX);
        let mut inner = self.lock();
        inner.now = inner.now.saturating_add(by);
    }

    /// Steps the clock, forward or back.
    pub fn step_clock(&self, by: Micros) {
        let mut inner = self.lock();
        inner.now = inner.now.saturating_add(by);
    }

    /// Returns the number of batches that were written so far.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.lock().commits
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn present(&self) -> Micros {
        self.now.max(self.floor)
    }

    fn execute(&mut self, batch: &[Operation], epoch: u32) -> Vec<Outcome> {
        self.floor = self.present();
        let mut open = RowBatch::new(epoch.into());
        let Ok(outcomes) = open.write(&mut self.rows, batch, self.floor);
        self.finish(open);
        outcomes
    }

    fn finish(&mut self, batch: RowBatch) {
        let now = self.present();
        let Ok(settled) = batch.finish(&mut self.rows, now);
        self.settled.extend(settled);
    }
}

impl Reader for MemoryStore {
    fn get(&mut self, target: &Target) -> Result<Option<StoredPending>, StoreError> {
        let inner = self.lock();
        let row = inner.rows.find(target);
        Ok(row.map(|row| row.read(self.epoch.into(), (row.insert.format, row.insert.payload.clone()))))
    }

    fn list(
        &mut self,
        filter: &Filter,
        after: Option<&PendingRow>,
        limit: usize,
    ) -> Result<Vec<PendingRow>, StoreError> {
        let inner = self.lock();
        let rows = inner.rows.iter().map(|row| row.read(self.epoch.into(), ())).filter(|row| filter.shows(row));
        let order = |row: &PendingRow| {
            // A queued call is behind the timeout that has its key.
            let is_queued = row.state == TimeoutState::Queued;
            let key = filter.key_prefix.as_ref().and(row.key.clone()).map(|key| (key, is_queued));
            (key, row.position())
        };
        let after = after.map(order);
        let mut rows: Vec<PendingRow> =
            rows.filter(|row| after.as_ref().is_none_or(|after| order(row) > *after)).collect();
        rows.sort_by_cached_key(order);
        rows.truncate(limit);
        Ok(rows)
    }

    fn due_within(&mut self, delays: &[Micros]) -> Result<Vec<TopicDue>, StoreError> {
        let inner = self.lock();
        let mut counts = DueCounts::new(delays);
        for row in inner.rows.iter().filter(|row| row.is_pending(self.epoch.into())) {
            counts.add(&row.insert.topic, row.insert.due.saturating_sub(inner.now));
        }
        Ok(counts.finish())
    }

    fn dead_letters(
        &mut self,
        topic: Option<&str>,
        after: Option<TimeoutId>,
        max: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        let inner = self.lock();
        let wanted = |letter: &&DeadLetter| {
            topic.is_none_or(|topic| letter.topic == topic) && after.is_none_or(|after| letter.id > after)
        };
        Ok(inner.rows.dead().filter(wanted).take(max).cloned().collect())
    }

    fn counts(&mut self) -> Result<Counts, StoreError> {
        let inner = self.lock();
        Ok(Counts { pending: inner.rows.iter().len() as u64, dead: inner.rows.dead().len() as u64 })
    }
}

impl Store for MemoryStore {
    fn describe(&self) -> String {
        "memory".to_owned()
    }

    fn instance(&self) -> u32 {
        self.epoch
    }

    fn now(&self) -> Micros {
        let mut inner = self.lock();
        inner.floor = inner.present();
        inner.floor
    }

    fn advance_time(&mut self, by: Duration) -> Result<(), StoreError> {
        self.advance_clock(by);
        Ok(())
    }

    fn write(&mut self, batch: &[Operation], _: Instant) -> Result<Vec<Outcome>, StoreError> {
        let epoch = self.epoch;
        let mut inner = self.lock();
        if epoch != inner.epoch {
            return Err(StoreError::Fenced);
        }
        let fault = inner.begin_call(FaultPoint::Write)?;
        let executed = if fault == Some(Fault::TearAnswer) { batch.len().div_ceil(2) } else { batch.len() };
        let outcomes = inner.execute(&batch[..executed], epoch);
        inner.commits += 1;
        inner.end_call(fault, outcomes)
    }

    fn write_all(&mut self, inserts: &[Operation]) -> Result<Vec<Outcome>, StoreError> {
        let epoch = self.epoch;
        let mut inner = self.lock();
        if epoch != inner.epoch {
            return Err(StoreError::Fenced);
        }
        let fault = inner.begin_call(FaultPoint::Write)?;
        let before = inner.rows.clone();
        let outcomes = inner.execute(inserts, epoch);
        if are_accepted(inserts, &outcomes) {
            inner.commits += 1;
        } else {
            inner.rows = before;
        }
        inner.end_call(fault, outcomes)
    }

    fn set_paused(&mut self, topic: &str, is_paused: bool) -> Result<(), StoreError> {
        let mut inner = self.lock();
        if is_paused {
            inner.paused.insert(topic.to_owned());
        } else {
            inner.paused.remove(topic);
        }
        Ok(())
    }

    fn paused_topics(&mut self) -> Result<Vec<String>, StoreError> {
        Ok(self.lock().paused.iter().cloned().collect())
    }

    fn lease_end(&self) -> Option<Instant> {
        None
    }

    fn load(
        &mut self,
        topic: &str,
        range: Range<Position>,
        max: usize,
        out: &mut Vec<Position>,
    ) -> Result<Position, StoreError> {
        let mut inner = self.lock();
        let fault = inner.begin_call(FaultPoint::Load)?;
        let before = out.len();
        out.extend(inner.rows.pending(topic, range.clone(), self.epoch.into()).take(max));
        let last = out.last().filter(|_| out.len() - before == max);
        let bound = last.map_or(range.end, |last| last.next());
        inner.end_call(fault, bound)
    }

    fn topics(&mut self) -> Result<Vec<String>, StoreError> {
        Ok(self.lock().rows.topics())
    }

    fn next_upkeep(&self) -> Option<Instant> {
        (!self.lock().settled.is_empty()).then(Instant::now)
    }

    fn upkeep(&mut self, _: &[TimeoutId]) -> Result<Upkeep, StoreError> {
        let foreign = std::mem::take(&mut self.lock().settled);
        Ok(Upkeep { foreign, ..Upkeep::default() })
    }

    fn rejoin(&mut self) -> Result<(), StoreError> {
        let mut inner = self.lock();
        let fault = inner.begin_call(FaultPoint::Rejoin)?;
        inner.epoch += 1;
        let epoch = inner.epoch;
        let joined = inner.end_call(fault, ());
        drop(inner);
        self.epoch = epoch;
        joined
    }

    fn pending(&self) -> Option<u64> {
        Some(self.lock().rows.iter().len() as u64)
    }

    fn transact(&mut self, work: TransactionWork<'_>) -> Result<(), StoreError> {
        let (fault, before) = {
            let mut inner = self.lock();
            let fault = inner.begin_call(FaultPoint::Transact)?;
            if self.epoch != inner.epoch {
                return Err(StoreError::Fenced);
            }
            let before = inner.rows.clone();
            inner.work = Some(RowBatch::new(self.epoch.into()));
            (fault, before)
        };
        // The work may use another handle of this store.
        let result = work(self, None);
        let mut inner = self.lock();
        let batch = inner.work.take();
        if let Err(error) = result {
            inner.rows = before;
            return Err(error);
        }
        if let Some(batch) = batch {
            inner.finish(batch);
        }
        inner.end_call(fault, ())
    }
}

impl StoreTransaction for MemoryStore {
    fn time(&self) -> Option<Micros> {
        Some(self.now())
    }

    /// Executes an operation in the user's work if it runs, or else by itself.
    fn execute(&mut self, operation: &Operation) -> Result<Outcome, StoreError> {
        let mut inner = self.lock();
        let Some(mut batch) = inner.work.take() else {
            return Ok(inner.execute(std::slice::from_ref(operation), self.epoch).remove(0));
        };
        inner.floor = inner.present();
        let now = inner.floor;
        let Ok(outcome) = batch.execute(&mut inner.rows, operation, now);
        inner.work = Some(batch);
        Ok(outcome)
    }
}
