//! What `stop` hands back.

use crate::timeout::Timeout;
use std::fmt;
use std::time::Instant;
use timer_executor::panics;

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
    timeout: Timeout,
}

impl Unprocessed {
    /// For an entry that the caller has withdrawn.
    pub(crate) fn new(timeout: Timeout) -> Self {
        Self { timeout }
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
        self.timeout.deadline()
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
    pub fn run(self) {
        self.timeout.entry().run_unprocessed(&self.timeout);
    }
}

impl Drop for Unprocessed {
    fn drop(&mut self) {
        let timeout = &self.timeout;
        if let Err(message) = panics::catch(|| timeout.entry().dispose(timeout)) {
            timeout.head().context().task_panicked(&message);
        }
    }
}

impl fmt::Debug for Unprocessed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unprocessed").field("deadline", &self.deadline()).finish_non_exhaustive()
    }
}
