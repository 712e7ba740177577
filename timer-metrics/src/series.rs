//! The table of exported series. Every exporter takes names, units and descriptions from it.

use crate::buckets::DUE_BOUNDS;
use crate::snapshot::TimerSnapshot;
use std::time::Duration;
use timer_core::{LagSnapshot, Lateness};

/// The name of the label that every series has.
pub(crate) const LABEL: &str = "timer";

/// The name of the label of series that have one number for each cause.
pub(crate) const CAUSE: &str = "cause";

/// The name of the label with the bound of a cumulative number.
pub(crate) const BOUND: &str = "le";

/// The type of a series and the function that reads it from a snapshot.
pub(crate) enum Value {
    /// A number that only rises while the timer lives. The name ends in `_total`.
    Counter(fn(&TimerSnapshot) -> u64),
    /// A number that may fall. A series without a value is left out.
    Gauge(fn(&TimerSnapshot) -> Option<u64>),
    /// A gauge in seconds. The name ends in `_seconds`.
    Seconds(fn(&TimerSnapshot) -> Option<Duration>),
    /// Seconds that only rise, one number for each cause. The name ends in `_seconds_total`.
    Causes(fn(&TimerSnapshot) -> &Lateness),
    /// A histogram of late runs for each cause. The name ends in `_seconds`. The facade has no call
    /// that takes a histogram, so it leaves these out.
    LateRuns,
    /// Numbers of timeouts that are due within each of some bounds, as [`due`] returns them.
    Due,
    /// A histogram. The name ends in `_seconds`.
    Lag(fn(&TimerSnapshot) -> &LagSnapshot),
}

/// One series, exported for every timer.
pub(crate) struct Series {
    pub(crate) name: &'static str,
    /// A sentence without characters that need escaping.
    pub(crate) help: &'static str,
    pub(crate) value: Value,
}

const fn series(name: &'static str, value: Value, help: &'static str) -> Series {
    Series { name, help, value }
}

/// Returns the bounds in seconds as text, each with the number of timeouts due within it.
pub(crate) fn due(timer: &TimerSnapshot) -> impl Iterator<Item = (String, u64)> {
    let due = |bound: Duration| (format!("{:?}", bound.as_secs_f64()), timer.timetable.due_within(bound));
    // The timetable may be older.
    let all = timer.stats.pending.max(timer.timetable.waiting());
    DUE_BOUNDS.into_iter().map(due).chain([("+Inf".to_owned(), all)])
}

/// All series, in the order in which they are exported.
pub(crate) const SERIES: &[Series] = &[
    series(
        "timer_pending_timeouts",
        Value::Gauge(|timer| Some(timer.stats.pending)),
        "Timeouts that were accepted and have not ended.",
    ),
    series(
        "timer_tasks_queued",
        Value::Gauge(|timer| Some(timer.stats.queued)),
        "Tasks that were handed over and wait for a thread of the executor; they are pending.",
    ),
    series(
        "timer_tasks_running",
        Value::Gauge(|timer| Some(timer.stats.running)),
        "Tasks that have started and not returned; all tasks on the worker count as one.",
    ),
    series(
        "timer_timeouts_scheduled_total",
        Value::Counter(|timer| timer.stats.scheduled),
        "Timeouts accepted; a periodic task counts once.",
    ),
    series(
        "timer_timeouts_expired_total",
        Value::Counter(|timer| timer.stats.expired),
        "Timeouts that ended by running, or, for a periodic task, by a panic.",
    ),
    series(
        "timer_timeouts_cancelled_total",
        Value::Counter(|timer| timer.stats.cancelled),
        "Timeouts that were cancelled, or returned when the timer was stopped.",
    ),
    series(
        "timer_timeouts_rejected_total",
        Value::Counter(|timer| timer.stats.rejected),
        "Calls that the timer refused; no other counter includes them.",
    ),
    series(
        "timer_task_panics_total",
        Value::Counter(|timer| timer.stats.task_panics),
        "Panics that were caught in tasks, hooks, wakers and destructors.",
    ),
    series(
        "timer_executor_rejections_total",
        Value::Counter(|timer| timer.stats.executor_rejections),
        "Tasks that the executor refused or dropped, or over which it panicked.",
    ),
    series(
        "timer_turns_total",
        Value::Counter(|timer| timer.stats.turns),
        "Turns of the worker, in which it looks for due timeouts.",
    ),
    series(
        "timer_runs_total",
        Value::Counter(|timer| timer.stats.runs),
        "Tasks that have started; a periodic task counts with every run.",
    ),
    series(
        "timer_entries_cascaded_total",
        Value::Counter(|timer| timer.stats.cascaded),
        "Entries moved from a coarse level of the wheel to a finer one.",
    ),
    series(
        "timer_inbox_handovers_total",
        Value::Counter(|timer| timer.stats.inbox_handovers),
        "Calls that found the lock of their shard taken and left a request in its inbox.",
    ),
    series("timer_shards", Value::Gauge(|timer| Some(timer.stats.shards)), "Shards over which callers are spread."),
    series(
        "timer_longest_task_seconds",
        Value::Seconds(|timer| Some(timer.stats.longest_batch)),
        "Longest time that the worker took for a batch of up to 64 tasks and wakers, within the last one to two minutes.",
    ),
    series(
        "timer_max_pending_timeouts",
        Value::Gauge(|timer| timer.max_pending),
        "Bound on pending timeouts, for timers that have one.",
    ),
    series(
        "timer_longest_delay_seconds",
        Value::Seconds(|timer| timer.longest_delay),
        "Longest delay in use, where the application stated it.",
    ),
    series(
        "timer_due_within_seconds",
        Value::Due,
        "Timeouts that are due within so many seconds; the last number is that of all pending ones.",
    ),
    series(
        "timer_expected_lag_seconds",
        Value::Seconds(|timer| Some(timer.timetable.expected_lag())),
        "Longest lag that the timeouts of the next minute are expected to have because of each other.",
    ),
    series(
        "timer_lateness_seconds_total",
        Value::Causes(|timer| &timer.stats.lateness),
        "Time by which all runs were late, from their deadlines to their starts, by cause.",
    ),
    series(
        "timer_late_runs_seconds",
        Value::LateRuns,
        "Parts of at least 1 ms of the lateness of runs that were as late beyond their ticks, by cause.",
    ),
    series(
        "timer_tick_lag_seconds",
        Value::Lag(|timer| &timer.stats.tick_lag),
        "Time from a tick to the turn of the worker that handled it.",
    ),
    series(
        "timer_timeout_lag_seconds",
        Value::Lag(|timer| &timer.stats.timeout_lag),
        "Time from the deadline of a task to its hand-over.",
    ),
    series(
        "timer_start_lag_seconds",
        Value::Lag(|timer| &timer.stats.start_lag),
        "Time from the deadline of a task to its start, including the wait in the executor's queue.",
    ),
];
