//! A store in memory, for tests.
//!
//! Its clock stands still until a test moves it, and it fails when a test tells it to. Clones are
//! handles of the same store, so that a test can open it again after its timer was dropped.

use crate::TimeoutId;
use crate::store::{Counts, DeadLetter, Micros, Position, Store, StoreError, Work};
use crate::transaction::{
    Answers, Attempt, Batch, Begun, Bury, Changed, Done, IfPending, Insert, Inserted, Requeue, Reset, Retry, Target,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A fault of a [`MemoryStore`]. Each fault affects one commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The commit fails and writes nothing.
    FailBefore,
    /// The commit is written, and its answer is lost.
    LoseAnswer,
    /// The outcome is unknown, and nothing was written.
    LoseRequest,
    /// Another instance has taken over.
    Fence,
    /// The clock of the store steps while the commit is under way. Negative steps go back.
    StepClock(Micros),
}

/// A store in memory, with a clock that a test moves and with injected faults.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_durable::{Due, DurableTimer, Error, Fault, MemoryStore};
///
/// let store = MemoryStore::new();
/// let (timer, mut driver) = DurableTimer::builder().topic("greet", |_: &Due<()>| Ok(())).build_manual(store.clone())?;
///
/// store.inject(Fault::LoseAnswer);
/// let Err(Error::OutcomeUnknown { id: Some(id), .. }) = timer.new_timeout("greet", Duration::ZERO, &()) else {
///     panic!("the answer was lost");
/// };
/// // The repeated call finds that the first one was executed.
/// timer.new_timeout_with_id(id, "greet", Duration::ZERO, &())?;
/// assert_eq!(driver.advance(Duration::from_secs(1)), 1);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MemoryStore {
    inner: Arc<Mutex<Inner>>,
    epoch: u32,
}

#[derive(Debug, Default)]
struct Inner {
    now: Micros,
    /// The latest time that the store has told, below which it does not go.
    floor: Micros,
    epoch: u32,
    rows: HashMap<TimeoutId, Row>,
    order: BTreeSet<Position>,
    keys: HashMap<(Arc<str>, String), TimeoutId>,
    dead: BTreeMap<TimeoutId, DeadLetter>,
    faults: VecDeque<Fault>,
    commits: u64,
}

#[derive(Debug, Clone)]
struct Row {
    insert: Insert,
    attempt: u32,
    forgiven: u32,
    /// The epoch that has begun the last attempt, if it has not been put back.
    begun: Option<u32>,
}

impl Row {
    /// Returns `true` if the timeout waits for a begin of `epoch`.
    fn is_pending(&self, epoch: u32) -> bool {
        self.begun.is_none_or(|begun| begun < epoch)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// Creates an empty store. Its clock begins at 2001-09-09.
    #[must_use]
    pub fn new() -> Self {
        let now = 1_000_000_000_000_000;
        Self { inner: Arc::new(Mutex::new(Inner { now, floor: now, ..Inner::default() })), epoch: 0 }
    }

    /// Adds a fault, which affects the next commit that no earlier fault affects.
    pub fn inject(&self, fault: Fault) {
        self.lock().faults.push_back(fault);
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

    /// Returns the number of commits so far.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.lock().commits
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.lock().present()
    }

    fn write(&mut self, batch: &Batch) -> Result<Answers, StoreError> {
        let epoch = self.epoch;
        let mut inner = self.lock();
        if epoch != inner.epoch {
            return Err(StoreError::Fenced);
        }
        let fault = inner.faults.pop_front();
        match fault {
            Some(Fault::FailBefore) => return Err(StoreError::Failed("an injected fault".to_owned())),
            Some(Fault::LoseRequest) => return Err(StoreError::InDoubt("an injected fault".to_owned())),
            Some(Fault::Fence) => {
                inner.epoch += 1;
                return Err(StoreError::Fenced);
            }
            Some(Fault::StepClock(by)) => inner.now = inner.now.saturating_add(by),
            Some(Fault::LoseAnswer) | None => {}
        }
        let answers = inner.execute(batch, epoch);
        inner.commits += 1;
        if fault == Some(Fault::LoseAnswer) {
            return Err(StoreError::InDoubt("an injected fault".to_owned()));
        }
        Ok(answers)
    }

    fn load(&mut self, range: Range<Position>, max: usize, out: &mut Vec<Position>) -> Result<Position, StoreError> {
        let inner = self.lock();
        let pending = |position: &&Position| inner.rows.get(&position.id).is_some_and(|row| row.is_pending(self.epoch));
        let before = out.len();
        out.extend(inner.order.range(range.start..range.end).filter(pending).take(max));
        let last = out.last().filter(|_| out.len() - before == max);
        Ok(last.map_or(range.end, |last| last.next()))
    }

    fn rejoin(&mut self) -> Result<(), StoreError> {
        let mut inner = self.lock();
        inner.epoch += 1;
        let epoch = inner.epoch;
        drop(inner);
        self.epoch = epoch;
        Ok(())
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
        Ok(inner.dead.values().filter(wanted).take(max).cloned().collect())
    }

    fn counts(&mut self) -> Result<Counts, StoreError> {
        let inner = self.lock();
        Ok(Counts { pending: inner.rows.len() as u64, dead: inner.dead.len() as u64 })
    }

    fn pending(&self) -> Option<u64> {
        Some(self.lock().rows.len() as u64)
    }

    // Work gets `()`, because there is no connection.
    fn transact_with(&mut self, work: Work) -> Result<(), StoreError> {
        work(&mut ()).map_err(|error| StoreError::Failed(error.to_string()))
    }

    fn complete_in(&mut self, done: Done, work: Work) -> Result<bool, StoreError> {
        let mut inner = self.lock();
        if inner.running(done.id, done.attempt).is_none() {
            return Ok(false);
        }
        work(&mut ()).map_err(|error| StoreError::Failed(error.to_string()))?;
        Ok(inner.done(done))
    }
}

impl Inner {
    fn present(&self) -> Micros {
        self.now.max(self.floor)
    }

    fn execute(&mut self, batch: &Batch, epoch: u32) -> Answers {
        self.floor = self.present();
        Answers {
            inserts: batch.inserts.iter().map(|insert| self.insert(insert)).collect(),
            resets: batch.resets.iter().map(|reset| self.reset(reset)).collect(),
            cancels: batch.cancels.iter().map(|target| self.cancel(target)).collect(),
            dones: batch.dones.iter().map(|done| self.done(*done)).collect(),
            retries: batch.retries.iter().map(|retry| self.retry(*retry)).collect(),
            buries: batch.buries.iter().map(|bury| self.bury(bury)).collect(),
            requeues: batch.requeues.iter().map(|requeue| self.requeue(*requeue)).collect(),
            purges: batch.purges.iter().map(|id| self.dead.remove(id).is_some()).collect(),
            begins: batch.begins.iter().map(|id| self.begin(*id, epoch)).collect(),
        }
    }

    fn insert(&mut self, insert: &Insert) -> Inserted {
        if self.rows.contains_key(&insert.id) || self.dead.contains_key(&insert.id) {
            return Inserted::Exists;
        }
        let mut replaced = None;
        if let Some(key) = &insert.key
            && let Some(&holder) = self.keys.get(&(insert.topic.clone(), key.clone()))
        {
            let Some(row) = self.rows.get(&holder) else { return Inserted::Kept(holder) };
            let due = match insert.if_pending {
                _ if row.begun.is_some() => row.insert.due,
                IfPending::Keep | IfPending::Refuse => row.insert.due,
                IfPending::Earlier => row.insert.due.min(insert.due),
                IfPending::Later => row.insert.due.max(insert.due),
                IfPending::Replace => {
                    self.remove(holder);
                    replaced = Some(holder);
                    insert.due
                }
            };
            if replaced.is_none() {
                let moves = due != self.rows[&holder].insert.due;
                self.move_to(holder, due);
                return if moves { Inserted::Moved(holder, due) } else { Inserted::Kept(holder) };
            }
        }
        self.add(Row { insert: insert.clone(), attempt: 0, forgiven: 0, begun: None });
        Inserted::Created { replaced }
    }

    fn reset(&mut self, reset: &Reset) -> Changed {
        let changed = self.find_pending(&reset.target);
        if let Changed::Changed(id) = changed {
            self.move_to(id, reset.due);
        }
        changed
    }

    fn cancel(&mut self, target: &Target) -> Changed {
        let changed = self.find_pending(target);
        if let Changed::Changed(id) = changed {
            self.remove(id);
        }
        changed
    }

    fn done(&mut self, done: Done) -> bool {
        let Some(row) = self.running(done.id, done.attempt) else { return false };
        match done.next {
            Some(next) => {
                row.begun = None;
                row.forgiven = row.attempt;
                self.move_to(done.id, next);
            }
            None => self.remove(done.id),
        }
        true
    }

    fn retry(&mut self, retry: Retry) -> bool {
        let Some(row) = self.running(retry.id, retry.attempt) else { return false };
        row.begun = None;
        if retry.forgive {
            row.forgiven = row.attempt;
        }
        self.move_to(retry.id, retry.due);
        true
    }

    fn bury(&mut self, bury: &Bury) -> bool {
        let Some(row) = self.running(bury.id, bury.attempt).cloned() else { return false };
        let letter = DeadLetter {
            key: row.insert.key.clone(),
            attempt: row.attempt,
            format: row.insert.format,
            payload: row.insert.payload.clone(),
            died: self.present(),
            ..DeadLetter::new(bury.id, row.insert.due, &*row.insert.topic, &*bury.reason)
        };
        self.remove(bury.id);
        self.dead.insert(bury.id, letter);
        true
    }

    fn requeue(&mut self, requeue: Requeue) -> bool {
        let Some(letter) = self.dead.remove(&requeue.id) else { return false };
        let mut insert = Insert::new(requeue.id, requeue.due, &*letter.topic);
        // A timeout with the same key may be pending by now.
        insert.key = letter.key.filter(|key| !self.keys.contains_key(&(insert.topic.clone(), key.clone())));
        insert.format = letter.format;
        insert.payload = letter.payload;
        self.add(Row { insert, attempt: letter.attempt, forgiven: letter.attempt, begun: None });
        true
    }

    fn begin(&mut self, id: TimeoutId, epoch: u32) -> Begun {
        let now = self.present();
        let Some(row) = self.rows.get_mut(&id) else { return Begun::Gone };
        if !row.is_pending(epoch) {
            return Begun::Gone;
        }
        if row.insert.due > now {
            return Begun::NotYet(row.insert.due);
        }
        row.attempt += 1;
        row.begun = Some(epoch);
        Begun::Attempt(Box::new(Attempt {
            forgiven: row.forgiven,
            key: row.insert.key.clone(),
            format: row.insert.format,
            payload: row.insert.payload.clone(),
            period: row.insert.period,
            max_lateness: row.insert.max_lateness,
            ..Attempt::new(row.attempt, row.insert.due, &*row.insert.topic)
        }))
    }

    fn find_pending(&self, target: &Target) -> Changed {
        let id = match target {
            Target::Id(id) => Some(*id),
            Target::Key { topic, key } => self.keys.get(&(Arc::from(topic.as_str()), key.clone())).copied(),
        };
        match id.and_then(|id| Some((id, self.rows.get(&id)?))) {
            None => Changed::Unknown,
            Some((_, row)) if row.begun.is_some() => Changed::Running,
            Some((id, _)) => Changed::Changed(id),
        }
    }

    fn running(&mut self, id: TimeoutId, attempt: u32) -> Option<&mut Row> {
        self.rows.get_mut(&id).filter(|row| row.begun.is_some() && row.attempt == attempt)
    }

    fn add(&mut self, row: Row) {
        let id = row.insert.id;
        self.order.insert(Position { due: row.insert.due, id });
        if let Some(key) = &row.insert.key {
            self.keys.insert((row.insert.topic.clone(), key.clone()), id);
        }
        self.rows.insert(id, row);
    }

    fn remove(&mut self, id: TimeoutId) {
        let Some(row) = self.rows.remove(&id) else { return };
        self.order.remove(&Position { due: row.insert.due, id });
        if let Some(key) = row.insert.key {
            self.keys.remove(&(row.insert.topic, key));
        }
    }

    fn move_to(&mut self, id: TimeoutId, due: Micros) {
        let Some(row) = self.rows.get_mut(&id) else { return };
        self.order.remove(&Position { due: row.insert.due, id });
        row.insert.due = due;
        self.order.insert(Position { due, id });
    }
}
