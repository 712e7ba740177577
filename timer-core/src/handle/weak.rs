//! A handle that keeps nothing alive.

use super::timer::Timer;
use crate::sync::Weak;
use crate::timer::Engine;
use std::fmt;

/// A handle to a timer that does not keep it running: for exporters, registries and tasks that outlive its users.
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
    engine: Weak<Engine>,
}

impl WeakTimer {
    pub(super) fn new(engine: Weak<Engine>) -> Self {
        Self { engine }
    }

    /// A full handle, as long as there is another one; `None` once the last was dropped.
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

impl fmt::Debug for WeakTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakTimer").field("timer", &self.upgrade()).finish()
    }
}
