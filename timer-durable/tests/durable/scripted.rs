//! A memory store whose answers a test scripts, for keepers with a thread.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use timer_durable::store::{Divided, Divider, Micros, Position, Reader, Store, StoredPending, Upkeep};
use timer_durable::transaction::{Operation, Outcome, Target};
use timer_durable::{Counts, DeadLetter, Membership, MemoryStore, StoreError, TimeoutId};

type OnWrite = Box<dyn FnMut(&[Operation]) -> Option<StoreError> + Send>;
type IsRefused = Box<dyn FnMut(&Operation) -> bool + Send>;
type OnRejoin = Box<dyn FnMut() -> Option<StoreError> + Send>;

type Hook = Box<dyn FnMut() + Send>;
type OnClose = Box<dyn FnOnce() + Send>;

/// A memory store that calls the functions of its script.
pub(crate) struct ScriptedStore {
    pub(crate) memory: MemoryStore,
    script: Arc<Mutex<Script>>,
    divider: Divider,
    on_close: Option<OnClose>,
}

/// Returns a handle of the same store and script.
impl Clone for ScriptedStore {
    fn clone(&self) -> Self {
        Self { memory: self.memory.clone(), script: self.script.clone(), divider: Divider::new(), on_close: None }
    }
}

impl Drop for ScriptedStore {
    fn drop(&mut self) {
        if let Some(hook) = self.on_close.take() {
            hook();
        }
    }
}

#[derive(Default)]
struct Script {
    on_write: Option<OnWrite>,
    is_refused: Option<IsRefused>,
    on_rejoin: Option<OnRejoin>,
    on_count: Option<Hook>,
    on_upkeep: Option<Hook>,
    next_upkeep: Option<Instant>,
    max_sleep: Option<Duration>,
    lease_end: Option<Instant>,
    must_rejoin: bool,
    gains_shards: bool,
    membership: Option<Membership>,
}

impl ScriptedStore {
    pub(crate) fn new() -> Self {
        Self { memory: MemoryStore::new(), script: Arc::default(), divider: Divider::new(), on_close: None }
    }

    /// Returns a handle that calls a function when it is dropped.
    pub(crate) fn closing_with(&self, hook: impl FnOnce() + Send + 'static) -> Self {
        let mut store = self.clone();
        store.on_close = Some(Box::new(hook));
        store
    }

    /// Sets a function that lets a write fail before it reaches the memory. [`StoreError::Locked`]
    /// becomes the outcome of each operation.
    pub(crate) fn on_write(&self, hook: impl FnMut(&[Operation]) -> Option<StoreError> + Send + 'static) {
        self.script.lock().unwrap().on_write = Some(Box::new(hook));
    }

    /// Sets a function that refuses operations. All others are executed.
    pub(crate) fn refuse(&self, is_refused: impl FnMut(&Operation) -> bool + Send + 'static) {
        self.script.lock().unwrap().is_refused = Some(Box::new(is_refused));
    }

    pub(crate) fn on_rejoin(&self, hook: impl FnMut() -> Option<StoreError> + Send + 'static) {
        self.script.lock().unwrap().on_rejoin = Some(Box::new(hook));
    }

    pub(crate) fn on_count(&self, hook: impl FnMut() + Send + 'static) {
        self.script.lock().unwrap().on_count = Some(Box::new(hook));
    }

    pub(crate) fn on_upkeep(&self, hook: impl FnMut() + Send + 'static) {
        self.script.lock().unwrap().on_upkeep = Some(Box::new(hook));
    }

    pub(crate) fn set_next_upkeep(&self, next: Instant) {
        self.script.lock().unwrap().next_upkeep = Some(next);
    }

    pub(crate) fn set_lease_end(&self, end: Option<Instant>) {
        self.script.lock().unwrap().lease_end = end;
    }

    /// Lets the store say that its connection is broken, until the keeper joins again.
    pub(crate) fn lose_connection(&self) {
        self.script.lock().unwrap().must_rejoin = true;
    }

    /// Lets the next turn find that this instance has gained shards.
    pub(crate) fn gain_shards(&self) {
        let mut script = self.script.lock().unwrap();
        (script.gains_shards, script.next_upkeep) = (true, Some(Instant::now()));
    }

    /// Lets the next turn find that this instance owns this number of shards.
    pub(crate) fn set_shards(&self, shards: u32) {
        let mut membership = Membership::default();
        membership.shards = shards;
        self.script.lock().unwrap().membership = Some(membership);
        self.gain_shards();
    }

    pub(crate) fn set_max_sleep(&self, limit: Duration) {
        self.script.lock().unwrap().max_sleep = Some(limit);
    }

    /// Writes a part of a batch.
    fn write_part(&mut self, batch: &[Operation]) -> Result<Vec<Outcome>, StoreError> {
        let hook = self.script.lock().unwrap().on_write.take();
        if let Some(mut hook) = hook {
            let error = hook(batch);
            self.script.lock().unwrap().on_write.get_or_insert(hook);
            match error {
                Some(StoreError::Locked) => return Ok(vec![Outcome::Locked; batch.len()]),
                Some(error) => return Err(error),
                None => {}
            }
        }
        let mut is_refused = self.script.lock().unwrap().is_refused.take();
        let mut refuses = |operation: &Operation| is_refused.as_mut().is_some_and(|is_refused| is_refused(operation));
        let refused: Vec<bool> = batch.iter().map(&mut refuses).collect();
        let accepted = batch.iter().zip(&refused).filter(|(_, refused)| !**refused).map(|(operation, _)| operation);
        let outcomes = self.memory.write(&accepted.cloned().collect::<Vec<_>>(), Instant::now());
        if let Some(is_refused) = is_refused {
            self.script.lock().unwrap().is_refused.get_or_insert(is_refused);
        }
        let mut outcomes = outcomes?.into_iter();
        let outcome = |refused| match refused {
            true => Outcome::Refused("a trigger".to_owned()),
            false => outcomes.next().unwrap(),
        };
        Ok(refused.into_iter().map(outcome).collect())
    }
}

impl Reader for ScriptedStore {
    fn get(&mut self, target: &Target) -> Result<Option<StoredPending>, StoreError> {
        self.memory.get(target)
    }

    fn dead_letters(
        &mut self,
        topic: Option<&str>,
        after: Option<TimeoutId>,
        max: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        self.memory.dead_letters(topic, after, max)
    }

    fn counts(&mut self) -> Result<Counts, StoreError> {
        let hook = self.script.lock().unwrap().on_count.take();
        if let Some(mut hook) = hook {
            hook();
            self.script.lock().unwrap().on_count.get_or_insert(hook);
        }
        self.memory.counts()
    }
}

impl Store for ScriptedStore {
    fn describe(&self) -> String {
        "scripted".to_owned()
    }

    fn instance(&self) -> u32 {
        self.memory.instance()
    }

    fn now(&self) -> Micros {
        self.memory.now()
    }

    fn max_sleep(&self) -> Option<Duration> {
        self.script.lock().unwrap().max_sleep
    }

    fn write(&mut self, batch: &[Operation], until: Instant) -> Result<Vec<Outcome>, StoreError> {
        let mut divider = std::mem::take(&mut self.divider);
        let divided = divider.execute(batch, until, |part| self.write_part(part));
        self.divider = divider;
        Ok(divided?.into_iter().map(Divided::outcome).collect())
    }

    fn load(
        &mut self,
        topic: &str,
        range: Range<Position>,
        max: usize,
        out: &mut Vec<Position>,
    ) -> Result<Position, StoreError> {
        self.memory.load(topic, range, max, out)
    }

    fn topics(&mut self) -> Result<Vec<String>, StoreError> {
        self.memory.topics()
    }

    fn set_paused(&mut self, topic: &str, is_paused: bool) -> Result<(), StoreError> {
        self.memory.set_paused(topic, is_paused)
    }

    fn membership(&self) -> Option<Membership> {
        self.script.lock().unwrap().membership.clone()
    }

    /// Moves the clock of a store that has shards. Without them, it cannot be moved.
    fn advance_time(&mut self, by: Duration) -> Result<(), StoreError> {
        match self.membership() {
            Some(_) => self.memory.advance_time(by),
            None => Err(StoreError::Unsupported("virtual time")),
        }
    }

    fn must_rejoin(&self) -> bool {
        self.script.lock().unwrap().must_rejoin
    }

    fn rejoin(&mut self) -> Result<(), StoreError> {
        let mut script = self.script.lock().unwrap();
        script.must_rejoin = false;
        let error = script.on_rejoin.as_mut().and_then(|hook| hook());
        drop(script);
        error.map_or_else(|| self.memory.rejoin(), Err)
    }

    fn next_upkeep(&self) -> Option<Instant> {
        self.script.lock().unwrap().next_upkeep
    }

    fn lease_end(&self) -> Option<Instant> {
        self.script.lock().unwrap().lease_end
    }

    fn upkeep(&mut self, _: &[TimeoutId]) -> Result<Upkeep, StoreError> {
        let mut script = self.script.lock().unwrap();
        if let Some(hook) = &mut script.on_upkeep {
            hook();
        }
        let mut upkeep = Upkeep::default();
        upkeep.shards_gained = std::mem::take(&mut script.gains_shards);
        if upkeep.shards_gained {
            script.next_upkeep = None;
        }
        Ok(upkeep)
    }
}
