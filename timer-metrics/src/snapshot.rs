//! The state of one timer at the moment when an exporter asked for it.

use std::time::Duration;
use timer_core::{LateRun, TimerStats, Timetable};

/// A snapshot of one timer: its label, its counts, its bound and the facts stated by its
/// [`Watch`](crate::Watch).
///
/// # Examples
///
/// ```
/// use timer_metrics::TimerMetrics;
///
/// let timer = timer_core::Timer::new();
/// for timer in TimerMetrics::from_iter([&timer]).snapshots() {
///     println!("{}: {} pending", timer.label, timer.stats.pending);
/// }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TimerSnapshot {
    /// The number of this timer among all that were ever watched, from 1. It tells a new timer from
    /// an earlier one with the same label.
    pub number: u64,
    /// The value of the label `timer`, unique within the set.
    pub label: String,
    /// The timer's own counts.
    pub stats: TimerStats,
    /// The worst runs of the last minute.
    pub worst: Vec<LateRun>,
    /// The timeouts to come, see [`TimerMetrics::snapshots`](crate::TimerMetrics::snapshots).
    pub timetable: Timetable,
    /// The bound on pending timeouts. This is the value given to
    /// [`Watch::max_pending_timeouts`](crate::Watch::max_pending_timeouts), else the timer's own
    /// bound, or `None` if it has neither.
    pub max_pending: Option<u64>,
    /// The longest delay in use, if it was stated.
    pub longest_delay: Option<Duration>,
}
