//! A store that announces the ends of attempts once they are durable.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use timer_durable::store::{Micros, Position, Reader, Store, TransactionWork, Upkeep};
use timer_durable::transaction::{Operation, Outcome};
use timer_durable::{Counts, DeadLetter, Membership, StoreError, TimeoutId};

/// The keys and lags of attempts that have begun and whose end is not durable.
#[derive(Clone, Default)]
pub(crate) struct Attempts(Arc<Mutex<HashMap<TimeoutId, (String, i64)>>>);

impl Attempts {
    /// Returns the time from the due time of an attempt until it begins, in microseconds of the
    /// store's clock.
    pub(crate) fn lag(&self, id: TimeoutId) -> Option<i64> {
        self.0.lock().get(&id).map(|(_, lag)| *lag)
    }
}

/// A store around another one. It sends a line for each attempt whose end is durable.
pub(crate) struct Announcing {
    store: Box<dyn Store>,
    attempts: Attempts,
    lines: Sender<String>,
}

impl Announcing {
    pub(crate) fn new(store: Box<dyn Store>, lines: Sender<String>) -> (Self, Attempts) {
        let attempts = Attempts::default();
        (Self { store, attempts: attempts.clone(), lines }, attempts)
    }
}

impl Reader for Announcing {
    fn dead_letters(
        &mut self,
        topic: Option<&str>,
        after: Option<TimeoutId>,
        max: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        self.store.dead_letters(topic, after, max)
    }

    fn counts(&mut self) -> Result<Counts, StoreError> {
        self.store.counts()
    }
}

impl Store for Announcing {
    fn write(&mut self, batch: &[Operation], until: Instant) -> Result<Vec<Outcome>, StoreError> {
        let outcomes = self.store.write(batch, until)?;
        let now = self.store.now();
        let mut attempts = self.attempts.0.lock();
        for (operation, outcome) in batch.iter().zip(&outcomes) {
            match (operation, outcome) {
                // The keeper repeats these ends.
                (Operation::Done { .. }, Outcome::Locked | Outcome::NotReached | Outcome::Refused(_)) => {}
                (Operation::Done { id, attempt, .. }, outcome) => {
                    if let (Some((key, _)), Outcome::Changed(_)) = (attempts.remove(id), outcome) {
                        _ = self.lines.send(format!("done {key} {attempt}"));
                    }
                }
                (Operation::Begin(id), Outcome::Begun(attempt)) => {
                    attempts.insert(*id, (attempt.key.clone().unwrap_or_default(), now - attempt.due));
                }
                _ => {}
            }
        }
        Ok(outcomes)
    }

    fn describe(&self) -> String {
        self.store.describe()
    }

    fn instance(&self) -> u32 {
        self.store.instance()
    }

    fn now(&self) -> Micros {
        self.store.now()
    }

    fn time_until(&self, time: Micros) -> Duration {
        self.store.time_until(time)
    }

    fn max_sleep(&self) -> Option<Duration> {
        self.store.max_sleep()
    }

    fn must_rejoin(&self) -> bool {
        self.store.must_rejoin()
    }

    fn load(
        &mut self,
        topic: &str,
        range: Range<Position>,
        max: usize,
        out: &mut Vec<Position>,
    ) -> Result<Position, StoreError> {
        self.store.load(topic, range, max, out)
    }

    fn topics(&mut self) -> Result<Vec<String>, StoreError> {
        self.store.topics()
    }

    fn rejoin(&mut self) -> Result<(), StoreError> {
        self.store.rejoin()
    }

    fn pending(&self) -> Option<u64> {
        self.store.pending()
    }

    fn next_upkeep(&self) -> Option<Instant> {
        self.store.next_upkeep()
    }

    fn set_waker(&mut self, wake: Arc<dyn Fn() + Send + Sync>) {
        self.store.set_waker(wake);
    }

    fn membership(&self) -> Option<Membership> {
        self.store.membership()
    }

    fn upkeep(&mut self, running: &[TimeoutId]) -> Result<Upkeep, StoreError> {
        self.store.upkeep(running)
    }

    fn may_begin(&self) -> bool {
        self.store.may_begin()
    }

    fn lease_end(&self) -> Option<Instant> {
        self.store.lease_end()
    }

    fn transact(&mut self, work: TransactionWork<'_>) -> Result<(), StoreError> {
        self.store.transact(work)
    }

    fn backup(&mut self, path: &Path) -> Result<(), StoreError> {
        self.store.backup(path)
    }

    fn leave(&mut self) -> Result<(), StoreError> {
        self.store.leave()
    }
}
