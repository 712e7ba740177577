//! One timer whole: its shards, its executor, and how it starts and stops.
//!
//! Thread, manual and driven are this engine; they differ only in who owns the turn ([`crate::turn`]).
//!
//! *Stopping.* The flag is set, then every shard is closed under its latch and emptied, then the worker is told and joined;
//! what it had taken out of a wheel and not yet won it leaves behind here. Each entry that comes out of this is withdrawn by
//! its state word, so it is handed back only if nobody has run or cancelled it meanwhile. A caller that races this with a
//! new timeout either finds its shard closed and takes the timeout back, or its note was read before the shard closed.

use crate::context::Context;
use crate::entry::{AnyEntry, Entry};
use crate::entry_wheel::{EntryWheel, WheelKind};
use crate::error::{RejectReason, Stopped};
use crate::job::Job;
use crate::shard::{Shard, Submitted};
use crate::stats::TimerStats;
use crate::sync::{Arc, AtomicBool, AtomicUsize, JoinHandle, Mutex, OnceLock, Ordering, ThreadId};
use crate::sync::{first_warning, parallelism, spawn, thread_id, thread_slot, timer_born, timer_died};
use crate::time::{IMMEDIATE, NO_TICK, Nanos, Stamp};
use crate::timeout::Timeout;
use crate::turn::Turner;
use crate::unprocessed::Unprocessed;
use crate::worker;
use std::time::Duration;
use timer_executor::TaskExecutor;

/// So many timers may live at once before somebody is told that one is enough.
const MANY_TIMERS: usize = 64;

/// Who takes the turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Driven {
    /// A thread of the timer's own, started with the first timeout.
    ByWorker,
    /// A driver in somebody's hands.
    ByHand,
}

pub(crate) struct Engine {
    pub(crate) context: Arc<Context>,
    pub(crate) shards: Box<[Arc<Shard>]>,
    /// `None`: whoever takes the turns runs the tasks.
    pub(crate) executor: Option<Box<dyn TaskExecutor>>,
    /// Whether a task has run when the executor has taken it, as it says of itself; asked once.
    pub(crate) runs_inline: bool,
    /// A task that holds the worker for longer is worth a warning.
    pub(crate) tick_nanos: Nanos,
    driven: Driven,
    /// How many [`Timer`](crate::Timer) handles there are.
    handles: AtomicUsize,
    started: AtomicBool,
    worker: Mutex<Option<JoinHandle<()>>>,
    /// Held while somebody waits for the worker's end, so that a second `stop` waits as well.
    stopping: Mutex<()>,
    /// Set by the worker itself, before it calls anything foreign.
    worker_id: OnceLock<ThreadId>,
    /// Entries that the worker had taken out when the timer was stopped.
    left_behind: Mutex<Vec<Arc<dyn AnyEntry>>>,
}

impl Engine {
    pub(crate) fn new(
        context: Context,
        wheel: WheelKind,
        tick: Duration,
        executor: Option<Box<dyn TaskExecutor>>,
        driven: Driven,
        shards: usize,
    ) -> Self {
        let context = Arc::new(context);
        let live = timer_born();
        if live > MANY_TIMERS && first_warning() {
            context.tell(|| {
                tracing::warn!(
                    timer = %context.name,
                    live,
                    "many timers live at once: one timer serves a whole process, share it by cloning"
                );
            });
        }
        let shard = |_| Arc::new(Shard::new(context.clone(), EntryWheel::new(wheel)));
        Self {
            shards: (0..shards.next_power_of_two()).map(shard).collect(),
            context,
            runs_inline: executor.as_ref().is_none_or(|executor| executor.runs_inline()),
            executor,
            tick_nanos: tick.as_nanos(),
            driven,
            handles: AtomicUsize::new(1),
            started: AtomicBool::new(driven == Driven::ByHand),
            worker: Mutex::new(None),
            stopping: Mutex::new(()),
            worker_id: OnceLock::new(),
            left_behind: Mutex::new(Vec::new()),
        }
    }

    /// Among how many shards callers are best spread: enough that two busy threads seldom share one. Not more than 64: a turn
    /// keeps a bit for each.
    pub(crate) fn default_shards() -> usize {
        (4 * parallelism()).clamp(4, 64)
    }

    pub(crate) fn is_driven(&self) -> bool {
        self.driven == Driven::ByHand
    }

    /// Accepts a timeout, or gives the task back.
    #[inline]
    pub(crate) fn schedule<J: Job>(
        self: &Arc<Self>,
        job: J,
        deadline: impl FnOnce(&Context, Nanos) -> Stamp,
    ) -> Result<Timeout, (J, RejectReason)> {
        let context = &*self.context;
        // ORDERING: Relaxed, a hint: whether to start is decided under the lock in `start`.
        if !self.started.load(Ordering::Relaxed) && self.start().is_err() {
            return Err(self.reject(job, RejectReason::Stopped));
        }
        if let Some(Err(max)) = context.bound.as_ref().map(|bound| bound.take()) {
            let reason =
                if context.is_stopped() { RejectReason::Stopped } else { RejectReason::TooManyPending { max } };
            return Err(self.reject(job, reason));
        }
        let now = context.clock.now();
        let deadline = deadline(context, now);
        let tick = context.tick_of(deadline, now);
        let home = &self.shards[thread_slot() & (self.shards.len() - 1)];
        let entry = Arc::new(Entry::new(home.clone(), deadline, job));
        match home.schedule(entry.clone(), tick) {
            Submitted::Accepted => Ok(Timeout::from_entry(entry)),
            closed => self.retract(entry, closed),
        }
    }

    #[cold]
    fn retract<J: Job>(&self, entry: Arc<Entry<J>>, closed: Submitted) -> Result<Timeout, (J, RejectReason)> {
        match entry.retract() {
            Some(job) => {
                if closed == Submitted::ClosedLate {
                    let entry: Arc<dyn AnyEntry> = entry;
                    entry.head().home().unschedule_note();
                }
                self.context.give_back_place();
                Err(self.reject(job, RejectReason::Stopped))
            }
            // `stop` has found it and hands it back: it was accepted.
            None => Ok(Timeout::from_entry(entry)),
        }
    }

    #[cold]
    pub(crate) fn reject<J>(&self, job: J, reason: RejectReason) -> (J, RejectReason) {
        self.context.counters.rejected.add_shared(1);
        (job, reason)
    }

    /// Starts the worker, if there is to be one and it does not run yet.
    #[cold]
    pub(crate) fn start(self: &Arc<Self>) -> Result<(), Stopped> {
        let mut worker = self.worker.lock();
        if self.context.is_stopped() {
            return Err(Stopped);
        }
        // ORDERING: Relaxed, written under the lock that is held here.
        if self.started.load(Ordering::Relaxed) {
            return Ok(());
        }
        let turner = Turner::new(self.clone());
        match spawn(&self.context.name, move || worker::run(turner)) {
            Ok(thread) => {
                *worker = Some(thread);
                // ORDERING: Relaxed, a hint for `schedule`; the lock orders it for `start`.
                self.started.store(true, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                drop(worker);
                let context = &*self.context;
                context
                    .tell(|| tracing::error!(timer = %context.name, %error, "the worker thread could not be started"));
                Err(Stopped)
            }
        }
    }

    /// For the worker: the calling thread is it.
    pub(crate) fn am_worker(&self) {
        let _ = self.worker_id.set(thread_id());
    }

    /// Whether the calling thread is the worker.
    pub(crate) fn is_on_worker(&self) -> bool {
        self.worker_id.get() == Some(&thread_id())
    }

    /// Stops, waits for the worker, and hands back what has not run. Empty for all callers but the first; they wait as well.
    pub(crate) fn stop(&self) -> Vec<Unprocessed> {
        let stopping = self.stopping.lock();
        if !self.context.set_stopped() {
            return Vec::new();
        }
        let mut entries = self.close();
        let worker = self.worker.lock().take();
        if let Some(worker) = worker {
            // The worker catches every panic of foreign code; one of its own would have been printed.
            let _ = worker.join();
        }
        drop(stopping);
        entries.append(&mut self.left_behind.lock());
        self.context.run_orphans();
        self.withdraw(entries)
    }

    /// Stops without waiting for anybody: what has not run is cancelled.
    pub(crate) fn abandon(&self) {
        if self.context.set_stopped() {
            let entries = self.close();
            drop(self.withdraw(entries));
            self.context.run_orphans();
        }
    }

    fn close(&self) -> Vec<Arc<dyn AnyEntry>> {
        let mut entries = Vec::new();
        for shard in &self.shards {
            shard.close(&mut entries);
        }
        self.context.alarm.wake_before(IMMEDIATE);
        entries.into_iter().map(|(_, entry)| entry).collect()
    }

    /// Ends the entries that nobody has ended yet.
    fn withdraw(&self, entries: Vec<Arc<dyn AnyEntry>>) -> Vec<Unprocessed> {
        let ended = entries.into_iter().filter(|entry| entry.withdraw());
        ended
            .map(|entry| {
                entry.head().home().count_withdrawn();
                self.context.give_back_place();
                Unprocessed::new(Timeout::from_entry(entry))
            })
            .collect()
    }

    /// Keeps an entry that the worker has taken out of a wheel and, because the timer was stopped, has not won.
    pub(crate) fn leave_behind(&self, entry: Arc<dyn AnyEntry>) {
        self.left_behind.lock().push(entry);
    }

    /// For the sleeper, after arming the alarm: the earliest tick at which something may be due.
    pub(crate) fn next_for_sleeper(&self) -> u64 {
        self.shards.iter().map(|shard| shard.next_for_sleeper()).min().unwrap_or(NO_TICK)
    }

    /// The earliest tick at which something may be due, as far as the shards are settled.
    pub(crate) fn next(&self) -> u64 {
        self.shards.iter().map(|shard| shard.next()).min().unwrap_or(NO_TICK)
    }

    /// Whether nobody is at work on a shard just now who has yet to read a note or to answer a poke.
    pub(crate) fn is_settled(&self) -> bool {
        self.shards.iter().all(|shard| shard.is_settled())
    }

    pub(crate) fn pending(&self) -> u64 {
        match &self.context.bound {
            Some(bound) => bound.taken() as u64,
            None => {
                // Ends before starts: what is seen to have ended is seen to have started.
                let ended = self.context.counters.expired.get() + self.cancelled();
                self.scheduled().saturating_sub(ended)
            }
        }
    }

    fn cancelled(&self) -> u64 {
        self.shards.iter().map(|shard| shard.cancelled()).sum()
    }

    fn scheduled(&self) -> u64 {
        self.shards.iter().map(|shard| shard.scheduled()).sum()
    }

    pub(crate) fn stats(&self) -> TimerStats {
        let counters = &self.context.counters;
        let (expired, cancelled) = (counters.expired.get(), self.cancelled());
        TimerStats {
            pending: self.pending(),
            scheduled: self.scheduled(),
            expired,
            cancelled,
            rejected: counters.rejected.get(),
            task_panics: counters.task_panics.get(),
            executor_rejections: counters.executor_rejections.get(),
            turns: counters.turns.get(),
            runs: counters.runs.get(),
            cascaded: self.shards.iter().map(|shard| shard.cascaded()).sum(),
            inbox_handovers: self.shards.iter().map(|shard| shard.handed_over()).sum(),
            shards: self.shards.len() as u64,
            longest_task: Duration::from_nanos(counters.longest_task()),
            tick_lag: counters.tick_lag.snapshot(),
            timeout_lag: counters.timeout_lag.snapshot(),
        }
    }

    /// One handle more.
    pub(crate) fn keep(&self) {
        // ORDERING: Relaxed, a new handle comes from one that exists.
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    /// One handle more, unless the last one is gone.
    pub(crate) fn keep_if_kept(&self) -> bool {
        let one_more = |handles: usize| (handles > 0).then_some(handles + 1);
        // ORDERING: Relaxed, as in `keep`: the count cannot leave zero again.
        self.handles.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }

    /// One handle less; `true` for the last.
    pub(crate) fn let_go(&self) -> bool {
        // ORDERING: AcqRel, what was done through any handle comes before what the last one's end does.
        self.handles.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let left = std::mem::take(&mut *self.left_behind.lock());
        drop(self.withdraw(left));
        self.context.run_orphans();
        timer_died();
    }
}
