//! One turn: take out what is due, win each state, hand over.
//!
//! Whoever owns the [`Turner`] owns the turn: the worker's thread, a [`Driver`](crate::Driver) or a
//! [`ManualDriver`](crate::ManualDriver). There is one per timer, so the counters that belong to the turn have one writer.
//!
//! 1. Visit the shards whose `next` has come, and only those; under each latch, take out what is due. (`Shard::collect`)
//! 2. With no latch held, win each entry's state. Cancelled: forget it. Moved by `reset`: link it again.
//! 3. Count it as expired, then hand it over. An executor that runs tasks at once gets them one at a time, each won when its
//!    turn has come, so that a task can still cancel or move its siblings; others get batches.
//! 4. What the executor refuses, loses or panics over runs here.

use crate::engine::Engine;
use crate::entry::AnyEntry;
use crate::shard::Submitted;
use crate::state::{Expiry, State};
use crate::sync::Arc;
use crate::time::{IMMEDIATE, NO_TICK, Nanos, Stamp};
use std::time::Duration;
use timer_executor::{Runnable, Task, panics};

/// At most so many tasks are won before they are handed over.
const BATCH: usize = 1024;

/// So many entries are fetched into the processor's cache at once.
const AHEAD: usize = 64;

/// The right to take turns, and the room it needs; nothing is allocated per turn once it has grown.
pub(crate) struct Turner {
    engine: Arc<Engine>,
    due: Vec<Arc<dyn AnyEntry>>,
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
        let mut first = NO_TICK;
        let mut complete = true;
        for shard in &engine.shards {
            let next = shard.next();
            if next <= tick {
                if next != IMMEDIATE {
                    first = first.min(next);
                }
                complete &= shard.collect(tick, &mut self.due);
            }
        }
        if first <= tick {
            context.counters.tick_lag.record(nanos_since(now, context.resolution.start_of(first)));
        }
        context.run_orphans();
        let expired = self.dispatch(now);
        self.give_back_room();
        Turned { expired, complete }
    }

    /// Wins and hands over all that is due. Returns how many were handed over.
    fn dispatch(&mut self, now: Nanos) -> usize {
        let engine = self.engine.clone();
        let context = &*engine.context;
        let inline = engine.runs_inline;
        let batch = if inline { 1 } else { BATCH };
        let (mut now, mut expired) = (now, 0);
        let mut due = std::mem::take(&mut self.due);
        let mut waiting = due.drain(..);
        // Finding what is due and linking again what was moved takes time, for which no task is to blame.
        let mut searched = true;
        let mut fetched = 0;
        while waiting.len() > 0 {
            if context.is_stopped() {
                waiting.by_ref().for_each(|entry| engine.leave_behind(entry));
                break;
            }
            if searched {
                now = context.clock.now().max(now);
                searched = false;
            }
            for _ in 0..batch {
                if fetched == 0 {
                    fetched = fetch(waiting.as_slice());
                }
                let Some(entry) = waiting.next() else { break };
                fetched -= 1;
                match self.win(entry, now) {
                    Some(task) => self.tasks.push(task),
                    None => searched = true,
                }
            }
            if !self.tasks.is_empty() {
                expired += self.tasks.len();
                self.execute();
                let after = context.clock.now();
                if inline {
                    self.slow.took(&engine, after.saturating_sub(now));
                }
                now = after.max(now);
            }
        }
        drop(waiting);
        self.due = due;
        expired
    }

    /// Decides an entry's fate; a task if it is to run. It counts as expired from here on.
    fn win(&self, entry: Arc<dyn AnyEntry>, now: Nanos) -> Option<Task> {
        let context = &*self.engine.context;
        match entry.expire(now) {
            Expiry::Won => {
                let word = entry.word();
                context.counters.runs.add(1);
                if word.state() == State::Fired {
                    context.counters.expired.add(1);
                    context.give_back_place();
                }
                context.counters.timeout_lag.record(nanos_since(now, word.deadline().nanos()));
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
    fn execute(&mut self) {
        let Turner { engine, tasks, .. } = self;
        if let Err(message) = panics::catch(|| engine.executor.execute_batch(tasks)) {
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
        if self.due.capacity() > BATCH {
            self.due = Vec::new();
        }
        if self.tasks.capacity() > BATCH {
            self.tasks = Vec::new();
        }
    }
}

/// Reads the words of the first [`AHEAD`] entries; how many that were. What was scheduled at different times lies all over
/// the memory: reads that do not depend on each other wait for it together, those of the turn wait one by one, since each
/// read-modify-write lets everything before it finish.
fn fetch(entries: &[Arc<dyn AnyEntry>]) -> usize {
    let ahead = &entries[..entries.len().min(AHEAD)];
    let words = ahead.iter().fold(0, |words, entry| words ^ entry.word().to_bits());
    std::hint::black_box(words);
    ahead.len()
}

/// What a turn has done.
pub(crate) struct Turned {
    /// Timeouts handed over.
    pub(crate) expired: usize,
    /// Whether no due shard's latch was taken.
    pub(crate) complete: bool,
}

fn nanos_since(now: Nanos, then: Nanos) -> u64 {
    u64::try_from(now.saturating_sub(then)).unwrap_or(u64::MAX)
}

/// Warns of tasks that hold the worker, at most once in a second.
#[derive(Default)]
struct SlowTasks {
    warned: Option<Nanos>,
    unsaid: u64,
}

impl SlowTasks {
    const PAUSE: Nanos = 1_000_000_000;

    #[inline]
    fn took(&mut self, engine: &Engine, nanos: Nanos) {
        engine.context.counters.task_took(u64::try_from(nanos).unwrap_or(u64::MAX));
        if nanos > engine.tick_nanos {
            self.warn(engine, nanos);
        }
    }

    #[cold]
    fn warn(&mut self, engine: &Engine, nanos: Nanos) {
        let context = &*engine.context;
        let now = context.clock.now();
        if self.warned.is_some_and(|warned| now.saturating_sub(warned) < Self::PAUSE) {
            self.unsaid += 1;
            return;
        }
        let took = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let unsaid = std::mem::take(&mut self.unsaid);
        self.warned = Some(now);
        context.tell(|| {
            tracing::warn!(
                timer = %context.name,
                ?took,
                others_since_last_warning = unsaid,
                "a task held the worker for longer than a tick and delayed others: give it to an executor with threads"
            );
        });
    }
}
