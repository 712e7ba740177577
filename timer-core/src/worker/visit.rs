//! A visit to a shard, which takes out the entries that were due when it was opened.

use crate::context::Context;
use crate::shard::{LockMode, Shard, Slots, VisitMode, VisitOutcome};
use crate::time::{IMMEDIATE, Nanos};

/// The number of consecutive steps of a visit that only serve requests, because the wheel has no
/// expired entries.
pub(super) const MAX_REQUEST_STEPS: usize = 16;

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
        let next = shard.next();
        if next != IMMEDIATE && next <= self.tick {
            self.due = context.resolution.start_of(next);
        }
        self.outcome = shard.visit(VisitMode::Next, self.tick, LockMode::Reserve, &mut self.slots, context);
        self.request_steps = if self.outcome == VisitOutcome::Requests { self.request_steps + 1 } else { 0 };
    }
}
