//! The visits to a shard. A visit takes out the entries that were due when it was opened.

use super::batch::{Batch, Undecided};
use crate::deadline::{IMMEDIATE, Nanos};
use crate::engine::Engine;
use crate::shard::{Shard, VisitOutcome, VisitStep};
use crate::timer_context::TimerContext;

/// The time after which the worker offers the lock of a shard again, 100 us.
const OFFER_PERIOD: Nanos = 100_000;

/// The largest number of consecutive steps of a visit that only serve requests, because the wheel
/// has no expired entries.
pub(super) const MAX_REQUEST_STEPS: usize = 16;

/// A visit to a shard. Once it is closed, it can be opened again.
pub(super) struct Visit {
    pub(super) undecided: Undecided,
    pub(super) is_open: bool,
    /// The tick up to which the entries of the shard are taken.
    tick: u64,
    /// The time at which the earliest entry was due, or the beginning of the visit if that entry
    /// was overdue.
    pub(super) due: Nanos,
    /// The outcome of the last step.
    pub(super) outcome: VisitOutcome,
    pub(super) request_steps: usize,
}

impl Visit {
    pub(super) fn new(shard: &'static Shard) -> Self {
        let undecided = Undecided::new(shard);
        Visit { undecided, is_open: false, tick: 0, due: 0, outcome: VisitOutcome::Last, request_steps: 0 }
    }

    pub(super) fn shard(&self) -> &'static Shard {
        self.undecided.shard
    }

    /// Opens the visit by its first step. [`VisitStep::TryFirst`] leaves it closed if the lock is
    /// held.
    pub(super) fn open(&mut self, first: VisitStep, tick: u64, due: Nanos, context: &TimerContext) {
        self.outcome = self.shard().visit(first, tick, &mut self.undecided.slots, context);
        self.is_open = self.outcome != VisitOutcome::Held;
        self.tick = tick;
        self.due = due;
        self.request_steps = 0;
    }

    /// Goes on for about as long as `share`, and closes the visit if it has ended. Returns the
    /// number of timeouts that ran or were handed over.
    pub(super) fn go_on(&mut self, batch: &mut Batch, engine: &Engine, share: Nanos) -> usize {
        let mut offered = engine.context.now();
        let until = offered.saturating_add(share);
        let mut expired = 0;
        loop {
            expired += batch.dispatch(engine, &mut self.undecided, until);
            self.is_open = !self.undecided.is_empty() || !self.is_last();
            if !self.is_open || !self.undecided.is_empty() {
                return expired;
            }
            let now = engine.context.now();
            if now > until {
                return expired;
            }
            if now.saturating_sub(offered) >= OFFER_PERIOD {
                self.shard().offer_lock();
                offered = now;
            }
            self.step(batch, &engine.context);
        }
    }

    /// Returns `true` if the visit makes no further step.
    fn is_last(&self) -> bool {
        self.outcome == VisitOutcome::Last || self.request_steps >= MAX_REQUEST_STEPS
    }

    /// Makes the next step of the wheel.
    fn step(&mut self, batch: &mut Batch, context: &TimerContext) {
        batch.sweeper.sweep();
        let next = self.shard().next();
        if next != IMMEDIATE && next <= self.tick {
            self.due = context.resolution.start_of(next);
        }
        self.outcome = self.shard().visit(VisitStep::Next, self.tick, &mut self.undecided.slots, context);
        self.request_steps = if self.outcome == VisitOutcome::Requests { self.request_steps + 1 } else { 0 };
    }
}
