//! One turn: take out what is due, win each state, run or hand over.
//!
//! The owner of the [`Dispatcher`] owns the turn: the worker's thread, a [`Driver`](crate::Driver) or a
//! [`ManualDriver`](crate::ManualDriver). There is one per timer, so the counters that belong to the turn have one writer.
//!
//! 1. Visit the shards whose `next` has come, and only those. Under each lock, read some requests, and take out what is overdue, or
//!    some of what is due ([`Shard::take`]). A lock that is taken is asked for; after [`PATIENCE`] turns in vain it is reserved.
//! 2. With no lock held, decide each entry. Due: run it here, or collect it for the executor. Moved by `reset`: give it
//!    back to its shard, [`MAX_PER_LOCK`](crate::shard::MAX_PER_LOCK) under one lock. Ended: forget it.
//! 3. Until nothing else is due in the shards visited: the next step of the wheel, and 2 again.
//! 4. What the executor refuses, loses or panics over runs here.
//!
//! A turn ends: what becomes overdue while it goes on, by its own tasks or otherwise, is left to the next.
//!
//! *The clock* is read once per batch of at most [`BATCH`] tasks that run here, and once at its end. A task is due by the reading before it,
//! so it is never early; its lag is recorded by the reading after it, so it is never too low, and too high by what the batch took.

use super::slow::SlowTasks;
use crate::context::Context;
use crate::counters::LagHistogram;
use crate::entry::Timeout;
use crate::entry::state::{Due, Runs};
use crate::shard::{Patience, Place, Shard, Take, Taken};
use crate::sync::Arc;
use crate::time::{IMMEDIATE, Nanos};
use crate::timer::{Engine, Shell, run, run_abandoned, wake};
use timer_executor::{Task, TaskExecutor, panics};

/// At most so many tasks run here between two readings of the clock.
const BATCH: usize = 64;

/// At most so many are handed over to an executor at once.
const HANDOVER: usize = 1024;

/// So many entries ahead are fetched into the cache.
const AHEAD: usize = 32;

/// After so many turns in vain a lock is reserved.
const PATIENCE: u8 = 2;

/// So many visits in a row are made to one shard for its requests alone, because the wheel has nothing that is due.
const IDLE_VISITS: usize = 16;

/// The right to take turns, and the room it needs; nothing is allocated per turn once it has grown.
pub(crate) struct Dispatcher {
    engine: Arc<Engine>,
    /// For each shard, how many turns have asked for its lock in vain.
    in_vain: Box<[u8]>,
    /// What was taken out: by shard, before any task of the turn runs.
    visits: Vec<Visit>,
    /// Arrays to be used again.
    spare: Vec<Vec<Place>>,
    batch: Batch,
}

/// What a visit to a shard has got.
struct Visit {
    at: usize,
    taken: Taken,
    places: Vec<Place>,
}

/// What a turn has done.
pub(crate) struct Turned {
    /// Timeouts handed over, or run.
    pub(crate) expired: usize,
    /// Whether the locks of all shards that were due were got.
    pub(crate) complete: bool,
}

impl Dispatcher {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        let in_vain = vec![0; engine.shards().len()].into();
        Self { engine, in_vain, visits: Vec::new(), spare: Vec::new(), batch: Batch::default() }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Runs or hands over everything due at `now`.
    pub(crate) fn turn(&mut self, now: Nanos) -> Turned {
        let engine = self.engine.clone();
        let context = &*engine.context;
        context.counters.turns.add(1);
        let tick = context.resolution.tick_at(now);
        let mut turned = Turned { expired: 0, complete: true };
        let mut first = u64::MAX;
        for (at, shard) in engine.shards().iter().enumerate() {
            let next = shard.next_to_visit();
            if next > tick {
                continue;
            }
            if next != IMMEDIATE {
                first = first.min(next);
            }
            self.visit(at, shard, tick, context);
        }
        if first <= tick {
            context.counters.tick_lag.record(now.saturating_sub(context.resolution.start_of(first)));
        }
        if !context.abandoned.is_empty() {
            context.backpressure.inside_user_code(|| run_abandoned(context));
        }
        let mut visits = std::mem::take(&mut self.visits);
        for mut visit in visits.drain(..) {
            let shard = engine.shards()[visit.at];
            turned.complete &= visit.taken != Taken::Asked;
            turned.expired += self.batch.dispatch(&engine, shard, &mut visit.places);
            let mut idle = 0;
            while matches!(visit.taken, Taken::Step | Taken::Requests) && idle < IDLE_VISITS {
                if visit.places.capacity() > HANDOVER {
                    // Not under the lock.
                    visit.places = Vec::new();
                }
                visit.taken = shard.take(Take::Next, tick, Patience::Reserve, &mut visit.places, context);
                idle = if visit.taken == Taken::Requests { idle + 1 } else { 0 };
                turned.expired += self.batch.dispatch(&engine, shard, &mut visit.places);
            }
            self.keep(visit.places);
        }
        self.visits = visits;
        turned
    }

    fn visit(&mut self, at: usize, shard: &Shard, tick: u64, context: &Context) {
        let mut places = self.spare.pop().unwrap_or_default();
        let patience = if self.in_vain[at] < PATIENCE { Patience::Ask } else { Patience::Reserve };
        let taken = shard.take(Take::OverdueFirst, tick, patience, &mut places, context);
        self.in_vain[at] = if taken == Taken::Asked { self.in_vain[at] + 1 } else { 0 };
        self.visits.push(Visit { at, taken, places });
    }

    /// A burst of a million leaves no room behind.
    fn keep(&mut self, places: Vec<Place>) {
        if places.capacity() <= HANDOVER && self.spare.len() < self.in_vain.len() {
            self.spare.push(places);
        }
    }
}

/// What is on its way from a bucket to a run.
#[derive(Default)]
struct Batch {
    /// Deadlines of what was won and whose lag is to be told.
    deadlines: Vec<Nanos>,
    tasks: Vec<Task>,
    /// Deadlines of futures whose tasks were woken, which happens here whatever the executor.
    woken: Vec<Nanos>,
    /// What goes back into the wheel, and under which tick.
    back: Vec<(u64, Timeout)>,
    slow: SlowTasks,
}

impl Batch {
    /// Decides all that was taken out of a shard. Returns how many were handed over, or have run.
    fn dispatch(&mut self, engine: &Engine, shard: &Shard, places: &mut Vec<Place>) -> usize {
        if places.is_empty() {
            return 0;
        }
        let context = &engine.context;
        places.iter().take(AHEAD).for_each(prefetch);
        let (mut now, mut expired, mut read_at) = (context.now(), 0, 0);
        let size = if engine.runs_inline { BATCH } else { HANDOVER };
        context.counters.in_flight.run_inline(engine.runs_inline);
        for at in 0..places.len() {
            if let Some(place) = places.get(at + AHEAD) {
                prefetch(place);
            }
            let Some(timeout) = places[at].1.take() else { continue };
            if context.is_stopped() {
                engine.leave_unclaimed(timeout);
                continue;
            }
            if self.deadlines.is_empty() && self.woken.is_empty() && at - read_at > BATCH {
                // Finding what is due takes time, for which no task is to blame.
                now = context.now();
                read_at = at;
            }
            match (timeout.runs(), &engine.executor) {
                (Runs::Wake, _) => self.wake_here(timeout, now, context),
                (_, None) => self.run_here(timeout, now, context),
                (_, Some(_)) => self.collect(timeout, now, context),
            }
            if self.deadlines.len() >= size || self.woken.len() >= BATCH {
                expired += self.deadlines.len() + self.woken.len();
                now = self.finish(engine, now);
                read_at = at;
            }
        }
        places.clear();
        expired += self.deadlines.len() + self.woken.len();
        self.finish(engine, now);
        context.counters.in_flight.run_inline(false);
        if !self.back.is_empty() {
            shard.give_back(&mut self.back, context);
            self.back.drain(..).for_each(|(_, timeout)| engine.leave_unclaimed(timeout));
            if self.back.capacity() > 4 * HANDOVER {
                self.back = Vec::new();
            }
        }
        expired
    }

    /// Runs an entry's task on this thread, if it is due.
    #[inline]
    fn run_here(&mut self, timeout: Timeout, now: Nanos, context: &Context) {
        match timeout.expire(now) {
            Due::Won(owned) => {
                context.counters.runs.add(1);
                if timeout.runs() == Runs::Once {
                    context.counters.expired.add(1);
                    context.release_permit();
                }
                self.deadlines.push(owned.deadline().nanos());
                context.backpressure.inside_user_code(|| run(owned, &timeout, context));
            }
            Due::Later(deadline) => self.back.push((context.resolution.tick_of(deadline), timeout)),
            Due::Gone => {}
        }
    }

    /// Wakes the task of a future, if it is due.
    #[inline]
    fn wake_here(&mut self, timeout: Timeout, now: Nanos, context: &Context) {
        match timeout.expire(now) {
            Due::Won(owned) => {
                context.counters.runs.add(1);
                context.counters.expired.add(1);
                context.release_permit();
                self.woken.push(owned.deadline().nanos());
                context.backpressure.inside_user_code(|| wake(owned, &timeout, context));
            }
            Due::Later(deadline) => self.back.push((context.resolution.tick_of(deadline), timeout)),
            Due::Gone => {}
        }
    }

    /// Wins an entry for the executor, if it is due.
    fn collect(&mut self, timeout: Timeout, now: Nanos, context: &Arc<Context>) {
        match timeout.state().hand_over(now) {
            Due::Won(deadline) => {
                self.deadlines.push(deadline.nanos());
                self.tasks.push(Shell::task(timeout, context));
            }
            Due::Later(deadline) => self.back.push((context.resolution.tick_of(deadline), timeout)),
            Due::Gone => {}
        }
    }

    /// Ends a batch that began at `began`: hands it over, if there is an executor, and records the lags. Returns the present.
    fn finish(&mut self, engine: &Engine, began: Nanos) -> Nanos {
        let (tasks, woken) = (self.deadlines.len(), self.woken.len());
        if tasks + woken == 0 {
            return began;
        }
        let context = &*engine.context;
        let now = context.now();
        record(&mut self.woken, &context.counters.inline_lag, now);
        if woken > 0 && (tasks == 0 || engine.executor.is_some()) {
            self.slow.record(context, engine.tick_nanos, woken, now.saturating_sub(began), now);
        }
        if tasks == 0 {
            return now;
        }
        let Some(executor) = &engine.executor else {
            record(&mut self.deadlines, &context.counters.inline_lag, now);
            self.slow.record(context, engine.tick_nanos, tasks + woken, now.saturating_sub(began), now);
            return now;
        };
        record(&mut self.deadlines, &context.counters.handover_lag, now);
        context.counters.runs.add(tasks as u64);
        context.counters.in_flight.queue(tasks as u64);
        self.execute(&**executor, engine);
        let after = context.now();
        if engine.runs_inline {
            self.slow.record(context, engine.tick_nanos, tasks, after.saturating_sub(now), after);
        }
        after
    }

    /// Hands the collected tasks to the executor; nothing of what it does can lose one or end the worker.
    fn execute(&mut self, executor: &dyn TaskExecutor, engine: &Engine) {
        let context = &*engine.context;
        let execute = || panics::catch(|| executor.execute_batch(&mut self.tasks));
        if let Err(message) = context.backpressure.inside_user_code(execute) {
            context.trace(|| tracing::error!(timer = %context.name, panic = %message, "the executor panicked"));
        }
        if !self.tasks.is_empty() {
            self.run_rejected(engine);
        }
        if !context.abandoned.is_empty() {
            context.backpressure.inside_user_code(|| run_abandoned(context));
        }
    }

    #[cold]
    fn run_rejected(&mut self, engine: &Engine) {
        let context = &*engine.context;
        let mut rejected = std::mem::take(&mut self.tasks);
        for task in rejected.drain(..) {
            context.counters.executor_rejections.add_contended(1);
            context
                .trace(|| tracing::warn!(timer = %context.name, "the executor rejected a task: it runs on the worker"));
            let began = context.now();
            context.backpressure.inside_user_code(|| task.run());
            let now = context.now();
            self.slow.record(context, engine.tick_nanos, 1, now.saturating_sub(began), now);
        }
        self.tasks = rejected;
    }
}

fn record(deadlines: &mut Vec<Nanos>, lag: &LagHistogram, now: Nanos) {
    deadlines.drain(..).for_each(|deadline| lag.record(now.saturating_sub(deadline)));
}

#[inline]
fn prefetch(place: &Place) {
    if let Some(timeout) = &place.1 {
        timeout.prefetch();
    }
}
