//! A store under a check, and the operations of the checks.

use crate::TimeoutId;
use crate::store::{Micros, Position, Store, StoreError};
use crate::transaction::{Attempt, Insert, Operation, Outcome};
use std::fmt::Debug;
use std::ops::Range;
use std::time::{Duration, Instant};

/// A check of a store.
pub(super) type Check<S> = (&'static str, fn(&mut Bench<S>));

/// A store under a check.
pub(super) struct Bench<S> {
    pub(super) store: S,
    pub(super) name: &'static str,
}

impl<S: Store> Bench<S> {
    /// Returns a time that is due.
    pub(super) fn past(&self) -> Micros {
        self.store.now() - 1_000_000
    }

    /// Returns a time that is not due.
    pub(super) fn future(&self) -> Micros {
        self.store.now() + 3_600_000_000
    }

    pub(super) fn write(&mut self, batch: &[Operation]) -> Vec<Outcome> {
        let outcomes = ok(self.store.write(batch, later()), self.name);
        assert_eq!(outcomes.len(), batch.len(), "{}: an outcome for each operation", self.name);
        outcomes
    }

    /// Executes a batch of one operation.
    pub(super) fn execute(&mut self, operation: Operation) -> Outcome {
        self.write(&[operation]).remove(0)
    }

    /// Executes one operation. Returns `true` if it has changed the timeout that it names.
    pub(super) fn changes(&mut self, operation: Operation) -> bool {
        let id = operation.id();
        matches!(self.execute(operation), Outcome::Changed(changed) if Some(changed) == id)
    }

    /// Inserts a timeout without key.
    pub(super) fn insert(&mut self, due: Micros) -> TimeoutId {
        let insert = Insert { payload: b"payload".to_vec(), ..Insert::new(TimeoutId::new(), due, "topic") };
        let id = insert.id;
        assert_eq!(self.insert_as(insert), Outcome::Created { replaced: None }, "{}", self.name);
        id
    }

    pub(super) fn insert_as(&mut self, insert: Insert) -> Outcome {
        self.execute(Operation::Insert(insert))
    }

    pub(super) fn begin(&mut self, id: TimeoutId) -> Outcome {
        self.execute(Operation::Begin(id))
    }

    /// Begins an attempt that has to begin.
    pub(super) fn attempt(&mut self, id: TimeoutId) -> Attempt {
        match self.begin(id) {
            Outcome::Begun(attempt) => *attempt,
            other => panic!("{}: the timeout should have begun, but {other:?}", self.name),
        }
    }

    /// Loads everything that is pending.
    pub(super) fn pending(&mut self) -> Vec<Position> {
        let topics = self.topics();
        let load = |topic: &String| self.load_topic(topic, Position::START..Position::END, 1_000);
        let mut all: Vec<Position> = topics.iter().flat_map(load).collect();
        all.sort_unstable();
        all
    }

    /// Returns the topics of the store, in order.
    pub(super) fn topics(&mut self) -> Vec<String> {
        let mut topics = ok(self.store.topics(), self.name);
        topics.sort_unstable();
        assert!(topics.windows(2).all(|pair| pair[0] != pair[1]), "{}: each once: {topics:?}", self.name);
        topics
    }

    /// Loads a range of the topic of [`insert`](Self::insert).
    pub(super) fn load(&mut self, range: Range<Position>, max: usize) -> Vec<Position> {
        self.load_topic("topic", range, max)
    }

    /// Loads a range, in pages of at most `max` positions.
    pub(super) fn load_topic(&mut self, topic: &str, range: Range<Position>, max: usize) -> Vec<Position> {
        let mut from = range.start;
        let mut out = Vec::new();
        for _ in 0..100_000 {
            let before = out.len();
            let bound = ok(self.store.load(topic, from..range.end, max, &mut out), self.name);
            let page = &out[before..];
            assert!(page.len() <= max, "{}: a page of {} instead of {max}", self.name, page.len());
            assert!(from <= bound && bound <= range.end, "{}: {bound:?} lies outside of the range", self.name);
            let covered = from..bound;
            assert!(page.iter().all(|position| covered.contains(position)), "{}: {page:?}", self.name);
            from = bound;
            if from == range.end {
                return out;
            }
        }
        panic!("{}: the end of the range is never reached", self.name);
    }
}

/// Returns a deadline that no batch meets.
pub(super) fn later() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

pub(super) fn ok<T: Debug>(result: Result<T, StoreError>, name: &str) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{name}: {error}"),
    }
}
