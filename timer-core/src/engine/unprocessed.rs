//! The timeouts that `stop` hands back.

use crate::clock;
use crate::entry::{TaskRight, Timeout};
use crate::sync::Arc;
use crate::timer_context::TimerContext;
use std::fmt;
use std::time::Instant;

/// A timeout that was pending when its timer was stopped.
///
/// Its [`Timeout`] is cancelled. Call [`run`](Self::run) to run the task on this thread. Dropping
/// the value calls [`TimerTask::cancelled`](crate::TimerTask::cancelled) and drops the task on the
/// dropping thread. A panic in that is caught and counted.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::Timer;
///
/// let timer = Timer::new();
/// timer.new_timeout(Duration::from_secs(3600), |_| println!("flushed on the way out"))?;
/// for left in timer.stop()? {
///     left.run();
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping it drops the task unrun"]
pub struct Unprocessed {
    /// `None` after the task was run or dropped.
    right: Option<TaskRight<Timeout>>,
    timeout: Timeout,
    context: Arc<TimerContext>,
}

impl Unprocessed {
    /// Wraps an entry that `stop` has ended.
    pub(super) fn new(right: TaskRight<Timeout>, context: Arc<TimerContext>) -> Self {
        let timeout = right.timeout().clone();
        Self { right: Some(right), timeout, context }
    }

    /// Returns the instant at which the task would have run.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let timer = Timer::new();
    /// let timeout = timer.new_timeout(Duration::from_secs(3600), |_| {})?;
    /// let left = timer.stop()?;
    /// assert_eq!(left[0].deadline(), timeout.deadline());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn deadline(&self) -> Instant {
        clock::instant(self.timeout.state().deadline().nanos())
    }

    /// Returns the handle of the cancelled timeout.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let timer = Timer::new();
    /// timer.new_timeout(Duration::from_secs(3600), |_| {})?;
    /// assert!(timer.stop()?.iter().all(|left| left.timeout().is_cancelled()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn timeout(&self) -> &Timeout {
        &self.timeout
    }

    /// Runs the task on this thread. A periodic task runs once and is dropped.
    ///
    /// # Panics
    ///
    /// Panics only if the task panics.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, driver) = Timer::builder().build_manual()?;
    /// timer.new_timeout(Duration::from_secs(3600), |_| println!("runs after all"))?;
    /// driver.stop().into_iter().for_each(|left| left.run());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run(mut self) {
        if let Some((right, _)) = self.right.take().and_then(TaskRight::run) {
            right.cancelled();
        }
    }
}

impl Drop for Unprocessed {
    fn drop(&mut self) {
        if let Some(right) = self.right.take() {
            self.context.contain(|| right.cancelled());
        }
    }
}

impl fmt::Debug for Unprocessed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unprocessed").field("deadline", &self.deadline()).finish_non_exhaustive()
    }
}

/// The timeouts and tasks that [`Timer::stop_and_wait`](crate::Timer::stop_and_wait) and
/// [`Timer::drain`](crate::Timer::drain) leave.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::Timer;
///
/// let timer = Timer::new();
/// timer.new_timeout(Duration::from_secs(3600), |_| {})?;
/// let report = timer.stop_and_wait(Duration::from_secs(1))?;
/// assert_eq!((report.unprocessed.len(), report.in_flight), (1, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping it drops the tasks unrun"]
#[non_exhaustive]
pub struct StopReport {
    /// The timeouts that were pending and were not in the executor, and the tasks that the executor
    /// has dropped without running them.
    pub unprocessed: Vec<Unprocessed>,
    /// The number of tasks that were still queued or running at the limit. It is 0 if all have
    /// ended, and at least 1 if the worker may have timeouts that it has not decided.
    pub in_flight: usize,
}
