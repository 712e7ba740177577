//! One turn: take out what is due, win each state, hand over.
//!
//! Whoever owns the [`Turner`] owns the turn: the worker's thread, a [`Driver`](crate::Driver) or a
//! [`ManualDriver`](crate::ManualDriver). There is one per timer, so the counters that belong to the turn have one writer.
//!
//! 1. Visit the shards whose `next` has come, and only those; under each latch, take out what is due (`Shard::collect`), but
//!    hand it over (2 and 3) each time that it has become much.
//! 2. With no latch held, win each entry's state. Cancelled: forget it. Moved by `reset`: link it again.
//! 3. Count it as expired, then run it here; or hand it over, if the timer has an executor. One that runs tasks at once gets
//!    them one at a time, each won when its turn has come, so that a task can still cancel or move its siblings; others get
//!    batches.
//! 4. What the executor refuses, loses or panics over runs here.
//!
//! A turn ends: what becomes due while it goes on, by its own tasks or otherwise, is left to the next.

use crate::engine::Engine;
use crate::entry::AnyEntry;
use crate::entry_wheel::Due;
use crate::shard::{Collected, Submitted};
use crate::slow::SlowTasks;
use crate::state::Expiry;
use crate::sync::Arc;
use crate::time::{IMMEDIATE, Nanos, Stamp, nanos_since};
use std::vec::Drain;
use timer_executor::{Runnable, Task, TaskExecutor, panics};

/// At most so many tasks are won before they are handed over.
const BATCH: usize = 1024;

/// So many entries are fetched into the processor's cache at once.
const AHEAD: usize = 64;

/// The right to take turns, and the room it needs; nothing is allocated per turn once it has grown.
pub(crate) struct Turner {
    engine: Arc<Engine>,
    due: Vec<Due>,
    tasks: Vec<Task>,
    slow: SlowTasks,
}

impl Turner {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Self { engine, due: Vec::new(), tasks: Vec::new(), slow: SlowTasks::default() }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Runs everything due at `now`. Returns how many timeouts were handed over, and whether all shards could be visited.
    pub(crate) fn turn(&mut self, now: Nanos) -> Turned {
        let engine = self.engine.clone();
        let context = &*engine.context;
        context.counters.turns.add(1);
        let tick = context.resolution.tick_at(now);
        let due = engine.shards.iter().map(|shard| shard.next()).filter(|next| *next != IMMEDIATE && *next <= tick);
        if let Some(first) = due.min() {
            context.counters.tick_lag.record(nanos_since(now, context.resolution.start_of(first)));
        }
        let mut turned = Turned { expired: 0, complete: true };
        // Bit n: shard n has more. What has become overdue is taken out of all shards before any task runs.
        let mut more = 0_u64;
        for (at, shard) in engine.shards.iter().enumerate().filter(|(_, shard)| shard.next() <= tick) {
            match shard.collect(tick, false, &mut self.due) {
                Collected::All => {}
                Collected::Some => more |= 1 << at,
                Collected::None => turned.complete = false,
            }
        }
        context.run_orphans();
        turned.expired += self.dispatch(now);
        while let Some(shard) = engine.shards.get(more.trailing_zeros() as usize) {
            let collected = shard.collect(tick, true, &mut self.due);
            turned.expired += self.dispatch(now);
            turned.complete &= collected != Collected::None;
            if collected != Collected::Some {
                more &= more - 1;
            }
        }
        self.give_back_room();
        turned
    }

    /// Wins and hands over all that was taken out. Returns how many were handed over.
    fn dispatch(&mut self, now: Nanos) -> usize {
        let engine = self.engine.clone();
        let mut due = std::mem::take(&mut self.due);
        let mut waiting = Waiting { due: due.drain(..), fetched: 0 };
        let (mut now, mut expired) = (now, 0);
        // Finding what is due and linking again what was moved takes time, for which no task is to blame.
        let mut searched = true;
        while let Some(entry) = waiting.next() {
            if engine.context.is_stopped() {
                engine.leave_behind(entry);
                continue;
            }
            if searched {
                now = engine.context.clock.now().max(now);
            }
            let handed_over = match &engine.executor {
                None => usize::from(self.run_here(entry, now)),
                Some(executor) => self.hand_over(&**executor, entry, &mut waiting, now),
            };
            searched = handed_over == 0;
            if !searched {
                expired += handed_over;
                let after = engine.context.clock.now();
                if engine.runs_inline {
                    self.slow.took(&engine, after.saturating_sub(now));
                }
                now = after.max(now);
            }
        }
        drop(waiting);
        self.due = due;
        expired
    }

    /// Runs an entry's task on this thread, if it is due; `false` if it was moved or has ended.
    fn run_here(&self, entry: Arc<dyn AnyEntry>, now: Nanos) -> bool {
        let mut entry = entry;
        loop {
            match entry.run_if_due(now) {
                Ok(()) => return true,
                Err(back) => entry = back,
            }
            match entry.word().expire(now).0 {
                // `reset` has moved it here and there meanwhile.
                Expiry::Won => {}
                Expiry::Later(deadline) => {
                    self.link_again(entry, deadline);
                    return false;
                }
                Expiry::Gone => return false,
            }
        }
    }

    /// Wins `first` and, for an executor that takes batches, those who come next, and gives them to the executor. Returns how
    /// many.
    fn hand_over(
        &mut self,
        executor: &dyn TaskExecutor,
        first: Arc<dyn AnyEntry>,
        waiting: &mut Waiting<'_>,
        now: Nanos,
    ) -> usize {
        let batch = if self.engine.runs_inline { 1 } else { BATCH };
        let mut next = Some(first);
        for _ in 0..batch {
            let Some(entry) = next.take().or_else(|| waiting.next()) else { break };
            if let Some(task) = self.win(entry, now) {
                self.tasks.push(task);
            }
        }
        let handed_over = self.tasks.len();
        if handed_over > 0 {
            self.execute(executor);
        }
        handed_over
    }

    /// Decides an entry's fate; a task if it is to run.
    fn win(&self, entry: Arc<dyn AnyEntry>, now: Nanos) -> Option<Task> {
        match entry.expire(now) {
            Expiry::Won => {
                self.engine.context.handed_over(entry.word(), now);
                Some(Task::from_shared(entry as Arc<dyn Runnable>))
            }
            Expiry::Later(deadline) => {
                self.link_again(entry, deadline);
                None
            }
            Expiry::Gone => None,
        }
    }

    fn link_again(&self, entry: Arc<dyn AnyEntry>, deadline: Stamp) {
        let tick = self.engine.context.resolution.tick_of(deadline);
        let home = entry.head().home().clone();
        if home.submit(entry.clone(), tick) != Submitted::Accepted {
            self.engine.leave_behind(entry);
        }
    }

    /// Hands the won tasks to the executor; nothing of what it does can lose one or end the worker.
    fn execute(&mut self, executor: &dyn TaskExecutor) {
        let Turner { engine, tasks, .. } = self;
        if let Err(message) = panics::catch(|| executor.execute_batch(tasks)) {
            let context = &*engine.context;
            context.tell(|| tracing::error!(timer = %context.name, panic = %message, "the executor panicked"));
        }
        // Seldom is there anything in either, and to look costs less than to take.
        if !tasks.is_empty() {
            self.run_all_rejected();
        }
        if self.engine.context.has_orphans() {
            self.engine.context.run_orphans();
        }
    }

    #[cold]
    fn run_all_rejected(&mut self) {
        let mut rejected = std::mem::take(&mut self.tasks);
        rejected.drain(..).for_each(|task| self.run_rejected(task));
        self.tasks = rejected;
    }

    fn run_rejected(&mut self, task: Task) {
        let context = &*self.engine.context;
        context.counters.executor_rejections.add(1);
        context.tell(|| {
            tracing::warn!(timer = %context.name, "the executor rejected a task: it runs on the worker");
        });
        let before = context.clock.now();
        task.run();
        let took = context.clock.now().saturating_sub(before);
        let engine = self.engine.clone();
        self.slow.took(&engine, took);
    }

    /// A burst of a million leaves no room behind.
    fn give_back_room(&mut self) {
        if self.due.capacity() > 4 * BATCH {
            self.due = Vec::new();
        }
        if self.tasks.capacity() > 4 * BATCH {
            self.tasks = Vec::new();
        }
    }
}

/// What was taken out, with the words of the next entries read ahead.
struct Waiting<'a> {
    due: Drain<'a, Due>,
    fetched: usize,
}

impl Waiting<'_> {
    /// Reads the words of the next [`AHEAD`] entries. What was scheduled at different times lies all over the memory: reads
    /// that do not depend on each other wait for it together, those of the turn wait one by one, since each read-modify-write
    /// lets everything before it finish.
    fn fetch(&mut self) {
        let entries = self.due.as_slice();
        let ahead = &entries[..entries.len().min(AHEAD)];
        for (_, entry) in ahead {
            std::hint::black_box((Arc::strong_count(entry), entry.word()));
        }
        self.fetched = ahead.len();
    }
}

impl Iterator for Waiting<'_> {
    type Item = Arc<dyn AnyEntry>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.fetched == 0 {
            self.fetch();
        }
        let (_, entry) = self.due.next()?;
        self.fetched -= 1;
        Some(entry)
    }
}

/// What a turn has done.
pub(crate) struct Turned {
    /// Timeouts handed over.
    pub(crate) expired: usize,
    /// Whether no due shard's latch was taken.
    pub(crate) complete: bool,
}
