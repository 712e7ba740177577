//! The methods of [`Timer`] that start, stop and observe it.

use super::timer::Timer;
use super::weak::WeakTimer;
use crate::clock;
use crate::counters::TimerStats;
use crate::error::{RejectReason, StopError};
use crate::sync::Arc;
use crate::timer::{StopReport, Unprocessed};
use crate::worker;
use std::time::{Duration, Instant};

impl Timer {
    /// Starts the worker now instead of with the first timeout. Does nothing if the timer has a
    /// worker or a driver.
    ///
    /// # Errors
    ///
    /// - [`RejectReason::Stopped`] if the timer is stopped.
    /// - [`RejectReason::ThreadRefused`] if the system refuses the worker's thread. The next call
    ///   tries again.
    ///
    /// # Examples
    ///
    /// ```
    /// let timer = timer_core::Timer::new();
    /// timer.start()?;
    /// # Ok::<(), timer_core::RejectReason>(())
    /// ```
    pub fn start(&self) -> Result<(), RejectReason> {
        if self.engine.has_started() && !self.engine.context.is_stopped() {
            return Ok(());
        }
        worker::start(&self.engine)
    }

    /// Stops: no task starts on the worker after this returns, and what has not run is handed back.
    ///
    /// Waits for the task that runs on the worker just now, if any. Tasks that were handed to a
    /// pool before are the pool's, run there if the process lives long enough
    /// ([`stop_and_wait`](Self::stop_and_wait) waits for them), and are not handed back; a periodic
    /// task that is running there ends, as cancelled, when its run does. What a pool has thrown
    /// away without running it runs here. A second call waits for the first and gets nothing.
    /// O(pending).
    ///
    /// # Errors
    ///
    /// [`StopError::OnWorker`] from a task that runs on the worker, which would wait for itself;
    /// [`StopError::Driven`] for a timer with a driver. Nothing has been stopped then.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let timer = Timer::new();
    /// timer.new_timeout(Duration::from_secs(3600), |_| {})?;
    /// assert_eq!(timer.stop()?.len(), 1);
    /// assert_eq!(timer.pending_timeouts(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "shutdown")]
    pub fn stop(&self) -> Result<Vec<Unprocessed>, StopError> {
        self.engine.stop_by_handle()
    }

    /// Stops as [`stop`](Self::stop) does, and then waits until all tasks that were handed over to
    /// the executor have run, or have been cancelled. It waits for at most `limit` in all, also
    /// after a `stop`. No task runs on the calling thread: tasks that the executor has dropped
    /// unrun are handed back. Besides the limit the call takes O(pending) time. A task that blocks
    /// the worker does not hold it up beyond the limit; what was due together with that task and
    /// has not started is cancelled then, when the worker goes on.
    ///
    /// # Errors
    ///
    /// [`StopError::InTask`] if a task of this timer is on this thread's stack;
    /// [`StopError::OnWorker`] on its worker otherwise, from an executor or a `tracing` subscriber;
    /// [`StopError::Driven`] for a timer with a driver; [`StopError::Global`] for
    /// [`Timer::global`]. Nothing has been stopped then.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    /// use timer_core::executor::ThreadPoolExecutor;
    ///
    /// let timer = Timer::builder().executor(ThreadPoolExecutor::new(2)).build()?;
    /// timer.new_timeout(Duration::ZERO, |_| println!("written"))?;
    /// let report = timer.stop_and_wait(Duration::from_secs(5))?;
    /// println!("{} not run, {} still in flight", report.unprocessed.len(), report.in_flight);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "awaitTermination")]
    pub fn stop_and_wait(&self, limit: Duration) -> Result<StopReport, StopError> {
        self.engine.stop_and_wait(limit)
    }

    /// The timer's present: of the system's monotonic clock, or virtual for a timer with a
    /// [`ManualDriver`](crate::ManualDriver).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// let before = timer.now();
    /// driver.advance(Duration::from_secs(5));
    /// assert_eq!(timer.now() - before, Duration::from_secs(5));
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn now(&self) -> Instant {
        clock::instant(self.engine.context.now())
    }

    /// How many timeouts were accepted and have not ended. Exact at quiet. A timeout ends when it
    /// is cancelled, when its task starts, or when it is handed back: what waits in an executor's
    /// queue is pending, what runs is not. O(shards).
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(timer_core::Timer::new().pending_timeouts(), 0);
    /// ```
    #[doc(alias = "pendingTimeouts")]
    pub fn pending_timeouts(&self) -> usize {
        self.engine.pending() as usize
    }

    /// What it has done so far, and how late. Never blocks the worker.
    ///
    /// # Examples
    ///
    /// ```
    /// let stats = timer_core::Timer::new().stats();
    /// println!("pending {}, 99 % run within {:?}", stats.pending, stats.timeout_lag.quantile(0.99));
    /// ```
    pub fn stats(&self) -> TimerStats {
        self.engine.stats()
    }

    /// A handle that does not keep the timer running.
    ///
    /// # Examples
    ///
    /// ```
    /// let timer = timer_core::Timer::new();
    /// let weak = timer.downgrade();
    /// drop(timer);
    /// assert!(weak.upgrade().is_none());
    /// ```
    pub fn downgrade(&self) -> WeakTimer {
        WeakTimer::new(Arc::downgrade(&self.engine))
    }

    /// The name it was built with.
    ///
    /// # Examples
    ///
    /// ```
    /// let timer = timer_core::Timer::builder().name("idle").build()?;
    /// assert_eq!(timer.name(), "idle");
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn name(&self) -> &str {
        &self.engine.context.name
    }
}
