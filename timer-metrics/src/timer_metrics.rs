//! The set of timers to export.

use crate::kept::Kept;
use crate::snapshot::TimerSnapshot;
use crate::watch::Watch;
use crate::watched::{Watched, Watchlist};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use timer_core::{Timer, Timetable, WeakTimer};

/// A set of timers to export. Clones share the set.
///
/// The set keeps no timer alive. After the last handle of a timer is dropped, the set leaves the
/// timer out and its label is free for another one. A timer that is watched twice is exported
/// twice.
///
/// # Examples
///
/// ```
/// use timer_core::Timer;
/// use timer_metrics::TimerMetrics;
///
/// let (rpc, leases) = (Timer::builder().name("rpc").build()?, Timer::builder().name("leases").build()?);
/// let metrics = TimerMetrics::from_iter([&rpc, &leases]);
/// drop(rpc);
/// let labels: Vec<String> = metrics.snapshots().into_iter().map(|timer| timer.label).collect();
/// assert_eq!(labels, ["leases"]);
/// # Ok::<(), timer_core::BuildError>(())
/// ```
#[derive(Clone, Default)]
pub struct TimerMetrics {
    list: Watchlist<Exported>,
}

#[derive(Clone)]
struct Exported {
    timer: WeakTimer,
    max_pending: Option<u64>,
    longest_delay: Option<Duration>,
    timetable: Arc<Kept<Timetable>>,
}

impl Watched<Exported> {
    /// Returns `None` if the timer is gone.
    fn snapshot(self) -> Option<TimerSnapshot> {
        let Self { number, label, timer: Exported { timer, max_pending, longest_delay, timetable } } = self;
        let timer = timer.upgrade()?;
        let stats = timer.stats();
        Some(TimerSnapshot {
            number,
            label,
            max_pending: max_pending.or(stats.max_pending.map(|max| max as u64)),
            stats,
            worst: timer.worst(),
            timetable: timetable.get(|| timer.timetable()),
            longest_delay,
        })
    }
}

impl TimerMetrics {
    /// Creates a set without timers.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(timer_metrics::TimerMetrics::new().snapshots().is_empty());
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `timer` to the set and returns its label. The label is the timer's name. If another
    /// living timer of the set already has that label, `-2`, `-3` and so on is appended.
    ///
    /// The cost does not depend on the number of timers in the set, and the timer itself pays
    /// nothing. In a set of more than 64 timers, the label of a dropped one is free after the next
    /// call of [`snapshots`](Self::snapshots), or when the set has doubled.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_metrics::TimerMetrics;
    /// let metrics = TimerMetrics::new();
    /// let (first, second) = (timer_core::Timer::new(), timer_core::Timer::new());
    /// assert_eq!(metrics.watch(&first), "timer");
    /// assert_eq!(metrics.watch(&second), "timer-2");
    /// ```
    pub fn watch(&self, timer: &Timer) -> String {
        self.watch_with(timer, Watch::new())
    }

    /// Adds `timer` with further settings. See [`watch`](Self::watch); a label in `watch` is made
    /// unique in the same way.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_metrics::{TimerMetrics, Watch};
    /// let timer = timer_core::Timer::new();
    /// let metrics = TimerMetrics::new();
    /// assert_eq!(metrics.watch_with(&timer, Watch::new().label("leases")), "leases");
    /// ```
    pub fn watch_with(&self, timer: &Timer, watch: Watch) -> String {
        let Watch { label, max_pending, longest_delay } = watch;
        let wanted = label.unwrap_or_else(|| timer.name().to_owned());
        let timetable = Arc::default();
        let exported = Exported { timer: timer.downgrade(), max_pending, longest_delay, timetable };
        self.list.add(wanted, exported, |exported| exported.timer.upgrade())
    }

    /// Returns a snapshot of every living timer of the set, in the order in which they were added.
    /// Custom exporters can use it. It takes some microseconds per timer and never blocks a worker.
    ///
    /// The timetable of a timer is read for at most 5 ms in a minute. Therefore it is kept for
    /// 12,000 times as long as its reading took, but not for more than two minutes. That is about a
    /// second with 10,000 timeouts and about a minute with a million.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_metrics::TimerMetrics;
    /// let timer = timer_core::Timer::new();
    /// let metrics = TimerMetrics::from_iter([&timer]);
    /// assert_eq!(metrics.snapshots()[0].stats.pending, 0);
    /// ```
    pub fn snapshots(&self) -> Vec<TimerSnapshot> {
        self.list.read(Watched::snapshot)
    }
}

impl<'a> FromIterator<&'a Timer> for TimerMetrics {
    fn from_iter<I: IntoIterator<Item = &'a Timer>>(timers: I) -> Self {
        let mut metrics = Self::new();
        metrics.extend(timers);
        metrics
    }
}

impl<'a> Extend<&'a Timer> for TimerMetrics {
    fn extend<I: IntoIterator<Item = &'a Timer>>(&mut self, timers: I) {
        timers.into_iter().for_each(|timer| drop(self.watch(timer)));
    }
}

impl fmt::Debug for TimerMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimerMetrics").field("timers", &self.list.labels()).finish()
    }
}
