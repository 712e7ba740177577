//! The timers that this program can take its deadlines from, behind one function.

use std::future::Future;
use std::time::Duration;

use timer_core::{TimeoutError, Timer};

/// Whose deadlines.
#[derive(Clone)]
pub(crate) enum Clock {
    /// This library's.
    Ours(Timer),
    /// The runtime's.
    Tokio,
}

impl Clock {
    /// The output of `future`, if it comes within `delay`. What does not come is dropped.
    pub(crate) async fn with_deadline<F: Future>(&self, delay: Duration, future: F) -> Result<F::Output, TimeoutError> {
        match self {
            Self::Ours(timer) => timer.timeout(delay, future).await,
            Self::Tokio => tokio::time::timeout(delay, future).await.map_err(|_| TimeoutError::Elapsed),
        }
    }

    /// Waits; not at all if the timer refuses, which the callers' deadlines tell.
    pub(crate) async fn sleep(&self, delay: Duration) {
        match self {
            Self::Ours(timer) => _ = timer.sleep(delay).await,
            Self::Tokio => tokio::time::sleep(delay).await,
        }
    }

    /// How many deadlines are pending, if the timer tells.
    pub(crate) fn pending(&self) -> Option<usize> {
        match self {
            Self::Ours(timer) => Some(timer.pending_timeouts()),
            Self::Tokio => None,
        }
    }
}
