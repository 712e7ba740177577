//! A handle that does not keep a timer alive.

use crate::timer::{DurableTimer, Inner};
use std::sync::{Arc, Weak};

impl DurableTimer {
    /// Returns a handle that does not keep the timer alive, for metrics.
    #[must_use]
    pub fn downgrade(&self) -> WeakDurableTimer {
        WeakDurableTimer { inner: Arc::downgrade(&self.inner) }
    }
}

/// A handle of a timer that does not keep it alive.
///
/// # Examples
///
/// ```
/// use timer_durable::{DurableTimer, MemoryStore};
///
/// let (timer, _driver) = DurableTimer::builder().build_manual(MemoryStore::new())?;
/// let weak = timer.downgrade();
/// assert_eq!(weak.upgrade().map(|timer| timer.stats().running), Some(0));
/// drop(timer);
/// assert!(weak.upgrade().is_none());
/// # Ok::<(), timer_durable::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct WeakDurableTimer {
    inner: Weak<Inner>,
}

impl WeakDurableTimer {
    /// Returns the timer, or `None` if it was dropped.
    #[must_use]
    pub fn upgrade(&self) -> Option<DurableTimer> {
        self.inner.upgrade().map(|inner| DurableTimer { inner })
    }
}
