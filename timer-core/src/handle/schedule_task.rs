//! The methods of [`Timer`] that schedule tasks with names or hooks.

use super::timer::Timer;
use crate::clock;
use crate::deadline::Deadline;
use crate::entry::{Hooked, Period, PeriodicTask, Timeout, TimerTask, period_nanos};
use crate::error::ScheduleError;
use std::time::{Duration, Instant};

impl Timer {
    /// Schedules a [`TimerTask`] for an instant. Otherwise the same as
    /// [`new_timeout_at`](Self::new_timeout_at).
    ///
    /// # Errors
    ///
    /// The same as for [`new_timeout_task`](Self::new_timeout_task).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use timer_core::{Timer, named};
    ///
    /// let timer = Timer::new();
    /// let lease_ends = Instant::now() + Duration::from_secs(10);
    /// timer.new_timeout_task_at(lease_ends, named!("end of a lease", |_| println!("it is over")))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new_timeout_task_at<T: TimerTask>(&self, deadline: Instant, task: T) -> Result<Timeout, ScheduleError<T>> {
        self.schedule(Hooked(task), |now| Deadline::at(|| now, clock::nanos_of(deadline)), |job| job.0)
    }

    /// Schedules a [`TimerTask`] with slack. Otherwise the same as
    /// [`new_timeout_with_slack`](Self::new_timeout_with_slack).
    ///
    /// # Errors
    ///
    /// The same as for [`new_timeout_task`](Self::new_timeout_task).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::{Timer, named};
    ///
    /// let timer = Timer::new();
    /// let delay = Duration::from_secs(30);
    /// let slack = Duration::from_secs(1);
    /// timer.new_timeout_task_with_slack(delay, slack, named!("ping", |_| println!("ping")))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new_timeout_task_with_slack<T: TimerTask>(
        &self,
        delay: Duration,
        slack: Duration,
        task: T,
    ) -> Result<Timeout, ScheduleError<T>> {
        self.schedule(Hooked(task), |now| Deadline::within(now, delay, slack), |job| job.0)
    }

    /// Schedules many [`TimerTask`]s of one type. Otherwise the same as
    /// [`new_timeouts`](Self::new_timeouts).
    ///
    /// # Errors
    ///
    /// Each result is an error for the same reasons as the result of
    /// [`new_timeout_task`](Self::new_timeout_task).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::{Timer, named};
    ///
    /// let timer = Timer::new();
    /// let leases = (1..=3).map(|id| {
    ///     (Duration::from_secs(10 * id), named!("end of a lease", move |_| println!("lease {id} is over")))
    /// });
    /// assert!(timer.new_timeout_tasks(leases).iter().all(|timeout| timeout.is_ok()));
    /// ```
    #[must_use = "a task that was not accepted is dropped with its result"]
    pub fn new_timeout_tasks<T: TimerTask>(
        &self,
        tasks: impl IntoIterator<Item = (Duration, T)>,
    ) -> Vec<Result<Timeout, ScheduleError<T>>> {
        self.schedule_many(tasks.into_iter().map(|(delay, task)| (delay, Hooked(task))), |job| job.0)
    }

    /// Schedules a [`PeriodicTask`]. Otherwise the same as
    /// [`schedule_at_fixed_rate`](Self::schedule_at_fixed_rate).
    ///
    /// # Errors
    ///
    /// The same as for `schedule_at_fixed_rate`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::{Timer, named};
    ///
    /// let timer = Timer::new();
    /// let period = Duration::from_secs(10);
    /// let mut beats = 0;
    /// let heartbeat = named!("heartbeat", move |_| {
    ///     beats += 1;
    ///     println!("beat {beats}");
    /// });
    /// timer.schedule_task_at_fixed_rate(period, period, heartbeat)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn schedule_task_at_fixed_rate<T: PeriodicTask>(
        &self,
        initial_delay: Duration,
        period: Duration,
        task: T,
    ) -> Result<Timeout, ScheduleError<T>> {
        self.periodic(initial_delay, period_nanos(period).map(Period::Rate), task)
    }

    /// Schedules a [`PeriodicTask`]. Otherwise the same as
    /// [`schedule_with_fixed_delay`](Self::schedule_with_fixed_delay).
    ///
    /// # Errors
    ///
    /// The same as for `schedule_with_fixed_delay`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::{Timer, named};
    ///
    /// let timer = Timer::new();
    /// let pause = Duration::from_secs(60);
    /// let sweep = named!("sweep of the cache", |_| println!("swept"));
    /// timer.schedule_task_with_fixed_delay(Duration::ZERO, pause, sweep)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn schedule_task_with_fixed_delay<T: PeriodicTask>(
        &self,
        initial_delay: Duration,
        delay: Duration,
        task: T,
    ) -> Result<Timeout, ScheduleError<T>> {
        self.periodic(initial_delay, period_nanos(delay).map(Period::Delay), task)
    }
}
