//! What is known about a timer and cannot be read from it.

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
/// let timer = Timer::builder().name("rpc").max_pending_timeouts(10_000).build()?;
/// let metrics = TimerMetrics::new();
/// metrics.watch_with(&timer, Watch::new().max_pending_timeouts(10_000).longest_delay(Duration::from_secs(30)));
/// # Ok::<(), timer_core::BuildError>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "it says how to watch a timer, and watches none"]
pub struct Watch {
    pub(crate) label: Option<String>,
    pub(crate) max_pending: Option<u64>,
    pub(crate) longest_delay: Option<Duration>,
}

impl Watch {
    /// The timer's own name as its label, no bound, no longest delay.
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

    /// The bound that the timer was built with, exported as `timer_max_pending_timeouts`: an alert can then tell how near
    /// `timer_pending_timeouts` is to it. It only reports; it bounds nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_metrics::{TimerMetrics, Watch};
    /// let timer = timer_core::Timer::builder().max_pending_timeouts(500).build()?;
    /// let metrics = TimerMetrics::new();
    /// metrics.watch_with(&timer, Watch::new().max_pending_timeouts(500));
    /// assert_eq!(metrics.snapshots()[0].max_pending, Some(500));
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
