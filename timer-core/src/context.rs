//! What every part of one timer knows: its name, its time, its alarm, its bound and its counts.

use crate::alarm::Alarm;
use crate::backpressure::Backpressure;
use crate::clock::Present;
use crate::config::MissedRuns;
use crate::counters::{Counters, Limit};
use crate::entry::Timeout;
use crate::resolution::Resolution;
use crate::sync::{AtomicBool, OnceLock, Ordering, Queue, Weak};
use crate::time::{Deadline, Nanos};
use std::any::Any;
use std::time::Duration;
use timer_executor::panics::{self, PanicMessage};

/// Shared by the timer's handles, its shards, its worker, and the tasks that an executor has.
pub(crate) struct Context {
    pub(crate) name: String,
    /// What it goes by. Its shard has the same on virtual time, for callers that hold nothing.
    pub(crate) present: Present,
    pub(crate) resolution: Resolution,
    pub(crate) missed_runs: MissedRuns,
    pub(crate) alarm: Alarm,
    pub(crate) backpressure: Backpressure,
    pub(crate) limit: Option<Limit>,
    pub(crate) counters: Counters,
    /// Whose tasks an executor has thrown away without running them; the worker runs them.
    pub(crate) abandoned: Queue<Timeout>,
    stopped: AtomicBool,
    /// The engine, for a timeout that is asked for its timer; of any type, since what is below an engine does not know it.
    pub(crate) owner: OnceLock<Weak<dyn Any + Send + Sync>>,
}

impl Context {
    pub(crate) fn new(
        name: String,
        present: Present,
        resolution: Resolution,
        missed_runs: MissedRuns,
        limit: Option<Limit>,
        backpressure: Backpressure,
    ) -> Self {
        Self {
            name,
            present,
            resolution,
            missed_runs,
            alarm: Alarm::default(),
            backpressure,
            limit,
            counters: Counters::default(),
            abandoned: Queue::new(),
            stopped: AtomicBool::new(false),
            owner: OnceLock::new(),
        }
    }

    /// The present.
    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        self.present.now()
    }

    /// Whether `stop` has begun.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        // ORDERING: Acquire pairs with `set_stopped`; shards close under their own locks, this flag only ends loops.
        self.stopped.load(Ordering::Acquire)
    }

    /// Marks the timer as stopped; `true` for the first caller.
    pub(crate) fn set_stopped(&self) -> bool {
        // ORDERING: AcqRel pairs with the read-modify-write in `is_stopped_after`, see there.
        !self.stopped.swap(true, Ordering::AcqRel)
    }

    /// Whether `stop` has begun, for a thread that has just pushed to `abandoned`.
    ///
    /// Either this read-modify-write comes before that of `set_stopped`, whose caller then empties the queue and sees the push;
    /// or it comes after, and says so.
    pub(crate) fn is_stopped_after(&self) -> bool {
        // ORDERING: AcqRel, as said above.
        self.stopped.fetch_or(false, Ordering::AcqRel)
    }

    /// An accepted timeout has ended, or a new one was not accepted.
    #[inline]
    pub(crate) fn release_permit(&self) {
        if let Some(limit) = &self.limit {
            limit.release();
        }
    }

    /// A task, a hook or the `Drop` of a capture has panicked and was caught.
    #[cold]
    pub(crate) fn task_panicked(&self, message: &PanicMessage) {
        self.counters.task_panics.add_contended(1);
        self.trace(|| tracing::error!(timer = %self.name, panic = %message, "a task panicked"));
    }

    /// Calls user code whose panic is counted and traced and goes no further.
    #[inline]
    pub(crate) fn contain<R>(&self, foreign: impl FnOnce() -> R) -> Option<R> {
        panics::catch(foreign).inspect_err(|message| self.task_panicked(message)).ok()
    }

    /// Reports something; a subscriber is foreign code, and its panic must not end the worker.
    #[cold]
    pub(crate) fn trace(&self, report: impl FnOnce()) {
        let _ = panics::catch(report);
    }
}

/// The deadline `delay` from `now`: what is due at once is due now, not at the next nanosecond that a deadline can name.
#[inline]
pub(crate) fn deadline_after(now: Nanos, delay: Duration) -> Deadline {
    if delay.is_zero() { Deadline::down(now) } else { Deadline::after(now, delay) }
}
