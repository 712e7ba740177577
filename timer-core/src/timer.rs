//! The timer's handle: the front door.

use crate::builder::TimerBuilder;
use crate::engine::Engine;
use crate::error::{RejectReason, RejectedTimeout, StopError, Stopped};
use crate::job::{Closure, Job, Once, Pace, Periodic, TimerTask, period_nanos};
use crate::stats::TimerStats;
use crate::sync::Arc;
use crate::time::Stamp;
use crate::timeout::Timeout;
use crate::unprocessed::Unprocessed;
use crate::weak::WeakTimer;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Duration, Instant};

/// A timer for millions of timeouts. A cheap handle: clones are the same timer.
///
/// The worker thread starts with the first timeout, or by [`start`](Self::start). It ends when the timer is
/// [stopped](Self::stop) or its last handle is dropped, and never keeps the process alive. After a `fork` the child has no
/// worker: build a new timer there.
///
/// Scheduling costs O(1) and never blocks: a caller works on the wheel of its own shard, or leaves a note for whoever does.
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
    engine: Arc<Engine>,
}

impl Timer {
    /// All defaults: hierarchical wheel, 1 ms tick, tasks run on the worker, no bound, named "timer".
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_core::Timer;
    /// assert_eq!(Timer::new().name(), "timer");
    /// ```
    #[allow(clippy::new_without_default, reason = "`Timer::default()` would hide that it makes a timer of its own")]
    pub fn new() -> Timer {
        TimerBuilder::default().build_default()
    }

    /// Every choice, one by one.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let timer = Timer::builder().name("rpc").tick_duration(Duration::from_micros(100)).build()?;
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn builder() -> TimerBuilder {
        TimerBuilder::default()
    }

    pub(crate) fn from_engine(engine: Arc<Engine>) -> Self {
        Self { engine }
    }

    /// Runs `task` once, `delay` from now: never earlier, and at most a tick later but for what the machine adds.
    ///
    /// A delay of zero runs as soon as the worker gets to it, not at the next tick. Any delay is fine, up to
    /// [`Duration::MAX`], which never comes. Tasks that are due in the same tick run in no particular order.
    ///
    /// # Errors
    ///
    /// [`RejectedTimeout`] with the task in it, if the timer is stopped or its bound is reached.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let timer = Timer::new();
    /// let timeout = timer.new_timeout(Duration::from_secs(5), |_| println!("no reply"))?;
    /// timeout.cancel();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "newTimeout")]
    #[doc(alias = "schedule")]
    pub fn new_timeout<F>(&self, delay: Duration, task: F) -> Result<Timeout, RejectedTimeout<F>>
    where
        F: FnOnce(&Timeout) + Send + 'static,
    {
        self.after(delay, Closure(task), |job| job.0)
    }

    /// Runs `task` once, at `deadline` or right now if that is past. Otherwise as [`new_timeout`](Self::new_timeout).
    ///
    /// # Errors
    ///
    /// [`RejectedTimeout`] with the task in it, if the timer is stopped or its bound is reached.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use timer_core::Timer;
    ///
    /// let timer = Timer::new();
    /// let lease_ends = Instant::now() + Duration::from_secs(10);
    /// timer.new_timeout_at(lease_ends, |_| println!("lease is over"))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new_timeout_at<F>(&self, deadline: Instant, task: F) -> Result<Timeout, RejectedTimeout<F>>
    where
        F: FnOnce(&Timeout) + Send + 'static,
    {
        let scheduled = self.engine.schedule(Closure(task), |context, now| {
            let at = context.clock.nanos_of(deadline);
            if at <= now { Stamp::down(at) } else { Stamp::up(at) }
        });
        scheduled.map_err(|(job, reason)| RejectedTimeout { task: job.0, reason })
    }

    /// As [`new_timeout`](Self::new_timeout), for a task that is told when it will not run.
    ///
    /// # Errors
    ///
    /// [`RejectedTimeout`] with the task in it, if the timer is stopped or its bound is reached; its `cancelled` is not called.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::{Timeout, Timer, TimerTask};
    ///
    /// struct Retry(&'static str);
    /// impl TimerTask for Retry {
    ///     fn run(self, _: &Timeout) {
    ///         println!("again: {}", self.0);
    ///     }
    ///     fn cancelled(self, _: &Timeout) {
    ///         println!("given up: {}", self.0);
    ///     }
    /// }
    ///
    /// let timer = Timer::new();
    /// timer.new_timeout_task(Duration::from_secs(1), Retry("GET /"))?.cancel();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new_timeout_task<T: TimerTask>(&self, delay: Duration, task: T) -> Result<Timeout, RejectedTimeout<T>> {
        self.after(delay, Once(task), |job| job.0)
    }

    /// Runs `task` `initial_delay` from now and then every `period`, counted from when each run was due.
    ///
    /// One handle for all runs; runs never overlap, a run that is late or long makes the next ones wait. Runs that were
    /// missed are skipped and the phase is kept, unless the builder chose [`MissedRuns::Burst`](crate::MissedRuns::Burst).
    /// [`cancel`](Timeout::cancel) works before, between and during runs. A run that panics is the last.
    ///
    /// # Errors
    ///
    /// [`RejectedTimeout`] with the task in it, if the timer is stopped, its bound is reached, or the period is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// let heartbeat = timer.schedule_at_fixed_rate(Duration::ZERO, Duration::from_secs(10), |_| println!("alive"))?;
    /// assert_eq!(driver.advance(Duration::from_secs(60)), 7);
    /// assert!(heartbeat.cancel());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "scheduleAtFixedRate")]
    #[doc(alias = "interval")]
    pub fn schedule_at_fixed_rate<F>(
        &self,
        initial_delay: Duration,
        period: Duration,
        task: F,
    ) -> Result<Timeout, RejectedTimeout<F>>
    where
        F: FnMut(&Timeout) + Send + 'static,
    {
        self.periodic(initial_delay, period_nanos(period).map(Pace::Rate), task)
    }

    /// Runs `task` `initial_delay` from now and then again and again, `delay` after the end of each run. Otherwise as
    /// [`schedule_at_fixed_rate`](Self::schedule_at_fixed_rate).
    ///
    /// # Errors
    ///
    /// [`RejectedTimeout`] with the task in it, if the timer is stopped, its bound is reached, or the delay is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let timer = Timer::new();
    /// let sweep = timer.schedule_with_fixed_delay(Duration::ZERO, Duration::from_secs(60), |_| println!("swept"))?;
    /// sweep.cancel();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "scheduleWithFixedDelay")]
    pub fn schedule_with_fixed_delay<F>(
        &self,
        initial_delay: Duration,
        delay: Duration,
        task: F,
    ) -> Result<Timeout, RejectedTimeout<F>>
    where
        F: FnMut(&Timeout) + Send + 'static,
    {
        self.periodic(initial_delay, period_nanos(delay).map(Pace::Delay), task)
    }

    #[inline]
    fn after<J: Job, T>(
        &self,
        delay: Duration,
        job: J,
        task: impl FnOnce(J) -> T,
    ) -> Result<Timeout, RejectedTimeout<T>> {
        let scheduled = self.engine.schedule(job, |context, now| context.deadline(now, delay));
        scheduled.map_err(|(job, reason)| RejectedTimeout { task: task(job), reason })
    }

    fn periodic<F>(&self, initial_delay: Duration, pace: Option<Pace>, task: F) -> Result<Timeout, RejectedTimeout<F>>
    where
        F: FnMut(&Timeout) + Send + 'static,
    {
        match pace {
            Some(pace) => self.after(initial_delay, Periodic { task, pace }, |job| job.task),
            None => {
                let (task, reason) = self.engine.reject(task, RejectReason::ZeroPeriod);
                Err(RejectedTimeout { task, reason })
            }
        }
    }

    /// Starts the worker now rather than with the first timeout. Does nothing for a timer that has a worker or a driver.
    ///
    /// # Errors
    ///
    /// [`Stopped`], if the timer was stopped, or if the system gives no thread (which is reported by `tracing`).
    ///
    /// # Examples
    ///
    /// ```
    /// let timer = timer_core::Timer::new();
    /// timer.start()?;
    /// # Ok::<(), timer_core::Stopped>(())
    /// ```
    pub fn start(&self) -> Result<(), Stopped> {
        self.engine.start()
    }

    /// Stops: no task starts on the worker after this returns, and what has not run is handed back.
    ///
    /// Waits for the task that runs on the worker just now, if any. Tasks that were handed to a pool before are the pool's;
    /// a periodic task that is running there ends, as cancelled, when its run does. What a pool has thrown away without running
    /// it runs here. A second call waits for the first and gets nothing. O(pending).
    ///
    /// # Errors
    ///
    /// [`StopError::OnWorker`] from a task that runs on the worker, which would wait for itself; [`StopError::Driven`] for a
    /// timer with a driver. Nothing has been stopped then.
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
    #[doc(alias = "shutdown")]
    pub fn stop(&self) -> Result<Vec<Unprocessed>, StopError> {
        if self.engine.is_driven() {
            return Err(StopError::Driven);
        }
        if self.engine.is_on_worker() {
            return Err(StopError::OnWorker);
        }
        Ok(self.engine.stop())
    }

    /// How many timeouts were accepted and have not ended. Exact at quiet. A timeout ends when it is cancelled, handed over
    /// to run, or handed back: a task is no longer pending when it runs. O(shards).
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

    /// What it has done so far, and how late. Never blocks the worker.
    ///
    /// # Examples
    ///
    /// ```
    /// let stats = timer_core::Timer::new().stats();
    /// println!("pending {}, 99 % run within {:?}", stats.pending, stats.timeout_lag.quantile(0.99));
    /// ```
    pub fn stats(&self) -> TimerStats {
        self.engine.stats()
    }

    /// A handle that does not keep the timer running.
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
        WeakTimer::new(Arc::downgrade(&self.engine))
    }

    /// The name it was built with.
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

// No panic of foreign code unwinds through the timer's own state.
impl UnwindSafe for Timer {}
impl RefUnwindSafe for Timer {}

impl Clone for Timer {
    fn clone(&self) -> Self {
        self.engine.keep();
        Self { engine: self.engine.clone() }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if self.engine.let_go() && !self.engine.is_driven() {
            self.engine.abandon();
        }
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer")
            .field("name", &self.name())
            .field("pending", &self.pending_timeouts())
            .field("stopped", &self.engine.context.is_stopped())
            .field("shards", &self.engine.shards.len())
            .finish_non_exhaustive()
    }
}
