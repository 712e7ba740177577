//! The table of series of timers.

use crate::buckets::{DUE_BOUNDS, LAG_BUCKETS};
use crate::series::{BOUND, Exported, Kind, Labeled, Sample, Series, TimerSet, by_cause, single};
use crate::snapshot::TimerSnapshot;
use crate::timer_metrics::TimerMetrics;
use std::time::Duration;
use timer_core::LagSnapshot;

/// The function that reads the values of a series.
pub(crate) enum Value {
    Counter(fn(&TimerSnapshot) -> u64),
    /// A gauge that is left out if it has no value.
    Gauge(fn(&TimerSnapshot) -> Option<u64>),
    /// A gauge in seconds, as above.
    Seconds(fn(&TimerSnapshot) -> Option<Duration>),
    /// The lateness, one number for each cause.
    Causes,
    /// The histograms of late runs for each cause.
    LateRuns,
    /// The numbers of timeouts that are due within each of some bounds, and of all.
    Due,
    Lag(fn(&TimerSnapshot) -> &LagSnapshot),
}

impl TimerSet for TimerMetrics {
    type Timer = TimerSnapshot;

    fn timers(&self) -> Vec<TimerSnapshot> {
        self.snapshots()
    }
}

impl Exported for TimerSnapshot {
    type Value = Value;

    const SERIES: &'static [Series<Self>] = SERIES;

    fn label(&self) -> &str {
        &self.label
    }

    fn number(&self) -> u64 {
        self.number
    }

    fn kind(value: &Value) -> Kind {
        match value {
            Value::Counter(_) => Kind::Counter,
            Value::Gauge(_) | Value::Due => Kind::Gauge,
            Value::Seconds(_) => Kind::TimeGauge,
            Value::Causes => Kind::TimeCounter,
            Value::LateRuns => Kind::LateRuns,
            Value::Lag(_) => Kind::Histogram,
        }
    }

    fn samples(&self, value: &Value) -> Vec<Labeled<'_>> {
        match value {
            Value::Counter(get) => single(Sample::Counter(get(self))),
            Value::Gauge(get) => single(get(self).map(Sample::Gauge)),
            Value::Seconds(get) => single(get(self).map(Sample::TimeGauge)),
            Value::Causes => by_cause(|cause| Sample::TimeCounter(self.stats.lateness.part(cause))),
            Value::LateRuns => by_cause(|cause| Sample::LateRuns(&self.stats.late_runs, cause)),
            Value::Due => {
                let due = |bound: Duration| (format!("{:?}", bound.as_secs_f64()), self.timetable.due_within(bound));
                // The timetable may be older.
                let all = ("+Inf".to_owned(), self.stats.pending.max(self.timetable.waiting()));
                let due = DUE_BOUNDS.into_iter().map(due).chain([all]);
                due.map(|(bound, count)| Labeled { labels: vec![(BOUND, bound.into())], value: Sample::Gauge(count) })
                    .collect()
            }
            Value::Lag(get) => single(Sample::Histogram(get(self), &LAG_BUCKETS)),
        }
    }
}

const fn series(name: &'static str, value: Value, help: &'static str) -> Series<TimerSnapshot> {
    Series { name, help, value }
}

const SERIES: &[Series<TimerSnapshot>] = &[
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
        Value::Causes,
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
