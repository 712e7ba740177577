//! One timer as it stood when it was asked.

use std::time::Duration;
use timer_core::TimerStats;

/// What an exporter gets of one timer: its label, its counts, its bound, and what [`Watch`](crate::Watch) told about it.
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
    /// The value of the label `timer`; no two timers of one set have the same.
    pub label: String,
    /// The timer's own counts.
    pub stats: TimerStats,
    /// The bound on pending timeouts: what [`Watch::max_pending_timeouts`](crate::Watch::max_pending_timeouts) told, else the
    /// timer's own, `None` if it has none.
    pub max_pending: Option<u64>,
    /// The longest delay in use, if it was told.
    pub longest_delay: Option<Duration>,
    /// Which of all watched timers this is: another one under the same label has another number.
    #[cfg_attr(not(feature = "metrics"), allow(dead_code, reason = "only the publisher asks"))]
    pub(crate) number: u64,
}
