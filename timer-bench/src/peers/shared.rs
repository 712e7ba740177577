//! The common part of the two timers made of the standard library. An ordered collection is behind
//! a mutex, and a thread waits at a condition variable until its first entry is due.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

/// The greatest number of tasks that are removed under one lock.
const BATCH: usize = 1024;

/// A collection of tasks in the order of their deadlines.
pub(super) trait Ordered: Default + Send + 'static {
    /// A task that was removed.
    type Due: Send;

    /// Returns the earliest deadline.
    fn first(&self) -> Option<Instant>;

    /// Removes the earliest task. Returns `None` if it was cancelled before.
    fn take_first(&mut self) -> Option<Self::Due>;

    /// Runs a task that was removed.
    fn run(due: Self::Due);
}

struct Inner<C> {
    tasks: Mutex<(C, bool)>,
    changed: Condvar,
}

/// The collection with its lock and its thread.
pub(super) struct Shared<C>(Arc<Inner<C>>);

impl<C> Clone for Shared<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C: Ordered> Shared<C> {
    /// Starts the thread.
    pub(super) fn start() -> Self {
        let inner = Arc::new(Inner { tasks: Mutex::default(), changed: Condvar::new() });
        let shared = inner.clone();
        thread::spawn(move || shared.serve());
        Self(inner)
    }

    /// Adds a task that is due at `deadline`, and wakes the thread if it is the first.
    #[inline]
    pub(super) fn add<R>(&self, deadline: Instant, add: impl FnOnce(&mut C) -> R) -> R {
        self.add_under(self.0.lock(), deadline, add)
    }

    /// Adds a task like `add`. Returns `None` if the timer was stopped.
    pub(super) fn add_unless_stopped<R>(&self, deadline: Instant, add: impl FnOnce(&mut C) -> R) -> Option<R> {
        let tasks = self.0.lock();
        (!tasks.1).then(|| self.add_under(tasks, deadline, add))
    }

    #[inline]
    fn add_under<R>(
        &self,
        mut tasks: MutexGuard<'_, (C, bool)>,
        deadline: Instant,
        add: impl FnOnce(&mut C) -> R,
    ) -> R {
        let earlier = tasks.0.first().is_none_or(|first| deadline < first);
        let result = add(&mut tasks.0);
        drop(tasks);
        if earlier {
            self.0.changed.notify_one();
        }
        result
    }

    /// Removes a task. The thread may wake up too early for it and then sleeps again.
    #[inline]
    pub(super) fn take<R>(&self, take: impl FnOnce(&mut C) -> R) -> R {
        take(&mut self.0.lock().0)
    }

    /// Reads the collection.
    pub(super) fn read<R>(&self, read: impl FnOnce(&C) -> R) -> R {
        read(&self.0.lock().0)
    }

    /// Stops the thread and frees the collection.
    pub(super) fn stop(&self) {
        drop(self.take_all_and_stop());
    }

    /// Stops the thread and returns the collection.
    pub(super) fn take_all_and_stop(&self) -> C {
        let mut tasks = self.0.lock();
        tasks.1 = true;
        let held = std::mem::take(&mut tasks.0);
        drop(tasks);
        self.0.changed.notify_one();
        held
    }
}

impl<C: Ordered> Inner<C> {
    fn lock(&self) -> MutexGuard<'_, (C, bool)> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self) {
        let mut due = Vec::with_capacity(BATCH);
        let mut tasks = self.lock();
        while !tasks.1 {
            let now = Instant::now();
            while due.len() < BATCH && tasks.0.first().is_some_and(|first| first <= now) {
                due.extend(tasks.0.take_first());
            }
            if due.is_empty() {
                tasks = match tasks.0.first() {
                    None => self.changed.wait(tasks).unwrap_or_else(PoisonError::into_inner),
                    Some(first) => {
                        let until = first.saturating_duration_since(now);
                        let woken = self.changed.wait_timeout(tasks, until);
                        woken.unwrap_or_else(PoisonError::into_inner).0
                    }
                };
            } else {
                drop(tasks);
                due.drain(..).for_each(C::run);
                tasks = self.lock();
            }
        }
    }
}
