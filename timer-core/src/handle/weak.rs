//! The handle that does not keep its timer running.

use super::timer::Timer;
use crate::engine::Engine;
use crate::sync::Weak;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// A handle that does not keep its timer running, made by [`Timer::downgrade`]. It suits exporters,
/// registries, and tasks that may outlive the users of the timer.
///
/// # Examples
///
/// ```
/// use timer_core::Timer;
///
/// let timer = Timer::new();
/// let watched = timer.downgrade();
/// assert!(watched.upgrade().is_some());
/// drop(timer);
/// assert!(watched.upgrade().is_none());
/// ```
#[derive(Clone)]
pub struct WeakTimer {
    pub(super) engine: Weak<Engine>,
}

impl WeakTimer {
    /// Returns a full handle while at least one other full handle exists. Returns `None` once the
    /// last one was dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// let timer = timer_core::Timer::new();
    /// let pending = timer.downgrade().upgrade().map(|timer| timer.pending_timeouts());
    /// assert_eq!(pending, Some(0));
    /// ```
    pub fn upgrade(&self) -> Option<Timer> {
        self.engine.upgrade().and_then(Timer::try_from_engine)
    }
}

// For the same reason as in `Timer`.
impl UnwindSafe for WeakTimer {}
impl RefUnwindSafe for WeakTimer {}

impl fmt::Debug for WeakTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakTimer").field("timer", &self.upgrade()).finish()
    }
}
