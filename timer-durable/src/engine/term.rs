//! The term of an instance.

use crate::shutdown::Shutdown;
use crate::time::LeaseTime;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The time in which the handlers of an instance may start.
///
/// A task may wait in the queue of the executor for a long time. Once the timer is stopped, the
/// lease is over, or the keeper has become a new instance, the timeout of that task may run
/// elsewhere. The term ends at that moment, and no handler starts after it.
#[derive(Clone)]
pub(crate) struct Term {
    end: Arc<Mutex<Option<LeaseTime>>>,
    shutdown: Arc<Shutdown>,
    clock: fn() -> LeaseTime,
}

impl Term {
    /// Returns a term that ends at the instant that `end` returns.
    pub(super) fn new(shutdown: Arc<Shutdown>, end: impl FnOnce() -> Option<Instant>) -> Self {
        let term = Self { end: Arc::default(), shutdown, clock: LeaseTime::now };
        term.set_end(end);
        term
    }

    /// Sets the end to the instant that `end` returns, or to no end.
    pub(crate) fn set_end(&self, end: impl FnOnce() -> Option<Instant>) {
        let now = (self.clock)();
        let end = end().map(|end| LeaseTime::of(end, now));
        *self.lock() = end;
    }

    /// Ends the term now.
    pub(crate) fn finish(&self) {
        *self.lock() = Some((self.clock)());
    }

    /// Notes that a handler starts. Returns `false` if the term is over and it may not.
    pub(super) fn start(&self, progress: &Progress) -> bool {
        let end = self.lock();
        if self.shutdown.is_given_up() || end.is_some_and(|end| end <= (self.clock)()) {
            return false;
        }
        // Under the lock, so that nothing starts unseen after `finish`.
        // ORDERING: Relaxed, the lock orders it before a later `finish`.
        progress.started.store(true, Ordering::Relaxed);
        true
    }

    fn lock(&self) -> MutexGuard<'_, Option<LeaseTime>> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the handler of an attempt has started, and whether the store has ended the attempt.
#[derive(Default)]
pub(crate) struct Progress {
    started: AtomicBool,
    completed: AtomicBool,
}

impl Progress {
    /// Returns `true` if the handler has started. Once the term has finished, the answer stays.
    pub(super) fn has_started(&self) -> bool {
        // ORDERING: Relaxed, `finish` has taken the lock under which it was set.
        self.started.load(Ordering::Relaxed)
    }

    /// Notes that the store has ended the attempt.
    pub(super) fn complete(&self) {
        // ORDERING: Release, pairs with `has_completed`.
        self.completed.store(true, Ordering::Release);
    }

    pub(crate) fn has_completed(&self) -> bool {
        // ORDERING: Acquire, pairs with `complete`.
        self.completed.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::time::Duration;

    thread_local! {
        static NOW: Cell<Duration> = const { Cell::new(Duration::from_secs(1)) };
    }

    /// The clock goes on while the process, and with it every [`Instant`], stands still.
    #[test]
    fn nothing_starts_after_a_suspension_that_outlasts_the_lease() {
        let clock = || LeaseTime::at(NOW.get());
        let term = Term { end: Arc::default(), shutdown: Arc::default(), clock };
        let lease = Duration::from_secs(60);
        term.set_end(|| Some(Instant::now() + lease));
        NOW.set(NOW.get() + lease / 2);
        assert!(term.start(&Progress::default()));
        NOW.set(NOW.get() + lease / 2);
        assert!(!term.start(&Progress::default()));
        // A suspension before the end is known.
        term.set_end(|| {
            NOW.set(NOW.get() + lease);
            Some(Instant::now() + lease / 2)
        });
        assert!(!term.start(&Progress::default()));
    }
}
