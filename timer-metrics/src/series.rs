//! What is exported of a timer: one table, from which every exporter takes names, units and meanings.

use crate::snapshot::TimerSnapshot;
use std::time::Duration;
use timer_core::LagSnapshot;

/// The name of the one label.
pub(crate) const LABEL: &str = "timer";

/// How a figure is got from a snapshot, and what kind of figure it is.
pub(crate) enum Value {
    /// It only rises while the timer lives; the name ends in `_total`.
    Counter(fn(&TimerSnapshot) -> u64),
    /// Left out where it is not known.
    Gauge(fn(&TimerSnapshot) -> Option<u64>),
    /// A gauge; the name ends in `_seconds`.
    Seconds(fn(&TimerSnapshot) -> Option<Duration>),
    /// A histogram; the name ends in `_seconds`.
    Lag(fn(&TimerSnapshot) -> &LagSnapshot),
}

/// One exported figure of every timer.
pub(crate) struct Series {
    pub(crate) name: &'static str,
    /// A sentence without characters that would have to be escaped.
    pub(crate) help: &'static str,
    pub(crate) value: Value,
}

const fn series(name: &'static str, value: Value, help: &'static str) -> Series {
    Series { name, help, value }
}

/// All of them, in the order in which they are written.
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
        "Tasks that have started and not returned; those that the worker runs itself count as one.",
    ),
    series(
        "timer_timeouts_scheduled_total",
        Value::Counter(|timer| timer.stats.scheduled),
        "Timeouts accepted; a periodic task counts once.",
    ),
    series(
        "timer_timeouts_expired_total",
        Value::Counter(|timer| timer.stats.expired),
        "Timeouts ended by running, or, for a periodic task, by a panic of it.",
    ),
    series(
        "timer_timeouts_cancelled_total",
        Value::Counter(|timer| timer.stats.cancelled),
        "Timeouts ended by cancelling, or handed back when the timer was stopped.",
    ),
    series(
        "timer_timeouts_rejected_total",
        Value::Counter(|timer| timer.stats.rejected),
        "Calls that were refused because the timer was stopped or full; they count nowhere else.",
    ),
    series(
        "timer_task_panics_total",
        Value::Counter(|timer| timer.stats.task_panics),
        "Panics of tasks, and of what is called and dropped with them, that were caught.",
    ),
    series(
        "timer_executor_rejections_total",
        Value::Counter(|timer| timer.stats.executor_rejections),
        "Tasks that the executor refused, lost or panicked over; they ran on the worker instead.",
    ),
    series(
        "timer_turns_total",
        Value::Counter(|timer| timer.stats.turns),
        "How often the worker looked for due timeouts.",
    ),
    series(
        "timer_runs_total",
        Value::Counter(|timer| timer.stats.runs),
        "Tasks handed over to run; a periodic task counts with every run, one moved while queued may count again.",
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
    series("timer_shards", Value::Gauge(|timer| Some(timer.stats.shards)), "Among how many shards callers are spread."),
    series(
        "timer_longest_task_seconds",
        Value::Seconds(|timer| Some(timer.stats.longest_task)),
        "The longest that one task can have held the worker; of a batch of up to 64, all of it.",
    ),
    series(
        "timer_max_pending_timeouts",
        Value::Gauge(|timer| timer.max_pending),
        "How many timeouts may be pending at once, where that is bounded.",
    ),
    series(
        "timer_longest_delay_seconds",
        Value::Seconds(|timer| timer.longest_delay),
        "The longest delay that the timer is given, where that was told.",
    ),
    series(
        "timer_tick_lag_seconds",
        Value::Lag(|timer| &timer.stats.tick_lag),
        "How late a turn began after the tick that it was to handle.",
    ),
    series(
        "timer_timeout_lag_seconds",
        Value::Lag(|timer| &timer.stats.timeout_lag),
        "How late a task was handed over after its deadline.",
    ),
    series(
        "timer_start_lag_seconds",
        Value::Lag(|timer| &timer.stats.start_lag),
        "How late a task started after its deadline; in an executor's queue it waits longer than in the timer.",
    ),
];
