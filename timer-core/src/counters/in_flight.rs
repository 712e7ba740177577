//! What was handed over to run and has not returned: one word that says how many tasks are queued and how many run.
//!
//! ```text
//!  63       62                   32 31                   0
//! +--------+-----------------------+----------------------+
//! | WAITED |  queued               |  running             |
//! +--------+-----------------------+----------------------+
//! ```
//!
//! A thread that waits for zero sets `WAITED`; whatever brings the rest to zero sees it in the same read-modify-write, or the
//! waiting thread sees zero. So neither waits for the other in vain.

use crate::sync::{AtomicBool, AtomicU64, Event, Ordering};
use std::time::Instant;

const RUNNING: u64 = 1;
const QUEUED: u64 = 1 << 32;
const WAITED: u64 = 1 << 63;

/// Beyond this `queued` is below zero: a task was cancelled before the owner of the turn, which has won it for the executor, has
/// counted it.
const BELOW_ZERO: u64 = 1 << 30;

/// The tasks in flight.
#[derive(Default)]
pub(crate) struct InFlight {
    word: AtomicU64,
    /// The owner of the turn runs tasks itself just now. A store, for it does so for every batch.
    inline: AtomicBool,
    none: Event,
}

impl InFlight {
    /// So many tasks were handed over to an executor.
    pub(crate) fn queue(&self, tasks: u64) {
        // ORDERING: Relaxed, the hand-over itself orders this before the start.
        self.word.fetch_add(tasks * QUEUED, Ordering::Relaxed);
    }

    /// One of them has started.
    pub(crate) fn start(&self) {
        // ORDERING: Relaxed, only counted.
        self.word.fetch_sub(QUEUED - RUNNING, Ordering::Relaxed);
    }

    /// One that was queued will not run, or not now.
    pub(crate) fn unqueue(&self) {
        self.less(QUEUED);
    }

    /// One that ran has returned, and what it owned is gone.
    pub(crate) fn finish(&self) {
        self.less(RUNNING);
    }

    fn less(&self, one: u64) {
        // ORDERING: AcqRel, what the tasks have done comes before what the thread that waits for them does.
        if self.word.fetch_sub(one, Ordering::AcqRel) == one | WAITED {
            self.none.notify_all();
        }
    }

    /// For the owner of the turn, around a batch that it runs itself.
    pub(crate) fn run_inline(&self, running: bool) {
        // ORDERING: Relaxed, a figure for people.
        self.inline.store(running, Ordering::Relaxed);
    }

    /// How many are queued, and how many run.
    pub(crate) fn get(&self) -> (u64, u64) {
        // ORDERING: Relaxed, figures of the moment.
        let word = self.word.load(Ordering::Relaxed) & !WAITED;
        let queued = Some(word / QUEUED).filter(|queued| *queued < BELOW_ZERO).unwrap_or(0);
        (queued, word % QUEUED + u64::from(self.inline.load(Ordering::Relaxed)))
    }

    /// Waits until none of an executor's is left, or until `until`.
    pub(crate) fn wait_for_none(&self, until: Option<Instant>) {
        self.none.wait(until, || {
            // ORDERING: AcqRel, as in `less`; a read-modify-write, so that it and the last `less` have an order.
            self.word.fetch_or(WAITED, Ordering::AcqRel) & !WAITED == 0
        });
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_cancel_that_comes_before_the_count() {
        let in_flight = InFlight::default();
        in_flight.unqueue();
        assert_eq!(in_flight.get(), (0, 0), "not as many as there are numbers");
        in_flight.queue(3);
        assert_eq!(in_flight.get(), (2, 0));
        in_flight.start();
        in_flight.unqueue();
        assert_eq!(in_flight.get(), (0, 1));
        in_flight.finish();
        in_flight.wait_for_none(None);
    }
}
