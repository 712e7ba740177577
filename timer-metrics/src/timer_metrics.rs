//! The set of timers to export.
//!
//! The lock guards only the list. No lock is held while a timer is read or a handle is dropped,
//! because dropping the last handle of a timer runs user code.

use crate::kept::Kept;
use crate::snapshot::TimerSnapshot;
use crate::watch::Watch;
use crate::watched::{List, Watched};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    list: Arc<Mutex<List<Exported>>>,
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
        let (timetable, stats, worst) = (timetable.get(|| timer.timetable()), timer.stats(), timer.worst());
        drop(timer);
        let max_pending = max_pending.or(stats.max_pending.map(|max| max as u64));
        Some(TimerSnapshot { label, stats, worst, timetable, max_pending, longest_delay, number })
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
        // The guard of the lock is dropped before the handles.
        let mut handles = Vec::new();
        self.list().add(wanted, exported, |exported| exported.timer.upgrade(), &mut handles)
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
        let watched = self.list().watched.clone();
        let mut gone = Vec::new();
        let mut snapshots = Vec::with_capacity(watched.len());
        for watched in watched {
            let number = watched.number;
            match watched.snapshot() {
                Some(snapshot) => snapshots.push(snapshot),
                None => gone.push(number),
            }
        }
        self.list().remove(&gone);
        snapshots
    }

    fn list(&self) -> MutexGuard<'_, List<Exported>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
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
        let labels: Vec<String> = self.list().watched.iter().map(|watched| watched.label.clone()).collect();
        f.debug_struct("TimerMetrics").field("timers", &labels).finish()
    }
}
