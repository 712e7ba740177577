//! The entries that a visit has taken out of a wheel. They are decided one by one, and their tasks
//! run or are handed over in batches.

use super::runs::Runs;
use super::slow::{Blame, SlowTasks};
use super::sweep::Sweeper;
use super::timeline::Timeline;
use crate::backlog::{Handover, Item};
use crate::counters::LateCause;
use crate::deadline::Nanos;
use crate::engine::{Engine, QueuedTask, run, run_one_abandoned};
use crate::entry::Timeout;
use crate::entry::state::{self, Due};
use crate::lateness::MIN_LATENESS;
use crate::shard::{Shard, SlotChunk, Slots};
use crate::sync::Arc;
use crate::timer_context::TimerContext;
use timer_executor::{Task, TaskExecutor, panics};

/// The largest number of tasks and wakers that run here between two readings of the clock.
pub(super) const BATCH: usize = 64;

/// The size of the first batch of a turn. Each batch may be twice as large as the one before. The
/// batches of a short turn are therefore small, and a slow task in them is found.
const FIRST_BATCH: usize = 8;

/// A batch that takes longer than this per task is the fault of its tasks, 2 us.
const QUICK_TASK: Nanos = 2_000;

/// The number of tasks that are handed over to an executor at once.
pub(super) const HANDOVER: usize = 1024;

/// The entries that a visit has taken out of the wheel of a shard.
pub(super) struct Undecided {
    pub(super) shard: &'static Shard,
    pub(super) slots: Slots,
    /// The chunk that was taken out of `slots` last.
    chunk: SlotChunk,
    /// The number of the next chunk.
    next_chunk: usize,
}

impl Undecided {
    pub(super) fn new(shard: &'static Shard) -> Self {
        Self { shard, slots: Slots::default(), chunk: SlotChunk::default(), next_chunk: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.chunk.is_empty() && self.slots.is_empty()
    }

    /// Takes the next entry, and the tick under which it was linked.
    #[inline]
    fn take_next(&mut self) -> Option<(u64, Timeout)> {
        if self.chunk.is_empty() {
            self.begin_chunk();
        }
        self.chunk.take_first().map(|(tick, linked)| (tick, linked.into_timeout()))
    }

    /// Takes a chunk out, and fetches its entries into the cache.
    fn begin_chunk(&mut self) {
        while self.chunk.is_empty() && !self.slots.is_empty() {
            self.next_chunk = self.slots.drain_chunk(self.next_chunk, |chunk| std::mem::swap(chunk, &mut self.chunk));
        }
        self.chunk.iter().for_each(|(_, linked)| linked.prefetch());
    }

    /// Takes all entries.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Timeout> {
        let left = self.chunk.drain().chain(self.slots.take_all());
        left.map(|(_, linked)| linked.into_timeout())
    }
}

impl Drop for Undecided {
    fn drop(&mut self) {
        self.take_all().for_each(drop);
    }
}

/// The tasks that were won since the last batch ended, and the entries that were moved to a later
/// deadline.
#[derive(Default)]
pub(super) struct Batch {
    /// The tasks that ran here, and the futures whose tasks were woken.
    ran: Runs,
    /// The timeouts for the executor.
    items: Vec<Item>,
    /// The tasks that the executor gets for them. Empty between two hand-overs.
    tasks: Vec<Task>,
    /// The runs of the timeouts for the executor.
    queued: Runs,
    /// The hand-over of the last late task.
    handover: Handover,
    /// The number of tasks after which this batch ends.
    size: usize,
    /// The entries that were moved to a later deadline, with their new ticks.
    moved_later: Vec<(u64, Timeout)>,
    pub(super) sweeper: Sweeper,
    pub(super) slow: SlowTasks,
    pub(super) timeline: Timeline,
}

impl Batch {
    /// Begins a turn at `now`. Since the last batch, the turn's thread has slept, unless visits are
    /// open.
    pub(super) fn begin_turn(&mut self, now: Nanos, has_slept: bool, context: &TimerContext) {
        self.size = FIRST_BATCH;
        if has_slept {
            self.timeline.extend(now, LateCause::System, None);
            if !context.present.is_virtual() {
                self.timeline.note_cpu_use(now);
            }
        } else {
            self.timeline.extend_turn(now, &context.counters.lock_waits);
        }
    }

    /// Decides the entries until all are decided or `until` has come. Returns the number of
    /// timeouts that ran or were handed over.
    #[inline]
    pub(super) fn dispatch(&mut self, engine: &Engine, undecided: &mut Undecided, until: Nanos) -> usize {
        if undecided.is_empty() {
            return 0;
        }
        let shard = undecided.shard;
        let context = &engine.context;
        let mut now = self.read_clock(context);
        let mut expired = 0;
        let mut index = 0;
        let mut read_at = 0;
        let mut check_at = 0;
        context.counters.in_flight.run_inline(engine.executor.is_none());
        loop {
            if index >= check_at {
                let won = self.ran.len() + self.queued.len();
                if self.room(engine) == 0 || index - read_at > BATCH + won {
                    // The time of a long search must not be attributed to a task.
                    now = if won == 0 { self.read_clock(context) } else { self.finish(engine, now) };
                    expired += won;
                    read_at = index;
                    now = self.relink(shard, engine, now);
                    if now > until {
                        break;
                    }
                }
                check_at = index + self.room(engine);
            }
            let Some((tick, timeout)) = undecided.take_next() else { break };
            index += 1;
            if context.is_stopped() {
                engine.leave_unclaimed(timeout);
                continue;
            }
            if engine.executor.is_none() || timeout.runs() == state::Runs::Wake {
                self.run_here(timeout, tick, now, context);
            } else {
                self.collect(timeout, tick, now, engine);
            }
        }
        expired += self.ran.len() + self.queued.len();
        now = self.finish(engine, now);
        self.sweeper.count(index);
        context.counters.in_flight.run_inline(false);
        self.relink(shard, engine, now);
        expired
    }

    /// Returns the number of entries that may be decided before the batch has to end, at most
    /// [`BATCH`].
    fn room(&self, engine: &Engine) -> usize {
        let size = if engine.runs_inline { self.size } else { HANDOVER };
        BATCH.min(self.size.saturating_sub(self.ran.len())).min(size.saturating_sub(self.queued.len()))
    }

    /// Gives the entries that were moved to a later deadline back to their shard. Returns the
    /// current time if there were any, else `now`.
    fn relink(&mut self, shard: &Shard, engine: &Engine, now: Nanos) -> Nanos {
        if self.moved_later.is_empty() {
            return now;
        }
        shard.give_back(&mut self.moved_later, &engine.context);
        self.moved_later.drain(..).for_each(|(_, timeout)| engine.leave_unclaimed(timeout));
        // The worker may have waited for the lock, which is no fault of the next tasks.
        self.read_clock(&engine.context)
    }

    /// Reads the clock. The time since the last reading belongs to the turn.
    fn read_clock(&mut self, context: &TimerContext) -> Nanos {
        let now = context.now();
        self.timeline.extend_turn(now, &context.counters.lock_waits);
        now
    }

    /// Runs the task of an entry on this thread, or wakes that of a future, if the entry is due.
    #[inline]
    fn run_here(&mut self, timeout: Timeout, tick: u64, now: Nanos, context: &TimerContext) {
        match timeout.expire(now) {
            Due::Won(right) => {
                context.counters.runs.add(1);
                if timeout.runs() != state::Runs::Again {
                    context.end_expired();
                }
                self.ran.push(right.deadline().nanos(), tick, timeout.kind(), context);
                context.backpressure.inside_user_code(|| run(right, &timeout, context));
            }
            Due::Later(deadline) => self.moved_later.push((context.resolution.tick_of(deadline), timeout)),
            Due::Gone => {}
        }
    }

    /// Wins an entry for the executor if it is due.
    fn collect(&mut self, timeout: Timeout, tick: u64, now: Nanos, engine: &Engine) {
        match timeout.state().enqueue(now) {
            Due::Won(deadline) => {
                let due = self.queued.push(deadline.nanos(), tick, timeout.kind(), &engine.context);
                let handover = self.handover(due, now);
                self.items.push((timeout, handover));
            }
            Due::Later(deadline) => self.moved_later.push((engine.context.resolution.tick_of(deadline), timeout)),
            Due::Gone => {}
        }
    }

    /// Returns the hand-over of a task that was due at `due` and belongs to the batch of `now`.
    #[inline]
    fn handover(&mut self, due: Nanos, now: Nanos) -> Handover {
        if now.saturating_sub(due) < MIN_LATENESS {
            return Handover { due, at: now, before: None };
        }
        if self.handover.at != now {
            self.timeline.name_quota(due);
            let before = Some(Arc::new(self.timeline.causes().clone()));
            self.handover = Handover { due, at: now, before };
        }
        Handover { due, ..self.handover.clone() }
    }

    /// Ends a batch that began at `began`. Hands it over if there is an executor, and records the
    /// lags. Returns the current time.
    fn finish(&mut self, engine: &Engine, began: Nanos) -> Nanos {
        let ran = self.ran.len();
        let queued = self.queued.len();
        if ran + queued == 0 {
            return began;
        }
        let context = &*engine.context;
        let now = context.now();
        self.timeline.name_quota(self.queued.first_due());
        self.queued.split(self.timeline.causes(), context, &mut self.slow);
        self.size = BATCH.min(2 * self.size);
        if ran > 0 {
            let blame = self.attribute(ran, began, now);
            self.timeline.name_quota(self.ran.first_due());
            self.ran.split(self.timeline.causes(), context, &mut self.slow);
            self.slow.record(engine, ran, began, now, blame);
            self.ran.record(&context.counters.inline_lag, now);
            self.ran.clear();
        } else {
            // The batch of an executor that runs tasks inline begins now.
            self.timeline.extend_turn(now, &context.counters.lock_waits);
        }
        let Some(executor) = engine.executor.as_ref().filter(|_| queued > 0) else { return now };
        self.queued.record(&context.counters.handover_lag, now);
        context.counters.in_flight.queue(queued as u64);
        self.execute(&**executor, engine);
        let after = context.now();
        if engine.runs_inline {
            let blame = self.attribute(queued, now, after);
            self.slow.record(engine, queued, now, after, blame);
        } else {
            self.timeline.extend_by_work(after, LateCause::Executor, None, 0);
        }
        self.queued.clear();
        after
    }

    /// Extends the timeline to `now` by a batch of tasks.
    #[inline]
    fn attribute(&mut self, tasks: usize, began: Nanos, now: Nanos) -> Blame {
        let took = now.saturating_sub(began);
        let quick = tasks as u64 * QUICK_TASK;
        if took > quick {
            return self.attribute_slow(took, quick, now);
        }
        self.timeline.extend(now, LateCause::Turn, None);
        Blame::default()
    }

    /// Extends the timeline to `now` by a batch that took long. The slow task is known if all tasks
    /// have the same name.
    #[cold]
    fn attribute_slow(&mut self, took: Nanos, quick: Nanos, now: Nanos) -> Blame {
        // The list of the tasks that ran here is empty when an executor runs its tasks.
        let runs = if self.ran.len() > 0 { &self.ran } else { &self.queued };
        let task = runs.only_task();
        // The timeline may end before the batch began.
        let lost = self.timeline.extend_by_work(now, LateCause::Tasks, task, 0).min(took);
        if took - lost > quick && task.is_none() {
            // A batch of one task finds the next slow one.
            self.size = 1;
        }
        Blame { task, lost }
    }

    /// Hands the collected timeouts over, with tasks for the executor. If the executor rejects a
    /// task, or leaves it in the batch because it panics, and no other task is spare, this thread
    /// does its work.
    fn execute(&mut self, executor: &dyn TaskExecutor, engine: &Engine) {
        let context = &*engine.context;
        let tasks = context.backlog.push(&mut self.items, context.counters.in_flight.get().0);
        self.tasks.extend((0..tasks).map(|_| QueuedTask::task(&engine.lease)));
        let executed =
            context.backpressure.inside_user_code(|| panics::catch(|| executor.execute_batch(&mut self.tasks)));
        if let Err(message) = executed {
            context.trace(|| tracing::error!(timer = %context.name, panic = %message, "the executor panicked"));
        }
        self.tasks.clear();
        let mut began = context.now();
        while context.backpressure.inside_user_code(|| run_one_abandoned(context)) {
            let now = context.now();
            self.slow.record(engine, 1, began, now, Blame::default());
            began = now;
        }
    }
}
