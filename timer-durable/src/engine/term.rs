//! The term of an instance.

use crate::shutdown::Shutdown;
use crate::time::LeaseTime;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};
use timer_executor::panics;

/// The time in which the handlers of an instance may start.
///
/// A task may wait in the queue of the executor for a long time. Once the timer is stopped, the
/// lease is over, or the keeper has become a new instance, the timeout of that task may run
/// elsewhere. The term ends at that moment, and no handler starts after it.
#[derive(Clone)]
pub(crate) struct Term {
    end: Arc<Mutex<Option<LeaseTime>>>,
    shutdown: Arc<Shutdown>,
}

impl Term {
    /// Returns a term that ends at the instant that `end` returns.
    pub(super) fn new(shutdown: Arc<Shutdown>, end: impl FnOnce() -> Option<Instant>) -> Self {
        let term = Self { end: Arc::default(), shutdown };
        term.set_end(end);
        term
    }

    /// Returns the term of the next instance.
    pub(super) fn next(&self, end: impl FnOnce() -> Option<Instant>) -> Self {
        Self::new(self.shutdown.clone(), end)
    }

    /// Sets the end to the instant that `end` returns, or to no end.
    pub(crate) fn set_end(&self, end: impl FnOnce() -> Option<Instant>) {
        let now = LeaseTime::now();
        let end = end().map(|end| LeaseTime::of(end, now));
        *self.lock() = end;
    }

    /// Ends the term now.
    pub(crate) fn finish(&self) {
        *self.lock() = Some(LeaseTime::now());
    }

    /// Notes that a handler starts. Returns `false` if the term is over and it may not.
    pub(super) fn start(&self, progress: &Progress) -> bool {
        let end = self.lock();
        if self.shutdown.is_given_up() || end.is_some_and(|end| end <= LeaseTime::now()) {
            return false;
        }
        // Under the lock, so that nothing starts unseen after `finish`.
        let _first = progress.started.set(Instant::now());
        true
    }

    fn lock(&self) -> MutexGuard<'_, Option<LeaseTime>> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The progress of an attempt: whether its handler has started and returned, whether the store has
/// ended it, whether a transaction of the user ends it, and whether the keeper has cut it off.
#[derive(Default)]
pub(crate) struct Progress {
    started: OnceLock<Instant>,
    completed: AtomicBool,
    returned: AtomicBool,
    cut_off: AtomicBool,
    /// The waker of an async handler that has a time limit.
    waker: Mutex<Option<Waker>>,
    in_transaction: AtomicBool,
}

impl Progress {
    /// Returns `true` if the handler has started. Once the term has finished, the answer stays.
    pub(super) fn has_started(&self) -> bool {
        self.started.get().is_some()
    }

    /// Notes that the handler has returned.
    pub(super) fn finish(&self) {
        // ORDERING: Relaxed, a look that misses it cuts off an attempt whose end is on its way.
        self.returned.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_returned(&self) -> bool {
        // ORDERING: Relaxed, as above.
        self.returned.load(Ordering::Relaxed)
    }

    /// Returns how long the handler has been running, or `None` if it has not started.
    pub(super) fn ran(&self) -> Option<Duration> {
        self.started.get().map(Instant::elapsed)
    }

    /// Tells the handler that its attempt is over, and wakes its future.
    pub(super) fn cut_off(&self) {
        // ORDERING: Release, pairs with `is_cut_off`. The lock of the waker orders it before a
        // later poll.
        self.cut_off.store(true, Ordering::Release);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            panics::contain("the waker of a handler panicked", || waker.wake());
        }
    }

    pub(crate) fn is_cut_off(&self) -> bool {
        // ORDERING: Acquire, pairs with `cut_off`.
        self.cut_off.load(Ordering::Acquire)
    }

    /// Returns `true` if the attempt is over. Otherwise its end wakes the waker.
    pub(crate) fn poll_cut_off(&self, waker: &Waker) -> bool {
        let mut slot = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if !slot.as_ref().is_some_and(|old| old.will_wake(waker)) {
            *slot = Some(waker.clone());
        }
        drop(slot);
        self.is_cut_off()
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

    /// Notes that a transaction of the user ends the attempt, if it is committed.
    pub(super) fn end_in_transaction(&self) {
        // ORDERING: Release, pairs with `is_in_transaction`.
        self.in_transaction.store(true, Ordering::Release);
    }

    pub(super) fn is_in_transaction(&self) -> bool {
        // ORDERING: Acquire, pairs with `end_in_transaction`.
        self.in_transaction.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_starts_after_a_suspension_that_outlasts_the_lease() {
        let lease = Duration::from_secs(60);
        let term = Term::new(Arc::default(), || Some(Instant::now() + lease));
        LeaseTime::suspend(lease / 2);
        assert!(term.start(&Progress::default()));
        LeaseTime::suspend(lease / 2);
        assert!(!term.start(&Progress::default()));
        // A suspension before the end is known.
        term.set_end(|| {
            LeaseTime::suspend(lease);
            Some(Instant::now() + lease / 2)
        });
        assert!(!term.start(&Progress::default()));
    }
}
