//! A store of a durable timer that says that processes share it.

use std::ops::Range;
use std::time::Instant;
use timer_durable::store::{Micros, Position, Reader, Store};
use timer_durable::transaction::{Operation, Outcome};
use timer_durable::{Counts, DeadLetter, Membership, MemoryStore, StoreError, TimeoutId};

/// A store that says that it is shared, and does not know how many timeouts are pending.
pub(crate) struct Shared {
    store: MemoryStore,
    description: &'static str,
}

impl Shared {
    pub(crate) fn new(description: &'static str) -> Self {
        Self { store: MemoryStore::new(), description }
    }
}

impl Reader for Shared {
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

impl Store for Shared {
    fn membership(&self) -> Option<Membership> {
        let mut membership = Membership::default();
        membership.name = Some("<i>billing</i>".to_owned());
        membership.instance = 4_711;
        membership.shards = 32;
        membership.nodes = 2;
        membership.taken_over = 7;
        membership.foreign = 1_234;
        membership.reconnects = 1;
        membership.renewed = Some(Instant::now());
        Some(membership)
    }

    fn describe(&self) -> String {
        self.description.to_owned()
    }

    fn instance(&self) -> u32 {
        self.store.instance()
    }

    fn now(&self) -> Micros {
        self.store.now()
    }

    fn lease_end(&self) -> Option<Instant> {
        self.store.lease_end()
    }

    fn write(&mut self, batch: &[Operation], until: Instant) -> Result<Vec<Outcome>, StoreError> {
        self.store.write(batch, until)
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
}
