//! A store in memory, with a clock that the test sets and faults that the test injects.
//!
//! Promises: it answers as a store on disk does, and its content survives the instance. [`MemoryStoreControl::open`] opens it
//! again, as a process does after a crash, and fences the instance before. Absent: durability.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use super::*;
use crate::row::{Attempt, micros};

/// A fault of a [`MemoryStore`]. Each injected fault happens once, to the next commit or rejoin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// The commit answers [`StoreError::Failed`] and writes nothing.
    Refuse,
    /// The commit answers [`StoreError::InDoubt`] and writes nothing.
    LoseRequest,
    /// The commit writes all and answers [`StoreError::InDoubt`].
    LoseAnswer,
    /// The commit answers [`StoreError::InDoubt`], and is executed when the instance rejoins.
    Delay,
    /// The commit writes all, and its answers lack the last part.
    TearAnswer,
    /// The rejoin answers an error.
    RefuseRejoin,
}

/// A store in memory. See the module [`store`](crate::store).
///
/// # Examples
///
/// ```
/// use timer_durable::MemoryStore;
/// use timer_durable::store::{Batch, Changed, Store};
///
/// let mut store = MemoryStore::new();
/// let batch = Batch { cancels: vec![timer_durable::Id(7).into()], ..Batch::default() };
/// assert_eq!(store.write(&batch)?.cancels, [Changed::Unknown]);
/// # Ok::<(), timer_durable::StoreError>(())
/// ```
#[derive(Debug)]
pub struct MemoryStore {
    epoch: u64,
    /// The first epoch of this process. Rows of earlier ones have no handler any more.
    opened: u64,
    control: MemoryStoreControl,
}

/// Sets the clock of a [`MemoryStore`], injects faults, and opens it again. Clones control the same store.
#[derive(Clone, Debug, Default)]
pub struct MemoryStoreControl(Arc<Mutex<Disk>>);

#[derive(Debug, Default)]
struct Disk {
    now: Micros,
    epoch: u64,
    rows: HashMap<Id, Stored>,
    list: BTreeSet<Place>,
    keys: HashMap<(String, String), Id>,
    dead: BTreeMap<Id, DeadLetter>,
    faults: VecDeque<Fault>,
    delayed: Vec<Batch>,
    commits: u64,
}

#[derive(Clone, Debug)]
struct Stored {
    row: Row,
    /// The epoch that has begun the attempt which runs.
    epoch: Option<u64>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// Makes an empty store, whose clock is at 0.
    pub fn new() -> Self {
        MemoryStoreControl::default().open()
    }

    /// Returns a handle that controls this store.
    pub fn control(&self) -> MemoryStoreControl {
        self.control.clone()
    }
}

impl MemoryStoreControl {
    /// Opens the store as a new process does. The instance before is fenced.
    pub fn open(&self) -> MemoryStore {
        let mut disk = self.0.lock();
        disk.epoch += 1;
        MemoryStore { epoch: disk.epoch, opened: disk.epoch, control: self.clone() }
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: std::time::Duration) {
        let mut disk = self.0.lock();
        disk.now = disk.now.saturating_add(micros(by));
    }

    /// Sets the clock. The store holds its clock if this would set it back.
    pub fn step_clock(&self, to: Micros) {
        let mut disk = self.0.lock();
        disk.now = disk.now.max(to);
    }

    /// Returns the clock.
    pub fn now(&self) -> Micros {
        self.0.lock().now
    }

    /// Appends a fault, which happens once all earlier ones have happened.
    pub fn inject(&self, fault: Fault) {
        self.0.lock().faults.push_back(fault);
    }

    /// Returns the number of commits.
    pub fn commits(&self) -> u64 {
        self.0.lock().commits
    }

    /// Returns the due time of the first timeout in the list, begun or not.
    pub fn first_due(&self) -> Option<Micros> {
        self.0.lock().list.first().map(|place| place.due)
    }
}

impl Disk {
    fn fault(&mut self, fits: impl Fn(Fault) -> bool) -> Option<Fault> {
        let next = self.faults.front().copied().filter(|fault| fits(*fault))?;
        self.faults.pop_front();
        Some(next)
    }

    fn find(&self, target: &Target) -> Option<Id> {
        match target {
            Target::Id(id) => self.rows.contains_key(id).then_some(*id),
            Target::Key { topic, key } => self.keys.get(&(topic.clone(), key.clone())).copied(),
        }
    }

    fn put(&mut self, row: Row) {
        self.list.insert(Place { due: row.due, id: row.id });
        if let Some(key) = &row.content.key {
            self.keys.insert((row.content.topic.clone(), key.clone()), row.id);
        }
        self.rows.insert(row.id, Stored { row, epoch: None });
    }

    fn take(&mut self, id: Id) -> Option<Row> {
        let row = self.rows.remove(&id)?.row;
        self.list.remove(&Place { due: row.due, id });
        if let Some(key) = &row.content.key {
            self.keys.remove(&(row.content.topic.clone(), key.clone()));
        }
        Some(row)
    }

    fn write(&mut self, batch: &Batch, epoch: u64, opened: u64) -> Answers {
        self.commits += 1;
        let now = self.now;
        let runs = move |stored: &Stored| stored.epoch.is_some_and(|begun| begun >= opened);
        let mut answers = Answers::default();
        for insert in &batch.inserts {
            answers.inserts.push(self.insert(insert, runs));
        }
        for reset in &batch.resets {
            let changed = self.change(&reset.target, runs, |row| row.due = reset.due);
            answers.resets.push(changed);
        }
        for target in &batch.cancels {
            let changed = self.change(target, runs, |_| ());
            if let Changed::Done(id) = changed {
                self.take(id);
            }
            answers.cancels.push(changed);
        }
        for done in &batch.done {
            let ended = self.end(done.id, done.attempt, done.write.as_ref());
            if ended == Ended::Written {
                self.take(done.id);
            }
            answers.done.push(ended);
        }
        for retry in &batch.retries {
            let ended = self.end(retry.id, retry.attempt, retry.write.as_ref());
            if ended == Ended::Written {
                if let Some(mut row) = self.take(retry.id) {
                    row.due = retry.due;
                    row.running = false;
                    if retry.next_run {
                        row.base = row.attempt;
                    }
                    self.put(row);
                }
            }
            answers.retries.push(ended);
        }
        for bury in &batch.buries {
            let ended = self.end(bury.id, bury.attempt, None);
            if ended == Ended::Written {
                if let Some(mut row) = self.take(bury.id) {
                    row.running = false;
                    self.dead.insert(bury.id, DeadLetter { row, buried_at: now, reason: bury.reason.clone() });
                }
            }
            answers.buries.push(ended);
        }
        for (id, due) in &batch.requeues {
            answers.requeues.push(self.requeue(*id, *due));
        }
        for id in &batch.purges {
            answers.purges.push(self.dead.remove(id).is_some());
        }
        for id in &batch.begins {
            let begun = match self.rows.get_mut(id) {
                Some(stored) if stored.epoch.is_none_or(|begun| begun < epoch) => {
                    if stored.row.due <= now {
                        stored.row.attempt += 1;
                        stored.row.running = true;
                        stored.epoch = Some(epoch);
                        Begun::Attempt(stored.row.clone())
                    } else {
                        Begun::NotYet(stored.row.due)
                    }
                }
                _ => Begun::Gone,
            };
            answers.begins.push(begun);
        }
        answers
    }

    fn insert(&mut self, insert: &Insert, runs: impl Fn(&Stored) -> bool) -> Inserted {
        if self.rows.contains_key(&insert.id) || self.dead.contains_key(&insert.id) {
            return Inserted::Exists;
        }
        let content = insert.content.clone();
        let row = Row { id: insert.id, due: insert.due, attempt: 0, base: 0, running: false, content };
        let key = insert.content.key.clone().map(|key| (insert.content.topic.clone(), key));
        let old = key.and_then(|key| self.keys.get(&key)).and_then(|id| self.rows.get(id));
        let Some(old) = old else {
            self.put(row);
            return Inserted::New;
        };
        let (id, due) = (old.row.id, old.row.due);
        if runs(old) {
            return Inserted::Running(id);
        }
        if !insert.if_pending.replaces(due, insert.due) {
            return Inserted::Kept { id, due };
        }
        self.take(id);
        self.put(row);
        Inserted::Replaced(id)
    }

    fn change(&mut self, target: &Target, runs: impl Fn(&Stored) -> bool, change: impl Fn(&mut Row)) -> Changed {
        let Some(id) = self.find(target) else { return Changed::Unknown };
        if self.rows.get(&id).is_some_and(runs) {
            return Changed::Running(id);
        }
        if let Some(mut row) = self.take(id) {
            row.running = false;
            change(&mut row);
            self.put(row);
        }
        Changed::Done(id)
    }

    fn end(&self, id: Id, attempt: Attempt, write: Option<&UserWrite>) -> Ended {
        let fits = |stored: &Stored| stored.epoch.is_some() && stored.row.attempt == attempt;
        if !self.rows.get(&id).is_some_and(fits) {
            return Ended::Stale;
        }
        write.map_or(Ok(()), |write| (write.0)(&())).map_or_else(Ended::Failed, |()| Ended::Written)
    }

    fn requeue(&mut self, id: Id, due: Micros) -> Requeued {
        let Some(letter) = self.dead.get(&id) else { return Requeued::Unknown };
        let content = &letter.row.content;
        let key = content.key.clone().map(|key| (content.topic.clone(), key));
        if let Some(other) = key.and_then(|key| self.keys.get(&key)) {
            return Requeued::KeyTaken(*other);
        }
        if let Some(DeadLetter { mut row, .. }) = self.dead.remove(&id) {
            row.due = due;
            row.base = row.attempt;
            self.put(row);
        }
        Requeued::Pending
    }
}

impl MemoryStore {
    fn read<R>(&self, read: impl FnOnce(&Disk) -> R) -> Result<R, StoreError> {
        let disk = self.control.0.lock();
        if disk.epoch == self.epoch { Ok(read(&disk)) } else { Err(StoreError::Fenced) }
    }
}

impl Store for MemoryStore {
    fn now(&self) -> Micros {
        self.control.now()
    }

    fn write(&mut self, batch: &Batch) -> Result<Answers, StoreError> {
        let mut disk = self.control.0.lock();
        if disk.epoch != self.epoch {
            return Err(StoreError::Fenced);
        }
        let fault = disk.fault(|fault| fault != Fault::RefuseRejoin);
        let lost = || StoreError::InDoubt("an injected fault".into());
        match fault {
            Some(Fault::Refuse) => return Err(StoreError::Failed("an injected fault".into())),
            Some(Fault::LoseRequest) => return Err(lost()),
            Some(Fault::Delay) => {
                disk.delayed.push(batch.clone());
                return Err(lost());
            }
            _ => {}
        }
        let mut answers = disk.write(batch, self.epoch, self.opened);
        match fault {
            Some(Fault::LoseAnswer) => Err(lost()),
            Some(Fault::TearAnswer) => {
                let torn = answers.begins.pop().is_some() || answers.inserts.pop().is_some();
                let _ = torn || answers.done.pop().is_some() || answers.cancels.pop().is_some();
                Ok(answers)
            }
            _ => Ok(answers),
        }
    }

    fn load(&mut self, from: Place, max: usize, page: &mut Vec<Place>) -> Result<(), StoreError> {
        self.read(|disk| page.extend(disk.list.range(from..).take(max)))
    }

    fn find(&mut self, target: &Target) -> Result<Option<Row>, StoreError> {
        self.read(|disk| disk.find(target).and_then(|id| disk.rows.get(&id)).map(|stored| stored.row.clone()))
    }

    fn dead_letters(&mut self, after: Option<Id>, max: usize) -> Result<Vec<DeadLetter>, StoreError> {
        let from = after.map_or(Id(0), |id| Id(id.0.saturating_add(1)));
        self.read(|disk| disk.dead.range(from..).take(max).map(|(_, letter)| letter.clone()).collect())
    }

    fn count(&mut self) -> Result<Count, StoreError> {
        self.read(|disk| Count { pending: disk.rows.len() as u64, dead: disk.dead.len() as u64 })
    }

    fn rejoin(&mut self) -> Result<(), StoreError> {
        let mut disk = self.control.0.lock();
        if disk.epoch != self.epoch {
            return Err(StoreError::Fenced);
        }
        if disk.fault(|fault| fault == Fault::RefuseRejoin).is_some() {
            return Err(StoreError::Failed("an injected fault".into()));
        }
        for batch in std::mem::take(&mut disk.delayed) {
            disk.write(&batch, self.epoch, self.opened);
        }
        disk.epoch += 1;
        self.epoch = disk.epoch;
        Ok(())
    }
}
