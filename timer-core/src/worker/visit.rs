//! The visits to a shard. A visit takes out the entries that were due when it was opened.

use super::batch::Batch;
use crate::context::Context;
use crate::shard::{LockMode, Shard, Slots, VisitMode, VisitOutcome};
use crate::time::{IMMEDIATE, Nanos};
use crate::timer::Engine;

/// A lock is reserved after this many turns that have asked for it.
pub(super) const MAX_FAILED_VISITS: u8 = 2;

/// The number of consecutive steps of a visit that only serve requests, because the wheel has no
/// expired entries.
pub(super) const MAX_REQUEST_STEPS: usize = 16;

/// The size of the requests that make the allocator do deferred work, in bytes. glibc serves
/// smaller ones from its caches and free lists.
const SWEEPING_SIZE: usize = 2 << 10;

/// The least number of such requests before a step.
const MIN_SWEEPS: usize = 4;

/// One more request is made for this many entries that were decided since the last step. Most of
/// their memory is free by then, and glibc sorts at most 10,000 free pieces in a request.
const SORTED: usize = 8_192;

/// The most such requests before a step. They take 7 to 15 us if there is nothing to do.
const MAX_SWEEPS: usize = 512;

/// A visit to a shard. Once it is closed, it can be opened again.
pub(super) struct Visit {
    pub(super) shard: &'static Shard,
    pub(super) is_open: bool,
    /// The number of consecutive turns that have asked for the lock.
    failed_visits: u8,
    /// The tick up to which the entries of the shard are taken.
    tick: u64,
    /// The time at which the earliest entry was due, or the beginning of the visit if that entry
    /// was overdue.
    pub(super) due: Nanos,
    /// The outcome of the last step.
    pub(super) outcome: VisitOutcome,
    /// The removed entries.
    pub(super) slots: Slots,
    /// The entries before this index are decided.
    pub(super) decided: usize,
    pub(super) request_steps: usize,
}

impl Visit {
    pub(super) fn new(shard: &'static Shard) -> Self {
        let (outcome, slots) = (VisitOutcome::Last, Slots::default());
        Visit { shard, is_open: false, failed_visits: 0, tick: 0, due: 0, outcome, slots, decided: 0, request_steps: 0 }
    }

    /// Opens the visit and makes its first step. Returns `false` if the lock is held.
    pub(super) fn open(&mut self, tick: u64, due: Nanos, context: &Context) -> bool {
        let lock_mode = if self.failed_visits < MAX_FAILED_VISITS { LockMode::Ask } else { LockMode::Reserve };
        self.outcome = self.shard.visit(VisitMode::OverdueFirst, tick, lock_mode, &mut self.slots, context);
        self.is_open = self.outcome != VisitOutcome::Asked;
        self.failed_visits = if self.is_open { 0 } else { self.failed_visits + 1 };
        (self.tick, self.due, self.request_steps) = (tick, due, 0);
        self.is_open
    }

    /// Goes on for about as long as `share`, and closes the visit if it has ended. Returns the
    /// number of timeouts that ran or were handed over.
    pub(super) fn go_on(&mut self, batch: &mut Batch, engine: &Engine, share: Nanos) -> usize {
        let until = engine.context.now().saturating_add(share);
        let mut expired = 0;
        loop {
            expired += batch.dispatch(engine, self, until);
            self.is_open = !self.slots.is_empty() || !self.is_last();
            if !self.is_open || !self.slots.is_empty() || engine.context.now() > until {
                return expired;
            }
            self.step(batch, &engine.context);
        }
    }

    /// Returns `true` if no further step may take entries out.
    fn is_last(&self) -> bool {
        !matches!(self.outcome, VisitOutcome::Step | VisitOutcome::Requests) || self.request_steps >= MAX_REQUEST_STEPS
    }

    /// Makes the next step of the wheel.
    fn step(&mut self, batch: &mut Batch, context: &Context) {
        sweep_allocator(batch.take_unswept());
        let next = self.shard.next();
        if next != IMMEDIATE && next <= self.tick {
            self.due = context.resolution.start_of(next);
        }
        self.outcome = self.shard.visit(VisitMode::Next, self.tick, LockMode::Reserve, &mut self.slots, context);
        self.request_steps = if self.outcome == VisitOutcome::Requests { self.request_steps + 1 } else { 0 };
    }
}

/// Makes the allocator do work that it has deferred, so that the next requests are short.
///
/// A step of a wheel allocates under the lock. After the batch before it has freed many timeouts,
/// glibc joins and sorts the free pieces in one of the next requests, which takes milliseconds.
/// This call takes that time while no lock is held. `unswept` is the number of entries that were
/// decided since the last call.
fn sweep_allocator(unswept: usize) {
    for _ in 0..sweeps(unswept) {
        drop(std::hint::black_box(Vec::<u8>::with_capacity(SWEEPING_SIZE)));
    }
}

fn sweeps(unswept: usize) -> usize {
    (MIN_SWEEPS + unswept / SORTED).min(MAX_SWEEPS)
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::sweeps;

    #[test]
    fn a_sweep_grows_with_the_number_of_decided_entries() {
        assert_eq!([0, 8_191, 62_500, usize::MAX].map(sweeps), [4, 4, 11, 512]);
    }
}
