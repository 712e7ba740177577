//! Checks for implementations of [`Store`].
//!
//! Each check opens an empty store, executes batches, and compares the outcomes with the meaning
//! that [`transaction`](crate::transaction) documents. A check that fails panics with its name.
//! [`run_shared`] has further checks for stores that several instances share.
//!
//! ```
//! use timer_durable::MemoryStore;
//! use timer_durable::conformance;
//!
//! conformance::run(MemoryStore::new);
//! ```

mod attempts;
mod pages;
mod reads;
mod rows;
mod shared;
mod shelves;

use crate::TimeoutId;
use crate::store::{Micros, Position, Store, StoreError};
use crate::transaction::{Attempt, Insert, Operation, Outcome};
use std::fmt::Debug;
use std::ops::Range;

/// A check of a store.
type Check<S> = (&'static str, fn(&mut Bench<S>));

/// Runs all checks, each on a store that `open` returns. The store has to be empty and to be used
/// by nobody else.
///
/// # Panics
///
/// If a check fails.
pub fn run<S: Store>(mut open: impl FnMut() -> S) {
    let checks =
        pages::checks::<S>().into_iter().chain(rows::checks()).chain(attempts::checks()).chain(reads::checks());
    for (name, check) in checks.chain(shelves::checks()) {
        let mut store = open();
        ok(store.rejoin(), name);
        check(&mut Bench { store, name });
    }
}

/// Runs the checks of leases, take-overs and the writes of others. Each uses two stores that `open`
/// returns. Both stores share one list. It has to be empty and not in use by any other instance.
/// The checks take less time with a short lease.
///
/// # Panics
///
/// If a check fails.
pub fn run_shared<S: Store>(mut open: impl FnMut() -> [S; 2]) {
    for (name, check) in shared::checks::<S>() {
        let [mut first, mut second] = open().map(|store| Bench { store, name });
        check(&mut first, &mut second);
    }
}

/// A store under a check.
struct Bench<S> {
    store: S,
    name: &'static str,
}

impl<S: Store> Bench<S> {
    /// Returns a time that is due.
    fn past(&self) -> Micros {
        self.store.now() - 1_000_000
    }

    /// Returns a time that is not due.
    fn future(&self) -> Micros {
        self.store.now() + 3_600_000_000
    }

    fn write(&mut self, batch: &[Operation]) -> Vec<Outcome> {
        let outcomes = ok(self.store.write(batch), self.name);
        assert_eq!(outcomes.len(), batch.len(), "{}: an outcome for each operation", self.name);
        outcomes
    }

    /// Executes a batch of one operation.
    fn execute(&mut self, operation: Operation) -> Outcome {
        self.write(&[operation]).remove(0)
    }

    /// Executes one operation. Returns `true` if it has changed the timeout that it names.
    fn changes(&mut self, operation: Operation) -> bool {
        let id = operation.id();
        matches!(self.execute(operation), Outcome::Changed(changed) if Some(changed) == id)
    }

    /// Inserts a timeout without key.
    fn insert(&mut self, due: Micros) -> TimeoutId {
        let insert = Insert { payload: b"payload".to_vec(), ..Insert::new(TimeoutId::new(), due, "topic") };
        let id = insert.id;
        assert_eq!(self.insert_as(insert), Outcome::Created { replaced: None }, "{}", self.name);
        id
    }

    fn insert_as(&mut self, insert: Insert) -> Outcome {
        self.execute(Operation::Insert(insert))
    }

    fn begin(&mut self, id: TimeoutId) -> Outcome {
        self.execute(Operation::Begin(id))
    }

    /// Begins an attempt that has to begin.
    fn attempt(&mut self, id: TimeoutId) -> Attempt {
        match self.begin(id) {
            Outcome::Begun(attempt) => *attempt,
            other => panic!("{}: the timeout should have begun, but {other:?}", self.name),
        }
    }

    /// Loads everything that is pending.
    fn pending(&mut self) -> Vec<Position> {
        self.load(Position::START..Position::END, 1_000)
    }

    /// Loads a range, in pages of at most `max` positions.
    fn load(&mut self, range: Range<Position>, max: usize) -> Vec<Position> {
        let (mut from, mut out) = (range.start, Vec::new());
        for _ in 0..100_000 {
            let before = out.len();
            let bound = ok(self.store.load(from..range.end, max, &mut out), self.name);
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

fn ok<T: Debug>(result: Result<T, StoreError>, name: &str) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{name}: {error}"),
    }
}
