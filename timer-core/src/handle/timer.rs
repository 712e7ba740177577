//! The handle of a timer, and its methods that schedule tasks.

use super::builder::TimerBuilder;
use crate::context::{deadline_after, deadline_at};
use crate::entry::{Closure, Hooked, Job, Period, Periodic, Timeout, TimerTask, period_nanos};
use crate::error::{RejectReason, RejectedTimeout};
use crate::shard::MAX_PER_LOCK;
use crate::sync::Arc;
use crate::time::{Deadline, Nanos};
use crate::timer::Engine;
use crate::worker;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Duration, Instant};

/// A timer for millions of timeouts. A cheap handle: clones are the same timer.
///
/// The worker thread starts with the first timeout, or by [`start`](Self::start). It ends when the timer is
/// [stopped](Self::stop) or its last handle is dropped, and never keeps the process alive. After a
/// `fork` the child has no worker: build a new timer there.
///
/// *Two traps*: the timeouts of a temporary, `Timer::new().new_timeout(..)`, are cancelled with it
/// at the end of the statement. A task that captures a `Timer` keeps it alive, so use
/// [`Timeout::timer`] or a [`WeakTimer`](crate::WeakTimer) in it.
///
/// Scheduling costs O(1). A caller that finds the shard of its CPU locked leaves a request, up to 8
/// in a millisecond, and beyond that waits for the lock as at a fair mutex.
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
    pub(super) engine: Arc<Engine>,
}

impl Timer {
    /// All defaults: hierarchical wheel, 1 ms tick, tasks run on the worker, no bound, named
    /// "timer".
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

    #[inline]
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Returns one more handle. Returns `None` if the last one is gone, although the worker keeps
    /// the engine alive for a while after that.
    pub(super) fn try_from_engine(engine: Arc<Engine>) -> Option<Timer> {
        engine.try_ref_inc().then(|| Self { engine })
    }

    /// Schedules a job, after starting the worker if necessary.
    #[inline]
    fn schedule<J: Job, T>(
        &self,
        job: J,
        deadline: impl FnOnce(Nanos) -> Deadline,
        into_task: impl FnOnce(J) -> T,
    ) -> Result<Timeout, RejectedTimeout<T>> {
        let scheduled = match self.ensure_started() {
            Ok(()) => self.engine.schedule(job, deadline),
            Err(reason) => Err(self.engine.reject(job, reason)),
        };
        scheduled.map_err(|(job, reason)| RejectedTimeout::new(into_task(job), reason))
    }

    #[inline]
    fn ensure_started(&self) -> Result<(), RejectReason> {
        if self.engine.has_started() { Ok(()) } else { worker::start(&self.engine) }
    }

    /// Runs `task` once, `delay` from now: never earlier, and at most a tick later but for what the
    /// machine adds.
    ///
    /// A closure that is stored before it is passed needs the type of its argument:
    /// `|_: &Timeout|`.
    ///
    /// A delay of zero runs as soon as the worker gets to it, not at the next tick. Any delay is
    /// fine, up to [`Duration::MAX`], which never comes. Tasks that are due in the same tick run in
    /// no particular order.
    ///
    /// # Errors
    ///
    /// [`RejectedTimeout`] with the task in it, if the timer is stopped or its bound is reached, or
    /// for lack of a thread or a shard ([`RejectReason`]).
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
        self.schedule(Closure(task), |now| deadline_after(now, delay), |job| job.0)
    }

    /// Runs `task` once, at `deadline` or right now if that is past. Otherwise as [`new_timeout`](Self::new_timeout).
    ///
    /// The deadline is one of the timer's clock: under virtual time count from [`now`](Self::now),
    /// not from `Instant::now()`.
    ///
    /// # Errors
    ///
    /// [`RejectedTimeout`] with the task in it, if the timer is stopped or its bound is reached, or
    /// for lack of a thread or a shard ([`RejectReason`]).
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
        self.schedule(Closure(task), |now| deadline_at(now, deadline), |job| job.0)
    }

    /// As [`new_timeout`](Self::new_timeout), for a task that is told when it will not run.
    ///
    /// # Errors
    ///
    /// [`RejectedTimeout`] with the task in it, if the timer is stopped or its bound is reached;
    /// its `cancelled` is not called.
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
        self.schedule(Hooked(task), |now| deadline_after(now, delay), |job| job.0)
    }

    /// Runs `task` `initial_delay` from now and then every `period`, counted from when each run was
    /// due.
    ///
    /// One handle for all runs; runs never overlap, a run that is late or long makes the next ones
    /// wait. Runs that were missed are skipped and the phase is kept, unless the builder chose
    /// [`MissedRuns::Burst`](crate::MissedRuns::Burst). [`cancel`](Timeout::cancel) works before,
    /// between and during runs. A run that panics is the last.
    ///
    /// # Errors
    ///
    /// [`RejectedTimeout`] with the task in it, if the timer is stopped, its bound is reached, or
    /// the period is zero.
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
        self.periodic(initial_delay, period_nanos(period).map(Period::Rate), task)
    }

    /// Runs `task` `initial_delay` from now and then again and again, `delay` after the end of each
    /// run. Otherwise as [`schedule_at_fixed_rate`](Self::schedule_at_fixed_rate).
    ///
    /// # Errors
    ///
    /// [`RejectedTimeout`] with the task in it, if the timer is stopped, its bound is reached, or
    /// the delay is zero.
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
        self.periodic(initial_delay, period_nanos(delay).map(Period::Delay), task)
    }

    /// Runs many tasks, each after its delay, for less than [`new_timeout`](Self::new_timeout)
    /// costs for each: the clock is read once, and a shard's lock taken once, per chunk of 64. One
    /// result per item, in order.
    ///
    /// The iterator is called with nothing held, and the delays of a chunk count from when its last
    /// item was drawn. If the iterator panics, what was accepted before stays accepted. The
    /// closures need `|_: &Timeout|` for an argument.
    ///
    /// # Errors
    ///
    /// Each result for itself, as for `new_timeout`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::{Timeout, Timer};
    ///
    /// let timer = Timer::new();
    /// let leases = (1..=3).map(|id| (Duration::from_secs(10 * id), move |_: &Timeout| println!("lease {id} is over")));
    /// let timeouts = timer.new_timeouts(leases);
    /// assert!(timeouts.iter().all(|timeout| timeout.is_ok()));
    /// assert_eq!(timer.pending_timeouts(), 3);
    /// ```
    pub fn new_timeouts<F>(
        &self,
        tasks: impl IntoIterator<Item = (Duration, F)>,
    ) -> Vec<Result<Timeout, RejectedTimeout<F>>>
    where
        F: FnOnce(&Timeout) + Send + 'static,
    {
        let mut tasks = tasks.into_iter().map(|(delay, task)| (delay, Closure(task)));
        let (mut chunk, mut scheduled, mut all) = (Vec::with_capacity(MAX_PER_LOCK), Vec::new(), Vec::new());
        // The hint may be wrong, so it does not decide alone how much to allocate.
        all.reserve(tasks.size_hint().0.min(MAX_PER_LOCK));
        loop {
            chunk.extend(tasks.by_ref().take(MAX_PER_LOCK));
            if chunk.is_empty() {
                self.engine.slow_down(all.len());
                return all;
            }
            match self.ensure_started() {
                Ok(()) => self.engine.schedule_chunk(&mut chunk, &mut scheduled),
                Err(reason) => scheduled.extend(chunk.drain(..).map(|(_, job)| Err(self.engine.reject(job, reason)))),
            }
            let refuse = |(job, reason): (Closure<F>, RejectReason)| RejectedTimeout::new(job.0, reason);
            all.extend(scheduled.drain(..).map(|one| one.map_err(refuse)));
        }
    }

    /// Runs `task` once, at a deadline between `delay` and `delay + slack` from now that the timer
    /// picks at the call, so that many of them fall together and the worker wakes less often.
    /// [`deadline`](Timeout::deadline) tells it; lags count from it, and [`reset`](Timeout::reset)
    /// is exact.
    ///
    /// # Errors
    ///
    /// As for [`new_timeout`](Self::new_timeout).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let (timer, driver) = Timer::builder().build_manual()?;
    /// let heartbeat = timer.new_timeout_with_slack(Duration::from_secs(30), Duration::from_secs(1), |_| println!("ping"))?;
    /// let after = heartbeat.deadline() - driver.now();
    /// assert!(after >= Duration::from_secs(30) && after <= Duration::from_secs(31));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "timerslack")]
    pub fn new_timeout_with_slack<F>(
        &self,
        delay: Duration,
        slack: Duration,
        task: F,
    ) -> Result<Timeout, RejectedTimeout<F>>
    where
        F: FnOnce(&Timeout) + Send + 'static,
    {
        self.schedule(Closure(task), |now| Deadline::within(now, delay, slack), |job| job.0)
    }

    fn periodic<F>(
        &self,
        initial_delay: Duration,
        period: Option<Period>,
        task: F,
    ) -> Result<Timeout, RejectedTimeout<F>>
    where
        F: FnMut(&Timeout) + Send + 'static,
    {
        match period {
            Some(period) => {
                self.schedule(Periodic { task, period }, |now| deadline_after(now, initial_delay), |job| job.task)
            }
            None => {
                let (task, reason) = self.engine.reject(task, RejectReason::ZeroPeriod);
                Err(RejectedTimeout::new(task, reason))
            }
        }
    }
}

// No panic of foreign code unwinds through the timer's own state.
impl UnwindSafe for Timer {}
impl RefUnwindSafe for Timer {}

impl Clone for Timer {
    fn clone(&self) -> Self {
        self.engine.ref_inc();
        Self { engine: self.engine.clone() }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if self.engine.ref_dec() && !self.engine.is_driven() {
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
            .field("shards", &self.engine.shards().len())
            .finish_non_exhaustive()
    }
}
