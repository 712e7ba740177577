//! How many tasks a pool has accepted that have not finished: its bound, and the wait until there
//! are none.
//!
//! Promises: never more than the bound; a wait ends at a moment, after it began, at which there was
//! no task, and surely when there stay none; what finished tasks did has happened before such a
//! wait returns. A wait by a thread that runs a job of the pool would wait for itself: it is
//! refused. Absent: the tasks, and the pool; those acquire permits and release them. (The pool's
//! own wait reads two counters in turn: it may miss a task that its predecessor handed over.)

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// How many accepted tasks have not finished; never more than `max`.
#[derive(Debug)]
pub(crate) struct Permits {
    taken: AtomicUsize,
    max: usize,
    idle: Mutex<Idle>,
    was_idle: Condvar,
}

#[derive(Debug, Default)]
struct Idle {
    waiters: usize,
    /// How often the pool was seen without a task while a thread waited for that.
    moments: u64,
}

thread_local! {
    /// The address of the `Permits` of the pool whose job this thread runs; 0 if it runs none.
    static MINE: Cell<usize> = const { Cell::new(0) };
}

impl Permits {
    pub(crate) fn new(max: usize) -> Self {
        Self { taken: AtomicUsize::new(0), max, idle: Mutex::default(), was_idle: Condvar::new() }
    }

    /// Takes as many permits as are free, up to `wanted`; says how many.
    pub(crate) fn try_acquire(&self, wanted: usize) -> usize {
        let mut granted = 0;
        // ORDERING: Acquire pairs with the Release in `release`: what a finished task did has
        // happened before the task that gets its permit is accepted. Relaxed on failure, nothing is
        // taken then.
        let _ = self.taken.fetch_update(Ordering::Acquire, Ordering::Relaxed, |taken| {
            granted = wanted.min(self.max - taken);
            (granted > 0).then_some(taken + granted)
        });
        granted
    }

    pub(crate) fn release(&self) {
        // ORDERING: Release pairs with the Acquire in `try_acquire` and in `is_idle`.
        if self.taken.fetch_sub(1, Ordering::Release) == 1 {
            self.tell_waiters();
        }
    }

    /// A waiter that saw a task under the lock is counted before this gets the lock: it is told.
    fn tell_waiters(&self) {
        let mut idle = self.lock();
        // Looked at again: a task may have come since, and a thread that waits for it.
        if idle.waiters > 0 && self.is_idle() {
            idle.moments += 1;
            self.was_idle.notify_all();
        }
    }

    fn is_idle(&self) -> bool {
        // ORDERING: Acquire pairs with the Release of every `release` before: all of them are in
        // one chain of read-modify-writes.
        self.taken.load(Ordering::Acquire) == 0
    }

    /// Returns `true` when there was no task; `false`, at once, on a thread that [`run_job`](Self::run_job) is on.
    #[must_use]
    pub(crate) fn wait_idle(&self) -> bool {
        if MINE.get() == self.address() {
            return false;
        }
        let mut idle = self.lock();
        if !self.is_idle() {
            let before = idle.moments;
            idle.waiters += 1;
            while idle.moments == before {
                idle = self.was_idle.wait(idle).unwrap_or_else(PoisonError::into_inner);
            }
            idle.waiters -= 1;
        }
        true
    }

    /// Runs a job of the pool on one of its threads. A thread of a pool runs jobs of that pool
    /// only, one at a time.
    pub(crate) fn run_job(&self, job: impl FnOnce()) {
        MINE.set(self.address());
        job();
        MINE.set(0);
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        // Nothing in here panics with the lock held, so what a poisoned one guards is as good as
        // any.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn permits_in_use_never_exceed_the_bound() {
        let permits = Permits::new(5);
        let in_use = AtomicUsize::new(0);
        let together = Barrier::new(4);
        thread::scope(|scope| {
            for wanted in [1, 2, 3, 4] {
                let (permits, in_use, together) = (&permits, &in_use, &together);
                scope.spawn(move || {
                    together.wait();
                    for _ in 0..200_000 {
                        let granted = permits.try_acquire(wanted);
                        // ORDERING: Relaxed, `permits` orders both against the threads before and
                        // after with the same permits.
                        let others = in_use.fetch_add(granted, Ordering::Relaxed);
                        assert!(granted <= wanted && others + granted <= 5, "{others} + {granted}");
                        // ORDERING: as above.
                        in_use.fetch_sub(granted, Ordering::Relaxed);
                        (0..granted).for_each(|_| permits.release());
                    }
                });
            }
        });
        assert_eq!(permits.try_acquire(9), 5);
        assert_eq!(permits.try_acquire(1), 0);
    }

    #[test]
    fn a_wait_ends_when_all_permits_are_back() {
        let permits = Permits::new(usize::MAX);
        thread::scope(|scope| {
            for _ in 0..5_000 {
                assert_eq!(permits.try_acquire(2), 2);
                let other = scope.spawn(|| (0..2).for_each(|_| permits.release()));
                assert!(permits.wait_idle());
                assert!(permits.is_idle());
                other.join().unwrap();
            }
        });
    }

    #[test]
    fn an_idle_moment_that_is_over_wakes_no_waiter() {
        let permits = Permits::new(1);
        permits.try_acquire(1);
        permits.lock().waiters += 1;
        permits.tell_waiters(); // late: the task that it is about has a successor
        assert_eq!(permits.lock().moments, 0);
        permits.release();
        assert_eq!(permits.lock().moments, 1);
    }

    #[test]
    fn a_job_cannot_wait_for_itself() {
        let [permits, others] = [(); 2].map(|()| Permits::new(1));
        permits.try_acquire(1);
        permits.run_job(|| {
            assert!(!permits.wait_idle());
            assert!(others.wait_idle());
        });
        permits.release();
        assert!(permits.wait_idle());
    }
}
