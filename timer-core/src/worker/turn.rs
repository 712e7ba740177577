//! The turn, which removes the expired entries from the wheels, wins their states, and runs them or
//! hands them over.
//!
//! The owner of the [`Dispatcher`] owns the turn. It is the worker's thread, a
//! [`Driver`](crate::Driver) or a [`ManualDriver`](crate::ManualDriver). There is one per timer, so
//! the counters that belong to the turn have one writer.
//!
//! 1. Open a visit to each shard whose `next` has come and that has no open visit. Under the
//!    shard's lock, serve some requests, and remove the overdue entries, or some of the expired
//!    ones ([`Shard::visit`](crate::shard::Shard::visit)). If the lock of a shard is held, reserve
//!    it, and wait for it after the other shards are visited.
//! 2. With no lock held, decide each removed entry. Run it here if it is due, or collect it for the
//!    executor. If `reset` has moved it, give it back to its shard,
//!    [`MAX_PER_LOCK`](crate::shard::MAX_PER_LOCK) entries under one lock. If it has ended, forget
//!    it.
//! 3. Make the next step of the shard's wheel and repeat step 2, until the shard has no more
//!    entries that were due when the visit was opened. Then close the visit.
//! 4. Run the tasks here that the executor has refused, or has lost in a panic or otherwise.
//!
//! *Fairness between shards.* The worker goes round the open visits and performs steps 2 and 3 for
//! each of them. A round takes about [`ROUND`], of which each visit has an equal share. A visit
//! exceeds its share by at most a batch of tasks. The worker opens new visits between the rounds
//! ([`Dispatcher::turn`]), so a timeout does not wait until another shard has run all its due
//! tasks. A driver's turn ends when all its visits are closed ([`Dispatcher::turn_to_end`]). The
//! entries of one shard keep their order, because a shard has one visit at a time.
//!
//! Every visit ends, because entries that become due after its beginning belong to the next visit.
//!
//! *The clock.* It is read before the first batch of at most [`BATCH`](super::batch::BATCH) tasks
//! that run here, and after each batch. The first batches of a turn are smaller. A task is due by
//! the reading before its batch, so it is never early. Its lag is recorded by the reading after its
//! batch. The recorded lag is never too low, and too high by at most the duration of the batch. The
//! readings also make up the [timeline](super::timeline), by which the lateness is split.

use super::batch::Batch;
use super::visit::Visit;
use crate::counters::LateCause;
use crate::deadline::{IMMEDIATE, Nanos};
use crate::engine::{Engine, run_abandoned};
use crate::lateness::QuotaWatch;
use crate::shard::{VisitOutcome, VisitStep};
use crate::sync::Arc;

/// The time that all open visits share in one round, 2 ms.
const ROUND: Nanos = 2_000_000;

/// The right to take turns, and the buffers for it, which are used again in each turn.
pub(crate) struct Dispatcher {
    pub(crate) engine: Arc<Engine>,
    /// One for each shard. Tasks run only after all shards that are due have been visited.
    visits: Box<[Visit]>,
    pub(super) batch: Batch,
}

impl Dispatcher {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        let visits = engine.shards().iter().map(|shard| Visit::new(shard)).collect();
        let mut batch = Batch::default();
        if !engine.context.present.is_virtual() {
            batch.timeline.watch_quota(QuotaWatch::of_this_process());
        }
        Self { engine, visits, batch }
    }

    /// Returns the time since which entries of open visits have been due. Returns `None` if no
    /// visit is open.
    pub(crate) fn due(&self) -> Option<Nanos> {
        self.visits.iter().filter(|visit| visit.is_open).map(|visit| visit.due).min()
    }

    /// Opens visits to the shards that are due at `now` and goes round all open visits once.
    pub(crate) fn turn(&mut self, now: Nanos) {
        self.open_visits(now);
        self.go_round();
    }

    /// Runs or hands over everything that is due at `now`. Returns the number of these timeouts.
    pub(crate) fn turn_to_end(&mut self, now: Nanos) -> usize {
        self.open_visits(now);
        let mut expired = 0;
        while self.visits.iter().any(|visit| visit.is_open) {
            expired += self.go_round();
        }
        self.rest();
        expired
    }

    /// Emits the warning about a slow task, once all timeouts that waited for it have run.
    pub(crate) fn rest(&mut self) {
        self.batch.slow.emit(&self.engine.context);
    }

    /// Ends the open visits of a stopped timer. `stop` returns their entries, or they are
    /// cancelled.
    pub(crate) fn close_visits(&mut self) {
        for visit in &mut self.visits {
            let mut closed = std::mem::replace(visit, Visit::new(visit.shard()));
            closed.undecided.take_all().for_each(|timeout| self.engine.leave_unclaimed(timeout));
        }
    }

    /// Opens visits to the shards that are due at `now` and have none.
    fn open_visits(&mut self, now: Nanos) {
        let context = &*self.engine.context;
        context.counters.turns.add(1);
        let has_slept = self.visits.iter().all(|visit| !visit.is_open);
        self.batch.begin_turn(now, has_slept, context);
        let tick = context.resolution.tick_at(now);
        let mut first = u64::MAX;
        self.batch.sweeper.sweep_if_many();
        for visit in self.visits.iter_mut().filter(|visit| !visit.is_open) {
            let next = visit.shard().next();
            if next > tick {
                continue;
            }
            let due = if next == IMMEDIATE { now } else { context.resolution.start_of(next) };
            if next != IMMEDIATE {
                first = first.min(next);
            }
            visit.open(VisitStep::TryFirst, tick, due, context);
        }
        loop {
            let is_held = |visit: &&mut Visit| visit.outcome == VisitOutcome::Held;
            // Locks that have become free are visited before the worker waits for a held one.
            for visit in self.visits.iter_mut().filter(is_held) {
                visit.open(VisitStep::TryFirst, tick, visit.due, context);
            }
            let Some(visit) = self.visits.iter_mut().find(is_held) else { break };
            visit.open(VisitStep::First, tick, visit.due, context);
        }
        if first <= tick {
            context.counters.tick_lag.record(now.saturating_sub(context.resolution.start_of(first)));
        }
        if context.backlog.has_abandoned() {
            context.backpressure.inside_user_code(|| run_abandoned(context));
            self.batch.timeline.extend(context.now(), LateCause::Executor, None);
        }
    }

    /// Goes on with each open visit and closes the ones that end. Returns the number of timeouts
    /// that ran or were handed over.
    fn go_round(&mut self) -> usize {
        let Self { engine, visits, batch } = self;
        let began = batch.timeline.causes().end();
        let share = ROUND / visits.iter().filter(|visit| visit.is_open).count().max(1) as u64;
        let open = visits.iter_mut().filter(|visit| visit.is_open);
        let expired = open.map(|visit| visit.go_on(batch, engine, share)).sum();
        engine.context.counters.expiry_time.record(expired, || batch.timeline.worked_since(began));
        expired
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests;
