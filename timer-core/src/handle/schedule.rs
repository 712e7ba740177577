//! The methods of [`Timer`] that schedule tasks.

use super::timer::Timer;
use crate::clock;
use crate::deadline::{Deadline, Nanos};
use crate::entry::{Closure, Hooked, Job, Period, Periodic, PeriodicTask, Timeout, TimerTask, period_nanos};
use crate::error::{RejectReason, ScheduleError};
use crate::shard::MAX_PER_LOCK;
use crate::worker;
use std::time::{Duration, Instant};

impl Timer {
    /// Schedules a job. Starts the worker first if it does not run yet.
    #[inline]
    pub(super) fn schedule<J: Job, T>(
        &self,
        job: J,
        deadline: impl FnOnce(Nanos) -> Deadline,
        into_task: impl FnOnce(J) -> T,
    ) -> Result<Timeout, ScheduleError<T>> {
        let scheduled = match self.ensure_started() {
            Ok(()) => self.engine.schedule(job, deadline),
            Err(reason) => Err(self.engine.reject(job, reason)),
        };
        scheduled.map_err(|(job, reason)| ScheduleError::new(into_task(job), reason))
    }

    #[inline]
    pub(crate) fn ensure_started(&self) -> Result<(), RejectReason> {
        if self.engine.lifecycle.has_started() { Ok(()) } else { worker::start(&self.engine) }
    }

    /// Schedules `task` to run once, `delay` from now.
    ///
    /// The task never runs early. It runs within one tick after its deadline, plus the time by
    /// which the system delays the worker and the executor. With a delay of zero the task runs as
    /// soon as the worker reaches it, without waiting for the next tick. Every delay is allowed,
    /// and a delay of [`Duration::MAX`] never elapses. Tasks that are due in the same tick run in
    /// no particular order.
    ///
    /// While the worker is overloaded, the call may sleep for up to 8 ms if its thread schedules at
    /// full speed. [`backpressure_sleep`](crate::TimerBuilder::backpressure_sleep) describes when
    /// that happens and forbids it.
    ///
    /// If a closure is stored in a variable first, declare the type of its argument, as in
    /// `|_: &Timeout| ..`.
    ///
    /// # Errors
    ///
    /// Returns a [`ScheduleError`] that contains the task if the timer is stopped, if its bound
    /// is reached, or if the system has no thread or no shard left for it. Its [`RejectReason`]
    /// names the reason.
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
    pub fn new_timeout<F>(&self, delay: Duration, task: F) -> Result<Timeout, ScheduleError<F>>
    where
        F: FnOnce(&Timeout) + Send + 'static,
    {
        self.schedule(Closure(task), |now| Deadline::after(now, delay), |job| job.0)
    }

    /// Schedules `task` to run once, at `deadline`, or at once if that is past. Otherwise the same
    /// as [`new_timeout`](Self::new_timeout).
    ///
    /// The deadline is an instant of the timer's clock. On virtual time, count from
    /// [`now`](Self::now) instead of `Instant::now()`.
    ///
    /// # Errors
    ///
    /// The same as for `new_timeout`.
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
    pub fn new_timeout_at<F>(&self, deadline: Instant, task: F) -> Result<Timeout, ScheduleError<F>>
    where
        F: FnOnce(&Timeout) + Send + 'static,
    {
        self.schedule(Closure(task), |now| Deadline::at(|| now, clock::nanos_of(deadline)), |job| job.0)
    }

    /// Schedules a [`TimerTask`]. It is told when it will not run. Otherwise the same as
    /// [`new_timeout`](Self::new_timeout).
    ///
    /// # Errors
    ///
    /// The same as for `new_timeout`. A refused task is returned, and its `cancelled` is not
    /// called.
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
    pub fn new_timeout_task<T: TimerTask>(&self, delay: Duration, task: T) -> Result<Timeout, ScheduleError<T>> {
        self.schedule(Hooked(task), |now| Deadline::after(now, delay), |job| job.0)
    }

    /// Schedules `task` to run `initial_delay` from now, and then once per `period`.
    ///
    /// Each deadline is one period after the deadline before it, however late that run was. Runs
    /// never overlap, so a long run delays the next one. Missed runs are skipped and the phase is
    /// kept, unless the builder chose another rule of [`MissedTickBehavior`](crate::MissedTickBehavior).
    ///
    /// The returned handle stands for all runs. [`cancel`](Timeout::cancel) works before, between
    /// and during runs, and [`reset_period`](Timeout::reset_period) changes the period. If a run
    /// panics, no further run follows.
    ///
    /// # Errors
    ///
    /// Returns a [`ScheduleError`] that contains the task if `period` is zero, or for a reason of
    /// [`new_timeout`](Self::new_timeout).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// let period = Duration::from_secs(10);
    /// let heartbeat = timer.schedule_at_fixed_rate(Duration::ZERO, period, |_| println!("alive"))?;
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
    ) -> Result<Timeout, ScheduleError<F>>
    where
        F: FnMut(&Timeout) + Send + 'static,
    {
        self.periodic(initial_delay, period_nanos(period).map(Period::Rate), task)
    }

    /// Schedules `task` to run `initial_delay` from now, and then `delay` after the end of each
    /// run. Otherwise the same as [`schedule_at_fixed_rate`](Self::schedule_at_fixed_rate).
    ///
    /// # Errors
    ///
    /// Returns a [`ScheduleError`] that contains the task if `delay` is zero, or for a reason of
    /// [`new_timeout`](Self::new_timeout).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let timer = Timer::new();
    /// let pause = Duration::from_secs(60);
    /// let sweep = timer.schedule_with_fixed_delay(Duration::ZERO, pause, |_| println!("swept"))?;
    /// sweep.cancel();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "scheduleWithFixedDelay")]
    pub fn schedule_with_fixed_delay<F>(
        &self,
        initial_delay: Duration,
        delay: Duration,
        task: F,
    ) -> Result<Timeout, ScheduleError<F>>
    where
        F: FnMut(&Timeout) + Send + 'static,
    {
        self.periodic(initial_delay, period_nanos(delay).map(Period::Delay), task)
    }

    /// Schedules many tasks, each after its delay, and returns one result per task, in order.
    ///
    /// This costs less than a [`new_timeout`](Self::new_timeout) per task, because the call reads
    /// the clock and takes a lock once per chunk of 64 tasks. The delays of a chunk count from the
    /// moment at which the iterator has yielded the last task of that chunk. While the worker is
    /// overloaded, the call may sleep after each chunk, as `new_timeout` may.
    ///
    /// The iterator may call the timer, because the call holds no lock while it draws a task. If
    /// the iterator panics, the tasks of earlier chunks stay scheduled. Its `size_hint` need not be
    /// right. The closures must declare the type of their argument, as in `|_: &Timeout| ..`.
    ///
    /// # Errors
    ///
    /// Each result is an error for the same reasons as the result of `new_timeout`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::{Timeout, Timer};
    ///
    /// let timer = Timer::new();
    /// let leases = (1..=3).map(|id| {
    ///     (Duration::from_secs(10 * id), move |_: &Timeout| println!("lease {id} is over"))
    /// });
    /// let timeouts = timer.new_timeouts(leases);
    /// assert!(timeouts.iter().all(|timeout| timeout.is_ok()));
    /// assert_eq!(timer.pending_timeouts(), 3);
    /// ```
    #[must_use = "a task that was not accepted is dropped with its result"]
    pub fn new_timeouts<F>(
        &self,
        tasks: impl IntoIterator<Item = (Duration, F)>,
    ) -> Vec<Result<Timeout, ScheduleError<F>>>
    where
        F: FnOnce(&Timeout) + Send + 'static,
    {
        self.schedule_many(tasks.into_iter().map(|(delay, task)| (delay, Closure(task))), |job| job.0)
    }

    pub(super) fn schedule_many<J: Job, T>(
        &self,
        tasks: impl Iterator<Item = (Duration, J)>,
        into_task: fn(J) -> T,
    ) -> Vec<Result<Timeout, ScheduleError<T>>> {
        let mut tasks = tasks.fuse();
        let mut chunk = Vec::with_capacity(MAX_PER_LOCK);
        let mut scheduled = Vec::new();
        let mut all = Vec::new();
        // The size hint comes from user code and may be wrong, so it must not cause a large
        // allocation.
        all.reserve(tasks.size_hint().0.min(MAX_PER_LOCK));
        loop {
            chunk.extend(tasks.by_ref().take(MAX_PER_LOCK));
            if chunk.is_empty() {
                return all;
            }
            match self.ensure_started() {
                Ok(()) => self.engine.schedule_chunk(&mut chunk, &mut scheduled),
                Err(reason) => scheduled.extend(chunk.drain(..).map(|(_, job)| Err(self.engine.reject(job, reason)))),
            }
            let refuse = |(job, reason): (J, RejectReason)| ScheduleError::new(into_task(job), reason);
            all.extend(scheduled.drain(..).map(|one| one.map_err(refuse)));
        }
    }

    /// Schedules `task` to run once, at a deadline that the timer picks between `delay` and
    /// `delay + slack` from now.
    ///
    /// The timer picks instants that other timeouts with slack are likely to share, so that the
    /// worker wakes less often. [`Timeout::deadline`] returns the choice, and the lag of the task
    /// counts from it. A later [`reset`](Timeout::reset) has no slack.
    ///
    /// # Errors
    ///
    /// The same as for [`new_timeout`](Self::new_timeout).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let (timer, driver) = Timer::builder().build_manual()?;
    /// let (delay, slack) = (Duration::from_secs(30), Duration::from_secs(1));
    /// let heartbeat = timer.new_timeout_with_slack(delay, slack, |_| println!("ping"))?;
    /// let after = heartbeat.deadline() - driver.now();
    /// assert!(after >= delay && after <= delay + slack);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "timerslack")]
    pub fn new_timeout_with_slack<F>(
        &self,
        delay: Duration,
        slack: Duration,
        task: F,
    ) -> Result<Timeout, ScheduleError<F>>
    where
        F: FnOnce(&Timeout) + Send + 'static,
    {
        self.schedule(Closure(task), |now| Deadline::within(now, delay, slack), |job| job.0)
    }

    pub(super) fn periodic<T: PeriodicTask>(
        &self,
        initial_delay: Duration,
        period: Option<Period>,
        task: T,
    ) -> Result<Timeout, ScheduleError<T>> {
        let Some(period) = period else {
            let (task, reason) = self.engine.reject(task, RejectReason::ZeroPeriod);
            return Err(ScheduleError::new(task, reason));
        };
        self.schedule(Periodic { task, period }, |now| Deadline::after(now, initial_delay), |job| job.task)
    }
}
