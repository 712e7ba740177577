//! A batch of tasks that the threads of a pool share.
//!
//! - Each task runs once, and sharing needs no box per task and no lock.
//! - While tasks are left in the list, a runner of this batch is in the pool's queue or on its way
//!   there. The next idle thread of the pool finds it. Therefore tasks that block hold up nothing
//!   else while one thread is free, even if two runners are on one thread's stack, which rayon's
//!   work stealing can cause.
//! - The tasks of a batch start in order. Batches may overtake each other.
//!
//! A runner notes that it has begun before it takes its first task. After each task that it takes,
//! it queues another runner if tasks are left and none waits. So a thread that takes a task while
//! others are left has seen a runner that waits, or queues one.
//!
//! The module knows no pool. [`RunnerQueue`] stands for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_queue::ArrayQueue;

use crate::Task;

/// The queue of a pool, as a batch sees it.
pub(crate) trait RunnerQueue: Send + Sync + Sized + 'static {
    /// Puts `runner` into the queue. Some thread of the pool calls `runner.run()` later.
    fn push(&self, runner: Runner<Self>);

    /// Notes that a task of the batch has ended.
    fn finished(&self) {}
}

struct Batch<Q: RunnerQueue> {
    tasks: ArrayQueue<Task>,
    /// Whether a runner is in the pool's queue and has not begun yet.
    runner_waits: AtomicBool,
    queue: Q,
}

/// A job for the pool, which takes tasks from the shared list and runs them until none is left.
pub(crate) struct Runner<Q: RunnerQueue>(Arc<Batch<Q>>);

/// Wraps the tasks in a first runner, which the caller must put into the queue of the pool. There
/// must be at least one task.
pub(crate) fn share<Q: RunnerQueue>(tasks: impl ExactSizeIterator<Item = Task>, queue: Q) -> Runner<Q> {
    let list = ArrayQueue::new(tasks.len());
    for task in tasks {
        // The list has room for all of them.
        let _ = list.push(task);
    }
    Runner(Arc::new(Batch { tasks: list, runner_waits: AtomicBool::new(true), queue }))
}

impl<Q: RunnerQueue> Runner<Q> {
    pub(crate) fn run(self) {
        let batch = &self.0;
        // ORDERING: AcqRel pairs with the swap in `take`. A thread that sees this runner wait comes
        // before it, so the runner finds the tasks that the thread has left.
        batch.runner_waits.swap(false, Ordering::AcqRel);
        while let Some((task, another)) = batch.take() {
            if another {
                batch.queue.push(Runner(Arc::clone(batch)));
            }
            task.run();
            batch.queue.finished();
        }
    }
}

impl<Q: RunnerQueue> Batch<Q> {
    /// Returns the next task, and `true` if the caller must queue another runner before it runs the
    /// task.
    fn take(&self) -> Option<(Task, bool)> {
        let task = self.tasks.pop()?;
        // ORDERING: AcqRel, as in `run`.
        let another = !self.tasks.is_empty() && !self.runner_waits.swap(true, Ordering::AcqRel);
        Some((task, another))
    }
}

/// Drops the tasks that are left when a pool drops the jobs of a batch without running them.
impl<Q: RunnerQueue> Drop for Batch<Q> {
    fn drop(&mut self) {
        while let Some(task) = self.tasks.pop() {
            drop(task);
            self.queue.finished();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    // A task catches panics, so assertions are outside of tasks.

    /// A pool whose queue a test can inspect. Its jobs run when the test asks for it.
    #[derive(Clone, Default)]
    struct Pool(Arc<Mutex<State>>);

    #[derive(Default)]
    struct State {
        queue: Vec<Runner<Pool>>,
        ran: Vec<usize>,
        finished: usize,
    }

    impl Pool {
        fn state(&self) -> MutexGuard<'_, State> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        fn run_one(&self) -> bool {
            let runner = self.state().queue.pop();
            runner.map(Runner::run).is_some()
        }

        /// Returns tasks that record their number and then call `also`.
        fn tasks(&self, n: usize, also: impl Fn(&Pool, usize) + Clone + Send + 'static) -> Vec<Task> {
            let task = |i| {
                let pool = self.clone();
                let also = also.clone();
                Task::new(move || {
                    pool.state().ran.push(i);
                    also(&pool, i);
                })
            };
            (0..n).map(task).collect()
        }
    }

    impl RunnerQueue for Pool {
        fn push(&self, runner: Runner<Self>) {
            self.state().queue.push(runner);
        }

        fn finished(&self) {
            self.state().finished += 1;
        }
    }

    #[test]
    fn one_runner_waits_whenever_tasks_are_left() {
        let pool = Pool::default();
        let waiting = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&waiting);
        let tasks = pool.tasks(4, move |pool, _| seen.lock().unwrap().push(pool.state().queue.len()));
        share(tasks.into_iter(), pool.clone()).run();
        // While the last task runs no task is left, but the runner that was queued before is still
        // there.
        assert_eq!(*waiting.lock().unwrap(), [1, 1, 1, 1]);
        assert!(pool.run_one());
        assert!(!pool.run_one());
        assert_eq!(pool.state().ran, [0, 1, 2, 3]);
        assert_eq!(pool.state().finished, 4);
    }

    /// Each task takes the next job on top of its own stack, as rayon does when a task waits in a
    /// `join`. All runners are then on one thread, and the next one must still be in the queue for
    /// other threads.
    #[test]
    fn a_runner_waits_while_others_share_a_stack() {
        let pool = Pool::default();
        let nested = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&nested);
        let tasks = pool.tasks(5, move |pool, i| {
            let found = pool.run_one();
            seen.lock().unwrap().push((i, found));
        });
        share(tasks.into_iter(), pool.clone()).run();
        let innermost_first = [(4, false), (3, true), (2, true), (1, true), (0, true)];
        assert_eq!(*nested.lock().unwrap(), innermost_first);
        assert_eq!(pool.state().ran, [0, 1, 2, 3, 4]);
        assert_eq!(pool.state().finished, 5);
    }

    #[test]
    fn a_single_task_queues_no_second_runner() {
        let pool = Pool::default();
        share(pool.tasks(1, |_, _| ()).into_iter(), pool.clone()).run();
        assert_eq!(pool.state().finished, 1);
        assert!(pool.state().queue.is_empty());
    }

    #[test]
    fn dropped_jobs_end_their_tasks() {
        let pool = Pool::default();
        let captured = Arc::new(());
        let inside = Arc::clone(&captured);
        let tasks = pool.tasks(5, move |_, _| _ = &inside);
        drop(share(tasks.into_iter(), pool.clone()));
        assert_eq!(pool.state().ran, [0; 0]);
        assert_eq!(pool.state().finished, 5);
        assert_eq!(Arc::strong_count(&captured), 1);
    }
}
