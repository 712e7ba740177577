//! The handle of a timer, and the handle that does not keep it alive.

use crate::clock;
use crate::counters::{LateRun, TimerStats};
use crate::engine::{Engine, StopReport, Unprocessed};
use crate::error::{RejectReason, StopError};
use crate::sync::{Arc, Weak};
use crate::worker;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Duration, Instant};

/// A handle to a timer for millions of timeouts. Clones are cheap and refer to the same timer.
///
/// The worker thread starts with the first timeout, or when [`start`](Self::start) is called. It
/// ends when the timer is [stopped](Self::stop) or its last handle is dropped, and it never keeps
/// the process alive. A child process has no worker after a `fork` and must build a new timer.
///
/// # Traps
///
/// - `Timer::new().new_timeout(..)` drops the timer at the end of the statement, which cancels the
///   timeout.
/// - A task that captures a `Timer` keeps the timer alive. Use
///   [`Timeout::timer`](crate::Timeout::timer) or a [`WeakTimer`] in the task.
///
/// # Cost
///
/// Scheduling takes O(1) time. If the shard of the caller's CPU is locked, the caller leaves a
/// request and returns. A thread may leave 8 requests per millisecond. After that it waits for the
/// lock. If another caller waits for it already, the thread leaves a request nonetheless and yields
/// its CPU. Up to 8 times within 8 ms it pauses for about 0.1 ms instead, unless
/// [`backpressure_sleep`](crate::TimerBuilder::backpressure_sleep) forbids that.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use timer_core::Timer;
///
/// let (sender, fired) = mpsc::channel();
/// let timer = Timer::new();
/// timer.new_timeout(Duration::from_millis(2), move |_| sender.send("due").unwrap())?;
/// assert_eq!(fired.recv()?, "due");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "HashedWheelTimer")]
#[doc(alias = "SystemTimer")]
#[doc(alias = "ScheduledExecutorService")]
pub struct Timer {
    pub(crate) engine: Arc<Engine>,
}

impl Timer {
    /// Returns one more handle. Returns `None` if the last handle is gone, even though the worker
    /// may still keep the engine alive.
    pub(super) fn try_from_engine(engine: Arc<Engine>) -> Option<Timer> {
        engine.lifecycle.try_ref_inc().then(|| Self { engine })
    }

    /// Starts the worker now instead of with the first timeout. Does nothing if the timer has a
    /// worker or a driver.
    ///
    /// # Errors
    ///
    /// - [`RejectReason::Stopped`] if the timer is stopped.
    /// - [`RejectReason::ThreadRefused`] if the system refuses the worker's thread. The next call
    ///   tries again.
    ///
    /// # Examples
    ///
    /// ```
    /// let timer = timer_core::Timer::new();
    /// timer.start()?;
    /// # Ok::<(), timer_core::RejectReason>(())
    /// ```
    pub fn start(&self) -> Result<(), RejectReason> {
        worker::start(&self.engine)
    }

    /// Stops the timer and returns the timeouts that have not run.
    ///
    /// The call waits for a task that is running on the worker, and joins the worker's thread. No
    /// task starts on the worker after the call has returned. The call takes O(pending) time. A
    /// second call waits for the same task and thread and returns an empty list, perhaps before the
    /// first call has returned.
    ///
    /// Tasks that were handed to an executor stay there and are not returned. They run if the
    /// process lives long enough, and [`stop_and_wait`](Self::stop_and_wait) waits for them. A
    /// periodic task that is running on an executor ends with that run and counts as cancelled.
    /// Tasks that the executor has dropped without running them run on the calling thread.
    ///
    /// # Errors
    ///
    /// On an error nothing has been stopped.
    ///
    /// - [`StopError::OnWorker`] if the call comes from a task on the worker, which would wait for
    ///   itself.
    /// - [`StopError::Driven`] if the timer has a driver.
    /// - [`StopError::Global`] for [`Timer::global`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let timer = Timer::new();
    /// timer.new_timeout(Duration::from_secs(3600), |_| {})?;
    /// assert_eq!(timer.stop()?.len(), 1);
    /// assert_eq!(timer.pending_timeouts(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "shutdownNow")]
    pub fn stop(&self) -> Result<Vec<Unprocessed>, StopError> {
        if self.is_global() { Err(StopError::Global) } else { self.engine.stop_by_handle() }
    }

    /// Stops the timer and waits, for at most `limit`, until the tasks in the executor have ended.
    ///
    /// The call does the same as [`stop`](Self::stop) and then waits until each task that was
    /// handed over has run or has been cancelled. It may follow an earlier `stop`. It takes
    /// O(pending) time in addition to the wait. No task runs on the calling thread, so tasks that
    /// the executor has dropped without running them are returned.
    ///
    /// If the worker has ended by the limit, the call also waits for the exit of its thread. The
    /// destructors of the thread-local values of that thread have no limit.
    ///
    /// If a task blocks the worker, the call returns at the limit all the same. Tasks that were due
    /// together with the blocking one and have not started are cancelled when the worker continues.
    ///
    /// # Errors
    ///
    /// On an error nothing has been stopped.
    ///
    /// - [`StopError::InTask`] if a task of this timer is on the stack of the calling thread.
    /// - [`StopError::OnWorker`] if the call comes from the worker otherwise, for example from an
    ///   executor or a `tracing` subscriber.
    /// - [`StopError::Driven`] if the timer has a driver.
    /// - [`StopError::Global`] for [`Timer::global`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    /// use timer_core::executor::ThreadPoolExecutor;
    ///
    /// let timer = Timer::builder().executor(ThreadPoolExecutor::new(2)).build()?;
    /// timer.new_timeout(Duration::ZERO, |_| println!("written"))?;
    /// let report = timer.stop_and_wait(Duration::from_secs(5))?;
    /// println!("{} not run, {} still in flight", report.unprocessed.len(), report.in_flight);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "awaitTermination")]
    pub fn stop_and_wait(&self, limit: Duration) -> Result<StopReport, StopError> {
        if self.is_global() { Err(StopError::Global) } else { self.engine.stop_and_wait(limit) }
    }

    /// Accepts no more timeouts, runs the pending ones at their deadlines, and stops the timer when
    /// none is left, or at `limit`.
    ///
    /// From now on new timeouts are refused as [`Stopped`](RejectReason::Stopped), and futures that
    /// have to wait [move to another timer](crate::future#refusals). Pending timeouts can still be
    /// cancelled and moved. Periodic tasks run no further. At the end the call does the same as
    /// [`stop_and_wait`](Self::stop_and_wait), with the rest of `limit`. The report has the
    /// periodic tasks and all timeouts that were still pending at the limit.
    ///
    /// The call takes O(pending) time in addition to the wait. Timeouts that are due while it
    /// begins may be late by that time.
    ///
    /// # Errors
    ///
    /// The same as for [`stop_and_wait`](Self::stop_and_wait).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::{Timeout, Timer};
    ///
    /// let timer = Timer::new();
    /// timer.new_timeout(Duration::from_millis(2), |me: &Timeout| {
    ///     println!("sent again before the end");
    ///     let timer = me.timer().expect("the main thread has a handle");
    ///     assert!(timer.new_timeout(Duration::ZERO, |_| {}).is_err());
    /// })?;
    /// timer.new_timeout(Duration::from_secs(3600), |_| println!("too late"))?;
    /// let report = timer.drain(Duration::from_millis(50))?;
    /// assert_eq!((report.unprocessed.len(), timer.stats().expired), (1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "shutdown")]
    pub fn drain(&self, limit: Duration) -> Result<StopReport, StopError> {
        if self.is_global() { Err(StopError::Global) } else { self.engine.drain(limit) }
    }

    /// Returns `true` if the timer was stopped, or is being stopped.
    ///
    /// # Examples
    ///
    /// ```
    /// let timer = timer_core::Timer::new();
    /// assert!(!timer.is_stopped());
    /// timer.stop()?;
    /// assert!(timer.is_stopped());
    /// # Ok::<(), timer_core::StopError>(())
    /// ```
    #[doc(alias = "isShutdown")]
    pub fn is_stopped(&self) -> bool {
        self.engine.context.is_stopped()
    }

    /// Returns the current time by the timer's clock, which is the system's monotonic clock, or the
    /// virtual time of a [`ManualDriver`](crate::ManualDriver).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// let before = timer.now();
    /// driver.advance(Duration::from_secs(5));
    /// assert_eq!(timer.now() - before, Duration::from_secs(5));
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn now(&self) -> Instant {
        self.engine.context.present.instant()
    }

    /// Returns the number of timeouts that were accepted and have not ended.
    ///
    /// A timeout ends when it is cancelled, when `stop` returns it, or when its task starts. The
    /// start of a periodic task does not end it, but a panic of the task does. A task in the queue
    /// of an executor is therefore pending, and a running task that runs once is not. The number is
    /// exact while no other thread uses the timer. The call takes O(shards) time.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(timer_core::Timer::new().pending_timeouts(), 0);
    /// ```
    #[doc(alias = "pendingTimeouts")]
    pub fn pending_timeouts(&self) -> usize {
        self.engine.pending() as usize
    }

    /// Returns the timer's counters and lags. The call never blocks the worker.
    ///
    /// # Examples
    ///
    /// ```
    /// let stats = timer_core::Timer::new().stats();
    /// println!("{} pending", stats.pending);
    /// println!("99 % run within {:?}", stats.timeout_lag.quantile(0.99));
    /// ```
    pub fn stats(&self) -> TimerStats {
        self.engine.stats()
    }

    /// Returns the worst ten runs of the last minute, the worst first, with the causes of their
    /// lateness. A task is listed once, with its worst run.
    ///
    /// A run is listed if it was at least 1 ms later than its tick. While the list is being read or
    /// written, further runs are left out of it. The call never blocks the worker.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_core::Timer;
    ///
    /// let timer = Timer::new();
    /// for run in timer.worst() {
    ///     println!("{} late by {:?}, behind {:?}", run.task, run.lateness, run.behind);
    /// }
    /// ```
    #[doc(alias = "slowest")]
    pub fn worst(&self) -> Vec<LateRun> {
        let context = &self.engine.context;
        context.counters.worst.lock().get(clock::instant(context.now()))
    }

    /// Returns a handle that does not keep the timer running.
    ///
    /// # Examples
    ///
    /// ```
    /// let timer = timer_core::Timer::new();
    /// let weak = timer.downgrade();
    /// drop(timer);
    /// assert!(weak.upgrade().is_none());
    /// ```
    pub fn downgrade(&self) -> WeakTimer {
        WeakTimer { engine: Arc::downgrade(&self.engine) }
    }

    /// Returns the name that the builder was given.
    ///
    /// # Examples
    ///
    /// ```
    /// let timer = timer_core::Timer::builder().name("idle").build()?;
    /// assert_eq!(timer.name(), "idle");
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn name(&self) -> &str {
        &self.engine.context.name
    }
}

// The timer catches every panic of user code before it can reach the timer's own state.
impl UnwindSafe for Timer {}
impl RefUnwindSafe for Timer {}

impl Clone for Timer {
    fn clone(&self) -> Self {
        self.engine.lifecycle.ref_inc();
        Self { engine: self.engine.clone() }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if self.engine.lifecycle.ref_dec() && !self.engine.is_driven {
            self.engine.abandon();
        }
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer")
            .field("name", &self.name())
            .field("pending", &self.pending_timeouts())
            .field("stopped", &self.is_stopped())
            .field("shards", &self.engine.shards().len())
            .finish_non_exhaustive()
    }
}

/// A handle that does not keep its timer running, made by [`Timer::downgrade`]. It suits exporters,
/// registries, and tasks that may outlive the users of the timer.
///
/// # Examples
///
/// ```
/// use timer_core::Timer;
///
/// let timer = Timer::new();
/// let watched = timer.downgrade();
/// assert!(watched.upgrade().is_some());
/// drop(timer);
/// assert!(watched.upgrade().is_none());
/// ```
#[derive(Clone)]
pub struct WeakTimer {
    engine: Weak<Engine>,
}

impl WeakTimer {
    /// Returns a full handle while at least one other full handle exists. Returns `None` once the
    /// last one was dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// let timer = timer_core::Timer::new();
    /// let pending = timer.downgrade().upgrade().map(|timer| timer.pending_timeouts());
    /// assert_eq!(pending, Some(0));
    /// ```
    pub fn upgrade(&self) -> Option<Timer> {
        self.engine.upgrade().and_then(Timer::try_from_engine)
    }
}

// For the same reason as in `Timer`.
impl UnwindSafe for WeakTimer {}
impl RefUnwindSafe for WeakTimer {}

impl fmt::Debug for WeakTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakTimer").field("timer", &self.upgrade()).finish()
    }
}
