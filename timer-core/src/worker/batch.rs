//! The entries that a visit has taken out of a wheel. They are decided one by one, and their tasks
//! run or are handed over in batches.

use super::slow::SlowTasks;
use super::sweep::Sweeper;
use super::visit::Visit;
use crate::counters::LagHistogram;
use crate::deadline::Nanos;
use crate::engine::{Engine, QueuedTask, run, run_abandoned};
use crate::entry::Timeout;
use crate::entry::state::{Due, Runs};
use crate::shard::{Shard, Slot};
use crate::timer_context::TimerContext;
use timer_executor::{Task, TaskExecutor, panics};

/// The largest number of tasks and wakers that run here between two readings of the clock.
pub(super) const BATCH: usize = 64;

/// The number of tasks that are handed over to an executor at once.
pub(super) const HANDOVER: usize = 1024;

/// The number of entries that are prefetched into the cache.
const PREFETCHED: usize = 32;

/// The tasks that were won since the last batch ended, and the entries that were moved to a later
/// deadline.
#[derive(Default)]
pub(super) struct Batch {
    /// The deadlines of the tasks that ran here, and of the futures whose tasks were woken.
    ran: Vec<Nanos>,
    /// The tasks for the executor.
    tasks: Vec<Task>,
    /// The deadlines of these tasks.
    queued: Vec<Nanos>,
    /// The entries that were moved to a later deadline, with their new ticks.
    moved_later: Vec<(u64, Timeout)>,
    pub(super) sweeper: Sweeper,
    slow: SlowTasks,
}

impl Batch {
    /// Decides the entries of `visit` until all are decided or `until` has come. Returns the number
    /// of timeouts that ran or were handed over.
    #[inline]
    pub(super) fn dispatch(&mut self, engine: &Engine, visit: &mut Visit, until: Nanos) -> usize {
        let (slots, begin, shard) = (&mut visit.slots, visit.decided, visit.shard);
        if slots.is_empty() {
            return 0;
        }
        let context = &engine.context;
        (begin..begin + PREFETCHED).filter_map(|index| slots.get(index)).for_each(prefetch);
        let (mut now, mut expired, mut read_at) = (context.now(), 0, begin);
        let size = if engine.runs_inline { BATCH } else { HANDOVER };
        context.counters.in_flight.run_inline(engine.executor.is_none());
        visit.decided = slots.len();
        for index in begin..slots.len() {
            let won = self.ran.len() + self.queued.len();
            if self.ran.len() >= BATCH || self.queued.len() >= size || index - read_at > BATCH + won {
                // The time of a long search must not be attributed to a task.
                now = if won == 0 { context.now() } else { self.finish(engine, now) };
                expired += won;
                read_at = index;
                self.relink(shard, engine);
                if now > until {
                    visit.decided = index;
                    break;
                }
            }
            if let Some(slot) = slots.get(index + PREFETCHED) {
                prefetch(slot);
            }
            let Some(timeout) = slots.take_value(index) else { continue };
            if context.is_stopped() {
                engine.leave_unclaimed(timeout);
                continue;
            }
            if engine.executor.is_none() || timeout.runs() == Runs::Wake {
                self.run_here(timeout, now, context);
            } else {
                self.collect(timeout, now, engine);
            }
        }
        expired += self.ran.len() + self.queued.len();
        self.finish(engine, now);
        self.sweeper.count(visit.decided - begin);
        if visit.decided == slots.len() {
            slots.clear();
            visit.decided = 0;
        }
        context.counters.in_flight.run_inline(false);
        self.relink(shard, engine);
        expired
    }

    /// Gives the entries that were moved to a later deadline back to their shard.
    fn relink(&mut self, shard: &Shard, engine: &Engine) {
        if !self.moved_later.is_empty() {
            shard.give_back(&mut self.moved_later);
            self.moved_later.drain(..).for_each(|(_, timeout)| engine.leave_unclaimed(timeout));
        }
    }

    /// Runs the task of an entry on this thread, or wakes that of a future, if the entry is due.
    #[inline]
    fn run_here(&mut self, timeout: Timeout, now: Nanos, context: &TimerContext) {
        match timeout.expire(now) {
            Due::Won(right) => {
                context.counters.runs.add(1);
                if timeout.runs() != Runs::Again {
                    context.end_expired();
                }
                self.ran.push(right.deadline().nanos());
                context.backpressure.inside_user_code(|| run(right, &timeout, context));
            }
            Due::Later(deadline) => self.moved_later.push((context.resolution.tick_of(deadline), timeout)),
            Due::Gone => {}
        }
    }

    /// Wins an entry for the executor if it is due.
    fn collect(&mut self, timeout: Timeout, now: Nanos, engine: &Engine) {
        match timeout.state().enqueue(now) {
            Due::Won(deadline) => {
                self.queued.push(deadline.nanos());
                self.tasks.push(QueuedTask::task(timeout, &engine.lease));
            }
            Due::Later(deadline) => self.moved_later.push((engine.context.resolution.tick_of(deadline), timeout)),
            Due::Gone => {}
        }
    }

    /// Ends a batch that began at `began`. Hands it over if there is an executor, and records the
    /// lags. Returns the current time.
    fn finish(&mut self, engine: &Engine, began: Nanos) -> Nanos {
        let (ran, queued) = (self.ran.len(), self.queued.len());
        if ran + queued == 0 {
            return began;
        }
        let context = &*engine.context;
        let now = context.now();
        if ran > 0 {
            self.slow.record(engine, ran, began, now);
        }
        record(&mut self.ran, &context.counters.inline_lag, now);
        let Some(executor) = engine.executor.as_ref().filter(|_| queued > 0) else { return now };
        record(&mut self.queued, &context.counters.handover_lag, now);
        context.counters.runs.add(queued as u64);
        context.counters.in_flight.queue(queued as u64);
        self.execute(&**executor, engine);
        let after = context.now();
        if engine.runs_inline {
            self.slow.record(engine, queued, now, after);
        }
        after
    }

    /// Hands the collected tasks to the executor. A task that the executor refuses, or leaves in
    /// the batch because it panics, runs here.
    fn execute(&mut self, executor: &dyn TaskExecutor, engine: &Engine) {
        let context = &*engine.context;
        let executed =
            context.backpressure.inside_user_code(|| panics::catch(|| executor.execute_batch(&mut self.tasks)));
        if let Err(message) = executed {
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
        for task in std::mem::take(&mut self.tasks) {
            context.counters.executor_rejections.add_contended(1);
            context
                .trace(|| tracing::warn!(timer = %context.name, "the executor rejected a task, which runs on the worker instead"));
            let began = context.now();
            context.backpressure.inside_user_code(|| task.run());
            self.slow.record(engine, 1, began, context.now());
        }
    }
}

fn record(deadlines: &mut Vec<Nanos>, lag: &LagHistogram, now: Nanos) {
    deadlines.drain(..).for_each(|deadline| lag.record(now.saturating_sub(deadline)));
}

#[inline]
fn prefetch(slot: &Slot) {
    if let Some(timeout) = &slot.1 {
        timeout.prefetch();
    }
}
