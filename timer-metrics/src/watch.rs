//! What is known about a timer and cannot be read from it, or is to be exported otherwise.

use std::time::Duration;

/// How a timer is to be exported: under which label, and with which of the facts that alerts need.
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
#[must_use = "it says how to watch a timer, and watches none"]
pub struct Watch {
    pub(crate) label: Option<String>,
    pub(crate) max_pending: Option<u64>,
    pub(crate) longest_delay: Option<Duration>,
}

impl Watch {
    /// The timer's own name as its label, its own bound, no longest delay.
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

    /// The value of the label `timer`, instead of the timer's name. Any text; it is escaped where it is written.
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

    /// The bound to export as `timer_max_pending_timeouts`, instead of the timer's own: for a timer that is bounded elsewhere,
    /// by a semaphore or by the number of connections. Any number of timeouts; zero says that there is no bound, and the alert
    /// leaves such a timer out. It only reports; it bounds nothing.
    ///
    /// A bound that the timer was built with need not be told: it is exported without this call.
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

    /// The longest delay (or period) that is ever given to the timer, exported as `timer_longest_delay_seconds`.
    ///
    /// With it an alert can tell a worker that is stuck from one that has nothing to do yet: if a timeout has been pending for
    /// longer than this and the worker has not taken a turn in all that time, the timeout is overdue.
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
