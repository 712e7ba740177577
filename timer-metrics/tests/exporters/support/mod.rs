//! Timers with known counts, and parsers of the exported formats that share no code with the
//! exporters.
#![allow(dead_code, reason = "the features decide which items are used")]

pub(crate) mod exposition;
pub(crate) mod promtool;
#[cfg(feature = "durable")]
pub(crate) mod shared;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use timer_core::executor::{ExecuteError, Task, TaskExecutor};
use timer_core::{ManualDriver, Timer, TimerBuilder};

pub(crate) const MILLI: Duration = Duration::from_millis(1);

/// The counts of the timer that [`known`] returns.
pub(crate) const KNOWN: &[(&str, f64)] = &[
    ("timer_pending_timeouts", 2.0),
    ("timer_tasks_queued", 0.0),
    ("timer_tasks_running", 0.0),
    ("timer_timeouts_scheduled_total", 10.0),
    ("timer_timeouts_expired_total", 5.0),
    ("timer_timeouts_cancelled_total", 3.0),
    ("timer_timeouts_rejected_total", 1.0),
    ("timer_task_panics_total", 1.0),
    ("timer_executor_rejections_total", 0.0),
    ("timer_runs_total", 8.0),
    ("timer_inbox_handovers_total", 0.0),
    ("timer_shards", 1.0),
    ("timer_longest_task_seconds", 0.0),
    ("timer_expected_lag_seconds", 0.0),
];

/// Returns the counts that every timer has: [`KNOWN`], and the counts that depend on the wheel.
pub(crate) fn counts(timer: &Timer) -> Vec<(&'static str, f64)> {
    let stats = timer.stats();
    let inner = [("timer_turns_total", stats.turns), ("timer_entries_cascaded_total", stats.cascaded)];
    KNOWN.iter().copied().chain(inner.map(|(name, count)| (name, count as f64))).collect()
}

/// The numbers of timeouts of [`known`] that are due within each bound. One of them is periodic.
pub(crate) const DUE: [(&str, f64); 7] =
    [("1.0", 1.0), ("10.0", 1.0), ("60.0", 1.0), ("600.0", 1.0), ("3600.0", 2.0), ("86400.0", 2.0), ("+Inf", 2.0)];

/// The lags of the late tasks of [`known`].
pub(crate) const LATE: [Duration; 3] = [Duration::from_micros(30), Duration::from_millis(7), Duration::from_secs(20)];

/// The number of tasks of [`known`] that were handed over in time.
pub(crate) const IN_TIME: u64 = 5;

/// Creates a timer on virtual time with the counts in [`KNOWN`]. It has two one-shot runs in time
/// (one of which panics), three late runs, three runs of a periodic task, three cancelled timeouts,
/// one refused call, and one pending timeout beside the periodic one.
pub(crate) fn known(builder: TimerBuilder) -> (Timer, ManualDriver) {
    let (timer, mut driver) = builder.build_manual().unwrap();
    let hour = 3_600_000 * MILLI;
    driver.advance(hour);
    for late in LATE {
        timer.new_timeout_at(driver.now() - late, |_| {}).unwrap();
    }
    timer.new_timeout(MILLI, |_| {}).unwrap();
    timer.new_timeout(MILLI, |_| panic!("on purpose")).unwrap();
    for _ in 0..3 {
        assert!(timer.new_timeout(MILLI, |_| {}).unwrap().cancel());
    }
    timer.schedule_at_fixed_rate(10 * MILLI, 10 * MILLI, |_| {}).unwrap();
    assert!(timer.schedule_at_fixed_rate(MILLI, Duration::ZERO, |_| {}).is_err());
    timer.new_timeout(hour, |_| {}).unwrap();
    driver.advance(30 * MILLI);
    (timer, driver)
}

/// An executor that runs a task when the test asks for it. Clones share the queue.
#[derive(Clone, Default)]
pub(crate) struct Waiting(Arc<Mutex<VecDeque<Task>>>);

impl Waiting {
    /// Runs the oldest task on this thread.
    pub(crate) fn run_one(&self) {
        // A separate statement unlocks the queue first, because the task may hand over another one.
        let task = self.0.lock().unwrap().pop_front();
        task.unwrap().run();
    }
}

impl TaskExecutor for Waiting {
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        self.0.lock().unwrap().push_back(task);
        Ok(())
    }
}
