//! The term of an instance.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The time in which the handlers of an instance may start.
///
/// A task may wait in the queue of the executor for long. When the timer was stopped, the lease is
/// over, or the keeper has become a new instance, its timeout may run elsewhere. So the term ends
/// then, and a handler that has not started does not start.
#[derive(Clone, Default)]
pub(crate) struct Term(Arc<Mutex<Option<Instant>>>);

impl Term {
    /// Sets the end, or no end.
    pub(crate) fn set_end(&self, end: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = end;
    }

    /// Ends the term now.
    pub(crate) fn finish(&self) {
        self.set_end(Some(Instant::now()));
    }

    /// Returns `true` if no handler may start any more, unless a renewal moves the end.
    pub(crate) fn is_over(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|end| end <= Instant::now())
    }
}
