//! What every part of one timer knows: its name, its clock and resolution, its alarm, its bound and its counts.

use crate::alarm::Alarm;
use crate::clock::Clock;
use crate::entry::AnyEntry;
use crate::job::MissedRuns;
use crate::state::{State, Word};
use crate::stats::Counters;
use crate::sync::{Arc, AtomicBool, Ordering, Queue};
use crate::tally::Bound;
use crate::time::{IMMEDIATE, Nanos, Resolution, Stamp, nanos_since};
use std::time::Duration;
use timer_executor::panics::PanicMessage;
use timer_executor::{Runnable, Task};

/// Shared by the timer's handles, its shards, its timeouts and its worker.
pub(crate) struct Context {
    pub(crate) name: String,
    pub(crate) clock: Clock,
    pub(crate) resolution: Resolution,
    pub(crate) missed_runs: MissedRuns,
    pub(crate) alarm: Alarm,
    pub(crate) bound: Option<Bound>,
    pub(crate) counters: Counters,
    /// Entries whose task an executor has thrown away without running it; the worker runs them.
    orphans: Queue<Arc<dyn AnyEntry>>,
    stopped: AtomicBool,
}

impl Context {
    pub(crate) fn new(
        name: String,
        clock: Clock,
        resolution: Resolution,
        missed_runs: MissedRuns,
        bound: Option<Bound>,
    ) -> Self {
        Self {
            name,
            clock,
            resolution,
            missed_runs,
            alarm: Alarm::default(),
            bound,
            counters: Counters::default(),
            orphans: Queue::new(),
            stopped: AtomicBool::new(false),
        }
    }

    /// The deadline `delay` from `now`.
    #[inline]
    pub(crate) fn deadline(&self, now: Nanos, delay: Duration) -> Stamp {
        if delay.is_zero() { Stamp::down(now) } else { Stamp::after(now, delay) }
    }

    /// The tick under which a deadline is linked: what is due already does not wait for the next one.
    #[inline]
    pub(crate) fn tick_of(&self, deadline: Stamp, now: Nanos) -> u64 {
        if deadline.is_due(now) { IMMEDIATE } else { self.resolution.tick_of(deadline) }
    }

    /// Whether `stop` has begun.
    pub(crate) fn is_stopped(&self) -> bool {
        // ORDERING: Acquire pairs with `set_stopped`; shards close under their own latches, this flag only ends loops.
        self.stopped.load(Ordering::Acquire)
    }

    /// Marks the timer as stopped; `true` for the first caller.
    pub(crate) fn set_stopped(&self) -> bool {
        // ORDERING: AcqRel pairs with the read-modify-write in `adopt`, see there.
        !self.stopped.swap(true, Ordering::AcqRel)
    }

    /// Takes in an entry whose task was dropped without having run, and calls the worker; after `stop` runs it here.
    ///
    /// Either the read-modify-write of `stopped` comes before that of `set_stopped`, whose caller then empties the queue
    /// and sees this push; or it comes after, and the queue is emptied here.
    pub(crate) fn adopt(&self, entry: Arc<dyn AnyEntry>) {
        self.orphans.push(entry);
        // ORDERING: AcqRel, as said above.
        if self.stopped.fetch_or(false, Ordering::AcqRel) {
            self.run_orphans();
        } else {
            self.alarm.wake_before(IMMEDIATE);
        }
    }

    pub(crate) fn has_orphans(&self) -> bool {
        !self.orphans.is_empty()
    }

    /// Runs the tasks that an executor has thrown away, here and now: what has expired runs, whatever became of the executor
    /// and the timer.
    pub(crate) fn run_orphans(&self) {
        while let Some(entry) = self.orphans.pop() {
            self.counters.executor_rejections.add_shared(1);
            self.tell(|| tracing::warn!(timer = %self.name, "the executor dropped a task: it runs here instead"));
            Task::from_shared(entry as Arc<dyn Runnable>).run();
        }
    }

    /// For the owner of the turn: an entry of this word was won and is handed over at `now`. It counts as expired from here on.
    #[inline]
    pub(crate) fn handed_over(&self, word: Word, now: Nanos) {
        self.counters.runs.add(1);
        if word.state() == State::Fired {
            self.counters.expired.add(1);
            self.give_back_place();
        }
        self.counters.timeout_lag.record(nanos_since(now, word.deadline().nanos()));
    }

    /// An accepted timeout has ended, other than by `cancel` or an expiry that the worker counts.
    pub(crate) fn give_back_place(&self) {
        if let Some(bound) = &self.bound {
            bound.give_back();
        }
    }

    /// A task, a hook or the `Drop` of a capture has panicked and was caught.
    #[cold]
    pub(crate) fn task_panicked(&self, message: &PanicMessage) {
        self.counters.task_panics.add_shared(1);
        self.tell(|| tracing::error!(timer = %self.name, panic = %message, "a task panicked"));
    }

    /// Reports something; a subscriber is foreign code, and its panic must not end the worker.
    #[cold]
    pub(crate) fn tell(&self, report: impl FnOnce()) {
        let _ = timer_executor::panics::catch(report);
    }
}
