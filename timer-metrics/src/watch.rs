//! Settings for the export of a timer, and facts that cannot be read from it.

use std::time::Duration;

/// The settings under which a timer is exported, such as its label and facts that alerts need.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::Timer;
/// use timer_metrics::{TimerMetrics, Watch};
///
/// let timer = Timer::new();
/// let metrics = TimerMetrics::new();
/// metrics.watch_with(&timer, Watch::new().label("rpc").longest_delay(Duration::from_secs(30)));
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "these settings do nothing until they are passed to `watch_with`"]
pub struct Watch {
    pub(crate) label: Option<String>,
    pub(crate) max_pending: Option<u64>,
    pub(crate) longest_delay: Option<Duration>,
}

impl Watch {
    /// Creates the default settings. The label is the timer's name, the bound is the timer's own,
    /// and no longest delay is stated.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_metrics::{TimerMetrics, Watch};
    /// let timer = timer_core::Timer::new();
    /// assert_eq!(TimerMetrics::new().watch_with(&timer, Watch::new()), "timer");
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of the label `timer`, instead of the timer's name. Any text is allowed,
    /// because the exporters escape it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_metrics::{TimerMetrics, Watch};
    /// let timer = timer_core::Timer::new();
    /// assert_eq!(TimerMetrics::new().watch_with(&timer, Watch::new().label("leases")), "leases");
    /// ```
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Sets the bound to export as `timer_max_pending_timeouts`, instead of the timer's own. Use
    /// this for a timer that is bounded elsewhere, for example by a semaphore or by the number of
    /// connections. Zero means that the timer has no bound, and the alert leaves it out. The
    /// setting is only exported and bounds nothing.
    ///
    /// The bound of a timer built with one is exported without this call.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_metrics::{TimerMetrics, Watch};
    /// let timer = timer_core::Timer::builder().max_pending_timeouts(500).build()?;
    /// let metrics = TimerMetrics::from_iter([&timer]);
    /// metrics.watch_with(&timer, Watch::new().label("guarded").max_pending_timeouts(200));
    /// let bounds: Vec<Option<u64>> = metrics.snapshots().into_iter().map(|timer| timer.max_pending).collect();
    /// assert_eq!(bounds, [Some(500), Some(200)]);
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn max_pending_timeouts(mut self, max: usize) -> Self {
        self.max_pending = Some(max as u64);
        self
    }

    /// States the longest delay or period that the timer is ever given, exported as
    /// `timer_longest_delay_seconds`.
    ///
    /// With it an alert can tell a stuck worker from one that has nothing to do yet. If a timeout
    /// has been pending for longer than this and the worker took no turn in that time, the timeout
    /// is overdue.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_metrics::{TimerMetrics, Watch};
    /// let timer = timer_core::Timer::new();
    /// let metrics = TimerMetrics::new();
    /// metrics.watch_with(&timer, Watch::new().longest_delay(Duration::from_secs(30)));
    /// assert_eq!(metrics.snapshots()[0].longest_delay, Some(Duration::from_secs(30)));
    /// ```
    pub fn longest_delay(mut self, delay: Duration) -> Self {
        self.longest_delay = Some(delay);
        self
    }
}
