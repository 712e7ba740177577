//! A visit to a shard, which takes out the entries that were due when it was opened.

use crate::context::Context;
use crate::shard::{LockMode, Shard, Slots, VisitMode, VisitOutcome};
use crate::time::{IMMEDIATE, Nanos};

/// The number of consecutive steps of a visit that only serve requests, because the wheel has no
/// expired entries.
pub(super) const MAX_REQUEST_STEPS: usize = 16;

/// The size of the requests that make the allocator do deferred work, in bytes. glibc serves
/// smaller ones from its caches and free lists.
const SWEEPING_SIZE: usize = 2 << 10;

/// The number of such requests before a step. glibc sorts at most 10,000 free pieces in each.
const SWEEPS: usize = 4;

/// An open visit to a shard.
pub(super) struct Visit {
    /// The index of the shard.
    pub(super) index: usize,
    /// The tick up to which the entries of the shard are taken.
    pub(super) tick: u64,
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
    /// Returns `true` if no further step may take entries out.
    pub(super) fn is_last(&self) -> bool {
        !matches!(self.outcome, VisitOutcome::Step | VisitOutcome::Requests) || self.request_steps >= MAX_REQUEST_STEPS
    }

    /// Makes the next step of the wheel.
    pub(super) fn step(&mut self, shard: &Shard, context: &Context) {
        sweep_allocator();
        let next = shard.next();
        if next != IMMEDIATE && next <= self.tick {
            self.due = context.resolution.start_of(next);
        }
        self.outcome = shard.visit(VisitMode::Next, self.tick, LockMode::Reserve, &mut self.slots, context);
        self.request_steps = if self.outcome == VisitOutcome::Requests { self.request_steps + 1 } else { 0 };
    }
}

/// Makes the allocator do work that it has deferred, so that the next requests are short.
///
/// A step of a wheel allocates under the lock. After the batch before it has freed many timeouts,
/// glibc joins and sorts the free pieces in one of the next requests, which takes milliseconds.
/// This call takes that time while no lock is held.
fn sweep_allocator() {
    for _ in 0..SWEEPS {
        drop(std::hint::black_box(Vec::<u8>::with_capacity(SWEEPING_SIZE)));
    }
}
