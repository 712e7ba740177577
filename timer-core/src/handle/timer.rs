//! The handle of a timer.

use crate::engine::Engine;
use crate::sync::Arc;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// A handle to a timer for millions of timeouts. Clones are cheap and refer to the same timer.
///
/// The worker thread starts with the first timeout, or when [`start`](Self::start) is called. It
/// ends when the timer is [stopped](Self::stop) or its last handle is dropped, and it never keeps
/// the process alive. A child process has no worker after a `fork` and must build a new timer.
///
/// # Traps
///
/// - `Timer::new().new_timeout(..)` drops the timer at the end of the statement, which cancels the
///   timeout.
/// - A task that captures a `Timer` keeps the timer alive. Use
///   [`Timeout::timer`](crate::Timeout::timer) or a [`WeakTimer`](crate::WeakTimer) in the task.
///
/// # Cost
///
/// Scheduling takes O(1) time. If the shard of the caller's CPU is locked, the caller leaves a
/// request and returns. A thread may leave 8 requests per millisecond. After that it waits for the
/// lock. If another caller waits for it already, the thread leaves a request nonetheless and yields
/// its CPU.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use timer_core::Timer;
///
/// let (sender, fired) = mpsc::channel();
/// let timer = Timer::new();
/// timer.new_timeout(Duration::from_millis(2), move |_| sender.send("due").unwrap())?;
/// assert_eq!(fired.recv()?, "due");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "HashedWheelTimer")]
#[doc(alias = "SystemTimer")]
#[doc(alias = "ScheduledExecutorService")]
pub struct Timer {
    pub(crate) engine: Arc<Engine>,
}

impl Timer {
    /// Returns one more handle. Returns `None` if the last handle is gone, even though the worker
    /// may still keep the engine alive.
    pub(super) fn try_from_engine(engine: Arc<Engine>) -> Option<Timer> {
        engine.try_ref_inc().then(|| Self { engine })
    }
}

// The timer catches every panic of user code before it can reach the timer's own state.
impl UnwindSafe for Timer {}
impl RefUnwindSafe for Timer {}

impl Clone for Timer {
    fn clone(&self) -> Self {
        self.engine.ref_inc();
        Self { engine: self.engine.clone() }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if self.engine.ref_dec() && !self.engine.is_driven {
            self.engine.abandon();
        }
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer")
            .field("name", &self.name())
            .field("pending", &self.pending_timeouts())
            .field("stopped", &self.is_stopped())
            .field("shards", &self.engine.shards().len())
            .finish_non_exhaustive()
    }
}
