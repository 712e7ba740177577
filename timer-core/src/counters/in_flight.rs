//! The tasks that were handed over and have not returned. One word counts the queued and the
//! running ones.
//!
//! ```text
//!  63           62                   32 31                   0
//! +------------+-----------------------+----------------------+
//! | HAS_WAITER |  queued               |  running             |
//! +------------+-----------------------+----------------------+
//! ```
//!
//! A thread that waits for zero sets `HAS_WAITER`, after the turn's thread has ended or the
//! thread's limit has been reached. Either the read-modify-write that brings the counts to zero
//! sees the bit, or the waiting thread sees zero. So no wake-up is lost.

use crate::sync::{AtomicBool, AtomicU64, Event, Ordering};
use std::time::Instant;

const RUNNING: u64 = 1;
const QUEUED: u64 = 1 << 32;
const HAS_WAITER: u64 = 1 << 63;

/// From this value on, `queued` is negative. A task may be cancelled before the turn's thread,
/// which has won it for the executor, has counted it.
const BELOW_ZERO: u64 = 1 << 30;

/// The tasks in flight.
#[derive(Default)]
pub(crate) struct InFlight {
    word: AtomicU64,
    /// Whether the turn's thread is running tasks. It is stored for every batch, without a
    /// read-modify-write.
    inline: AtomicBool,
    /// Whether the worker may have entries that have left a wheel and are not decided.
    undecided: AtomicBool,
    none: Event,
}

impl InFlight {
    /// Counts tasks that are being handed over to an executor.
    pub(crate) fn queue(&self, tasks: u64) {
        // ORDERING: Relaxed, because the hand-over orders this before the start.
        self.word.fetch_add(tasks * QUEUED, Ordering::Relaxed);
    }

    /// Counts the start of a queued task.
    pub(crate) fn start(&self) {
        // ORDERING: Relaxed, because this is only a count.
        self.word.fetch_sub(QUEUED - RUNNING, Ordering::Relaxed);
    }

    /// Counts the end of a queued task that does not run, or not now.
    pub(crate) fn unqueue(&self) {
        self.subtract(QUEUED);
    }

    /// Counts the end of a running task, whose captures have been dropped.
    pub(crate) fn finish(&self) {
        self.subtract(RUNNING);
    }

    fn subtract(&self, one: u64) {
        // ORDERING: AcqRel, so that the waiting thread sees the effects of the tasks.
        if self.word.fetch_sub(one, Ordering::AcqRel) == one | HAS_WAITER {
            self.none.notify_all();
        }
    }

    /// Records whether the turn's thread is running tasks. Called around each batch.
    pub(crate) fn run_inline(&self, running: bool) {
        // ORDERING: Relaxed, because the value is only reported.
        self.inline.store(running, Ordering::Relaxed);
    }

    /// Records whether the worker may have entries that are not decided. The worker calls this
    /// before it takes any out of a wheel.
    pub(crate) fn set_undecided(&self, undecided: bool) {
        // ORDERING: Release, so that a thread that finds no such entries also finds the tasks that
        // were counted for them.
        self.undecided.store(undecided, Ordering::Release);
    }

    /// Returns `true` if the worker may have entries that are not decided. The caller must have
    /// closed the shards.
    pub(crate) fn has_undecided(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `set_undecided`. If the worker has taken an
        // entry out before the shard was closed, the shard's lock orders this load after its store.
        self.undecided.load(Ordering::Acquire)
    }

    /// Returns the numbers of queued and of running tasks.
    pub(crate) fn get(&self) -> (u64, u64) {
        // ORDERING: Relaxed, because the numbers are a snapshot.
        let word = self.word.load(Ordering::Relaxed) & !HAS_WAITER;
        let queued = Some(word / QUEUED).filter(|queued| *queued < BELOW_ZERO).unwrap_or(0);
        (queued, word % QUEUED + u64::from(self.inline.load(Ordering::Relaxed)))
    }

    /// Waits until the executor has no task left, or until `until`.
    pub(crate) fn wait_for_none(&self, until: Option<Instant>) {
        self.none.wait(until, || {
            // ORDERING: AcqRel, as in `subtract`. A read-modify-write, so that this and the last
            // `subtract` have an order.
            self.word.fetch_or(HAS_WAITER, Ordering::AcqRel) & !HAS_WAITER == 0
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
