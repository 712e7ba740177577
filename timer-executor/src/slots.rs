//! How many tasks a pool has accepted that have not finished: its bound, and the wait until there are none.
//!
//! Promises: never more than the bound; a wait ends at a moment, after it began, at which there was no task, and does not
//! miss one; what finished tasks did has happened before such a wait returns. A wait by a thread that runs a job of the
//! pool would wait for itself: it is refused. Absent: the tasks, and the pool; they only take places and release them.
//! (The pool's own wait reads two counters in turn: it may miss a task that its predecessor handed over.)

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// How many accepted tasks have not finished; never more than `max`.
#[derive(Debug)]
pub(crate) struct Slots {
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
    /// The slots of the pool that this thread belongs to, as an address; 0 on all other threads.
    static MINE: Cell<usize> = const { Cell::new(0) };
}

impl Slots {
    pub(crate) fn new(max: usize) -> Self {
        Self { taken: AtomicUsize::new(0), max, idle: Mutex::default(), was_idle: Condvar::new() }
    }

    /// Takes as many places as are free, up to `wanted`; says how many.
    pub(crate) fn reserve(&self, wanted: usize) -> usize {
        let mut granted = 0;
        // ORDERING: Acquire pairs with the Release in `release`: what a finished task did has happened before the task that
        // gets its place is accepted. Relaxed on failure, nothing is taken then.
        let _ = self.taken.fetch_update(Ordering::Acquire, Ordering::Relaxed, |taken| {
            granted = wanted.min(self.max - taken);
            (granted > 0).then_some(taken + granted)
        });
        granted
    }

    pub(crate) fn release(&self) {
        // ORDERING: Release pairs with the Acquire in `reserve` and in `is_idle`.
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
        // ORDERING: Acquire pairs with the Release of every `release` before: all of them are in one chain of
        // read-modify-writes.
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

    /// Runs a job of the pool on one of its threads. A thread of a pool runs jobs of that pool only, one at a time.
    pub(crate) fn run_job(&self, job: impl FnOnce()) {
        MINE.set(self.address());
        job();
        MINE.set(0);
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        // Nothing in here panics with the lock held, so what a poisoned one guards is as good as any.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn places_taken_at_the_same_time_never_exceed_the_bound() {
        let slots = Slots::new(5);
        let in_use = AtomicUsize::new(0);
        let together = Barrier::new(4);
        thread::scope(|scope| {
            for wanted in [1, 2, 3, 4] {
                let (slots, in_use, together) = (&slots, &in_use, &together);
                scope.spawn(move || {
                    together.wait();
                    for _ in 0..200_000 {
                        let granted = slots.reserve(wanted);
                        // ORDERING: Relaxed, `slots` orders both against those who hold the places before and after.
                        let others = in_use.fetch_add(granted, Ordering::Relaxed);
                        assert!(granted <= wanted && others + granted <= 5, "{others} + {granted}");
                        // ORDERING: as above.
                        in_use.fetch_sub(granted, Ordering::Relaxed);
                        (0..granted).for_each(|_| slots.release());
                    }
                });
            }
        });
        assert_eq!(slots.reserve(9), 5);
        assert_eq!(slots.reserve(1), 0);
    }

    #[test]
    fn a_wait_misses_no_idle_moment() {
        let slots = Slots::new(usize::MAX);
        thread::scope(|scope| {
            for _ in 0..20_000 {
                assert_eq!(slots.reserve(2), 2);
                let other = scope.spawn(|| (0..2).for_each(|_| slots.release()));
                assert!(slots.wait_idle());
                assert!(slots.is_idle());
                other.join().unwrap();
            }
        });
    }

    #[test]
    fn an_idle_moment_that_is_over_wakes_no_waiter() {
        let slots = Slots::new(1);
        slots.reserve(1);
        slots.lock().waiters += 1;
        slots.tell_waiters(); // late: the task that it is about has a successor
        assert_eq!(slots.lock().moments, 0);
        slots.release();
        assert_eq!(slots.lock().moments, 1);
    }

    #[test]
    fn a_job_cannot_wait_for_itself() {
        let [slots, others] = [(); 2].map(|()| Slots::new(1));
        slots.reserve(1);
        slots.run_job(|| {
            assert!(!slots.wait_idle());
            assert!(others.wait_idle());
        });
        slots.release();
        assert!(slots.wait_idle());
    }
}
