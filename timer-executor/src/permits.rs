//! The tasks that a pool has accepted and not finished: their bound, and the wait until none is
//! left.
//!
//! - The number of tasks never exceeds the bound.
//! - A wait ends only after a moment since its start at which the pool had no task. It is certain
//!   to end if the pool stays without tasks. All effects of the finished tasks have happened before
//!   the wait returns.
//! - A thread that runs a job of the pool may not wait, because it would wait for itself.
//!
//! The pool and its tasks are in other modules, which acquire and release the permits. The wait of
//! the `threadpool` crate reads two counters one after the other, so it can miss a task that its
//! predecessor handed over, and it is not used here.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The number of accepted tasks that have not finished, which never exceeds `max`.
#[derive(Debug)]
pub(crate) struct PermitPool {
    taken: AtomicUsize,
    max: usize,
    idle: Mutex<Idle>,
    was_idle: Condvar,
}

#[derive(Debug, Default)]
struct Idle {
    waiters: usize,
    /// The number of times that the pool was seen without a task while a thread waited for that.
    moments: u64,
}

thread_local! {
    /// The address of the `PermitPool` of the pool whose job this thread runs, or 0 if it runs
    /// none.
    static CURRENT_POOL: Cell<usize> = const { Cell::new(0) };
}

impl PermitPool {
    pub(crate) fn new(max: usize) -> Self {
        Self { taken: AtomicUsize::new(0), max, idle: Mutex::default(), was_idle: Condvar::new() }
    }

    /// Takes as many permits as are free, up to `wanted`, and returns their number.
    pub(crate) fn try_acquire(&self, wanted: usize) -> usize {
        let mut granted = 0;
        // ORDERING: Acquire pairs with the Release in `release`. The effects of a finished task
        // have happened before the task that gets its permit is accepted. A failure takes nothing
        // and needs no order.
        let _ = self.taken.fetch_update(Ordering::Acquire, Ordering::Relaxed, |taken| {
            granted = wanted.min(self.max - taken);
            (granted > 0).then_some(taken + granted)
        });
        granted
    }

    pub(crate) fn release(&self) {
        // ORDERING: Release pairs with the Acquire in `try_acquire` and in `is_idle`.
        if self.taken.fetch_sub(1, Ordering::Release) == 1 {
            self.notify_waiters();
        }
    }

    /// Wakes the waiters if the pool is idle. A waiter that saw a task under the lock has counted
    /// itself before this function gets the lock, so it is not missed.
    fn notify_waiters(&self) {
        let mut idle = self.lock();
        // A task may have come since, and a thread that waits for it.
        if idle.waiters > 0 && self.is_idle() {
            idle.moments += 1;
            self.was_idle.notify_all();
        }
    }

    fn is_idle(&self) -> bool {
        // ORDERING: Acquire pairs with the Release of every earlier `release`, because all of them
        // are in one chain of read-modify-writes.
        self.taken.load(Ordering::Acquire) == 0
    }

    /// Waits until the pool has no task and returns `true`. Returns `false` at once on a thread
    /// that runs a job of this pool; see [`run_job`](Self::run_job).
    #[must_use]
    pub(crate) fn wait_idle(&self) -> bool {
        if CURRENT_POOL.get() == self.address() {
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

    /// Runs a job of the pool on one of its threads. Each thread of a pool runs jobs of that pool
    /// only, one at a time.
    pub(crate) fn run_job(&self, job: impl FnOnce()) {
        CURRENT_POOL.set(self.address());
        job();
        CURRENT_POOL.set(0);
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        // No code panics with the lock held, so the value behind a poisoned lock is sound.
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
        let permits = PermitPool::new(5);
        let in_use = AtomicUsize::new(0);
        let together = Barrier::new(4);
        thread::scope(|scope| {
            for wanted in [1, 2, 3, 4] {
                let permits = &permits;
                let in_use = &in_use;
                let together = &together;
                scope.spawn(move || {
                    together.wait();
                    for _ in 0..200_000 {
                        let granted = permits.try_acquire(wanted);
                        // ORDERING: Relaxed, because `permits` orders both counts against the
                        // threads that had the same permits before and get them after.
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
        let permits = PermitPool::new(usize::MAX);
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
    fn a_past_idle_moment_wakes_no_waiter() {
        let permits = PermitPool::new(1);
        permits.try_acquire(1);
        permits.lock().waiters += 1;
        permits.notify_waiters(); // Late, because the task it belongs to already has a successor.
        assert_eq!(permits.lock().moments, 0);
        permits.release();
        assert_eq!(permits.lock().moments, 1);
    }

    #[test]
    fn a_job_cannot_wait_for_itself() {
        let [permits, others] = [(); 2].map(|()| PermitPool::new(1));
        permits.try_acquire(1);
        permits.run_job(|| {
            assert!(!permits.wait_idle());
            assert!(others.wait_idle());
        });
        permits.release();
        assert!(permits.wait_idle());
    }
}
