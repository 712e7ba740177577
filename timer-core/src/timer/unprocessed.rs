//! What `stop` hands back.

use crate::clock;
use crate::context::Context;
use crate::entry::{Owned, Timeout};
use crate::sync::Arc;
use std::fmt;
use std::time::Instant;

/// A timeout that was pending when its timer was stopped.
///
/// Its [`Timeout`] reads as cancelled. Run its task here with [`run`](Self::run), or drop it: then
/// [`TimerTask::cancelled`](crate::TimerTask::cancelled) is called and the task is dropped, on the dropping thread; a panic
/// in that is caught and counted.
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
    /// `None` once the task was used.
    owned: Option<Owned<Timeout>>,
    timeout: Timeout,
    context: Arc<Context>,
}

impl Unprocessed {
    /// For an entry that `stop` has ended.
    pub(super) fn new(owned: Owned<Timeout>, context: Arc<Context>) -> Self {
        let timeout = owned.timeout().clone();
        Self { owned: Some(owned), timeout, context }
    }

    /// When it would have run.
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

    /// The handle that `new_timeout` gave for it; reads as cancelled.
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

    /// Runs the task now, on this thread. A periodic task runs once and is dropped.
    ///
    /// # Panics
    ///
    /// Only if the task does.
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
        if let Some(owned) = self.owned.take()
            && let Some((owned, _)) = owned.run()
        {
            owned.discard();
        }
    }
}

impl Drop for Unprocessed {
    fn drop(&mut self) {
        if let Some(owned) = self.owned.take() {
            self.context.contain(|| owned.cancelled());
        }
    }
}

impl fmt::Debug for Unprocessed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unprocessed").field("deadline", &self.deadline()).finish_non_exhaustive()
    }
}

/// What [`Timer::stop_and_wait`](crate::Timer::stop_and_wait) leaves.
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
    /// What was pending and had not been handed over, as [`Timer::stop`](crate::Timer::stop) hands it back.
    pub unprocessed: Vec<Unprocessed>,
    /// How many tasks were still queued or running when the limit came; 0: all have ended.
    pub in_flight: usize,
}
