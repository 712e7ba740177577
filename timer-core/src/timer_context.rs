//! The context of a timer, the state that all of its parts share.

use crate::alarm::Alarm;
use crate::backlog::Backlog;
use crate::backpressure::Backpressure;
use crate::clock::Present;
use crate::config::{Config, MissedTickBehavior};
use crate::counters::{Limit, TimerCounters};
use crate::deadline::Nanos;
use crate::error::RejectReason;
use crate::resolution::Resolution;
use crate::sync::{AtomicBool, OnceLock, Ordering, Weak};
use std::any::Any;
use timer_executor::panics::{self, PanicMessage};

/// The state shared by a timer's handles, shards and worker, and by the tasks in its executor.
pub(crate) struct TimerContext {
    pub(crate) name: String,
    /// The engine, of whose type this module knows nothing.
    pub(crate) engine: OnceLock<Weak<dyn Any + Send + Sync>>,
    /// The clock of the timer.
    pub(crate) present: Present,
    pub(crate) resolution: Resolution,
    pub(crate) missed_runs: MissedTickBehavior,
    pub(crate) alarm: Alarm,
    pub(crate) backpressure: Backpressure,
    pub(crate) limit: Option<Limit>,
    pub(crate) counters: TimerCounters,
    /// The timeouts that wait for the executor.
    pub(crate) backlog: Backlog,
    stopped: AtomicBool,
    draining: AtomicBool,
}

impl TimerContext {
    pub(crate) fn new(config: &Config, present: Present, resolution: Resolution) -> Self {
        Self {
            name: config.name.clone(),
            engine: OnceLock::new(),
            present,
            resolution,
            missed_runs: config.missed_runs,
            alarm: Alarm::default(),
            backpressure: Backpressure::new(config.may_sleep),
            limit: config.max_pending.map(Limit::new),
            counters: TimerCounters::default(),
            backlog: Backlog::new(),
            stopped: AtomicBool::new(false),
            draining: AtomicBool::new(false),
        }
    }

    /// Reads the timer's clock.
    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        self.present.now()
    }

    /// Returns the time up to which the deadlines of futures are due.
    pub(crate) fn due_by(&self) -> Nanos {
        self.present.due_by(self.now())
    }

    /// Returns the length of a tick, by which the wheel may make each run late. A virtual time has
    /// no ticks, but one that runs is moved about once per millisecond.
    pub(crate) fn tick_nanos(&self) -> Nanos {
        let min_tick = if self.present.runs_with_system() { 1_000_000 } else { 0 };
        self.resolution.tick_nanos().max(min_tick)
    }

    /// Returns `true` if `stop` has begun.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        // ORDERING: Acquire pairs with `set_stopped`. Shards close under their own locks, so this
        // flag only ends loops.
        self.stopped.load(Ordering::Acquire)
    }

    /// Marks the timer as stopped. Returns `true` for the first caller.
    pub(crate) fn set_stopped(&self) -> bool {
        // ORDERING: AcqRel pairs with the read-modify-write in `is_stopped_after`, see there.
        !self.stopped.swap(true, Ordering::AcqRel)
    }

    /// Returns `true` if `stop` has begun. Called by a thread that has just abandoned a task.
    ///
    /// If this read-modify-write comes before the one in `set_stopped`, the caller of `set_stopped`
    /// finds the task afterwards. Otherwise this call returns `true`.
    pub(crate) fn is_stopped_after(&self) -> bool {
        // ORDERING: AcqRel, as described above.
        self.stopped.fetch_or(false, Ordering::AcqRel)
    }

    /// Returns `true` if `drain` has begun, so that periodic tasks run no further. Called by a
    /// thread that has just linked an entry.
    pub(crate) fn is_draining(&self) -> bool {
        // ORDERING: Relaxed, because the shard's lock orders it. `drain` sets the flag before it
        // takes the entries out of the shard, so it takes the entry or this call returns `true`.
        self.draining.load(Ordering::Relaxed)
    }

    pub(crate) fn set_draining(&self) {
        // ORDERING: Relaxed, as in `is_draining`.
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Acquires a permit for one more timeout, if the timer has a bound. Returns `false` if the
    /// bound is reached.
    #[inline]
    pub(crate) fn acquire_permit(&self) -> bool {
        self.limit.as_ref().is_none_or(Limit::try_acquire)
    }

    /// Returns the reason why a shard has just refused a timeout.
    #[cold]
    pub(crate) fn refusal(&self) -> RejectReason {
        match &self.limit {
            Some(limit) if !self.is_stopped() => RejectReason::TooManyPending { max: limit.max },
            _ => RejectReason::Stopped,
        }
    }

    /// Releases the permit of a timeout that has ended or was not accepted.
    #[inline]
    pub(crate) fn release_permit(&self) {
        if let Some(limit) = &self.limit {
            limit.release();
        }
    }

    /// Ends a timeout whose task has been started by the turn's thread.
    #[inline]
    pub(crate) fn end_expired(&self) {
        self.counters.expired.add(1);
        self.release_permit();
    }

    /// Ends a timeout whose task has been started by a thread of the executor.
    pub(crate) fn end_expired_elsewhere(&self) {
        self.counters.expired_elsewhere.add_contended(1);
        self.release_permit();
    }

    /// Ends a timeout that was cancelled while it was in no wheel, or by `stop`. Shards end the
    /// others.
    pub(crate) fn end_cancelled(&self) {
        self.counters.cancelled_elsewhere.add_contended(1);
        self.release_permit();
    }

    /// Ends a timeout that was cancelled while its task waited in the executor's queue.
    pub(crate) fn end_cancelled_in_queue(&self) {
        self.end_cancelled();
        self.leave_queue();
    }

    /// Takes a timeout that has ended or is linked again out of the executor's queue.
    pub(crate) fn leave_queue(&self) {
        let in_flight = &self.counters.in_flight;
        in_flight.unqueue();
        self.backlog.leave(in_flight.get().0);
    }

    /// Counts and traces a caught panic of a task, a hook, a waker or a `Drop` of the user.
    #[cold]
    pub(crate) fn task_panicked(&self, message: &PanicMessage) {
        self.counters.task_panics.add_contended(1);
        self.trace(|| tracing::error!(timer = %self.name, panic = %message, "a task panicked"));
    }

    /// Calls user code. A panic in it is counted and traced and goes no further.
    #[inline]
    pub(crate) fn contain<R>(&self, user_code: impl FnOnce() -> R) -> Option<R> {
        panics::catch(user_code).inspect_err(|message| self.task_panicked(message)).ok()
    }

    /// Emits a trace event. The subscriber is user code, and its panic must not end the worker.
    #[cold]
    pub(crate) fn trace(&self, report: impl FnOnce()) {
        let _ = panics::catch(report);
    }
}
