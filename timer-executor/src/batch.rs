//! A batch of tasks that the threads of a pool share: no box per task, no task waits behind a slow
//! one.
//!
//! Promises: each task is run once. As long as tasks are left in the list, a runner of this batch
//! waits in the pool's queue, or is just being put there: the next thread of the pool that falls
//! idle finds it. So tasks that block hold up nothing else while one thread is free, even if two
//! runners sit on one thread's stack (rayon's work stealing does that). The tasks of a batch start
//! in its order; batches overtake each other. Nothing of a task runs while the list is locked.
//! Absent: knowledge of any pool; that is behind [`RunnerQueue`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::vec;

use crate::Task;

/// The pool's queue, as a batch sees it.
pub(crate) trait RunnerQueue: Send + Sync + Sized + 'static {
    /// Has `runner.run()` called on some thread of the pool, later.
    fn push(&self, runner: Runner<Self>);

    /// One task of the batch has come to its end.
    fn finished(&self) {}
}

struct Batch<Q: RunnerQueue> {
    list: Mutex<List>,
    queue: Q,
}

struct List {
    tasks: vec::IntoIter<Task>,
    /// A runner is in the pool's queue and has not begun yet.
    runner_waits: bool,
}

/// A job for the pool: takes tasks from the shared list and runs them until there are none.
pub(crate) struct Runner<Q: RunnerQueue>(Arc<Batch<Q>>);

/// The tasks as a first runner, which the caller has to put into the queue of the pool.
pub(crate) fn share<Q: RunnerQueue>(tasks: Vec<Task>, queue: Q) -> Runner<Q> {
    let list = Mutex::new(List { tasks: tasks.into_iter(), runner_waits: true });
    Runner(Arc::new(Batch { list, queue }))
}

impl<Q: RunnerQueue> Runner<Q> {
    pub(crate) fn run(self) {
        let batch = &self.0;
        batch.lock().runner_waits = false;
        while let Some((task, another)) = batch.next() {
            if another {
                batch.queue.push(Runner(Arc::clone(batch)));
            }
            task.run();
            batch.queue.finished();
        }
    }
}

impl<Q: RunnerQueue> Batch<Q> {
    /// The next task, and whether the caller has to queue another runner before it runs this task.
    fn next(&self) -> Option<(Task, bool)> {
        let mut list = self.lock();
        let task = list.tasks.next()?;
        let another = !list.runner_waits && list.tasks.len() > 0;
        list.runner_waits |= another;
        Some((task, another))
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        // Nothing in here panics with the lock held, so a poisoned list is as good as any.
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Only for a pool that drops its jobs: the tasks end all the same, as abandoned ones.
impl<Q: RunnerQueue> Drop for Batch<Q> {
    fn drop(&mut self) {
        let list = self.list.get_mut().unwrap_or_else(PoisonError::into_inner);
        for task in list.tasks.by_ref() {
            drop(task);
            self.queue.finished();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // A panic in a task is caught: assertions stand outside of tasks.

    /// A pool whose queue one can look into; its jobs run when the test says so.
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

        /// Tasks that write down their number, then do `also`.
        fn tasks(&self, n: usize, also: impl Fn(&Pool, usize) + Clone + Send + 'static) -> Vec<Task> {
            let task = |i| {
                let (pool, also) = (self.clone(), also.clone());
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
        share(tasks, pool.clone()).run();
        // While the last runs no task is left, but the runner queued before is still there.
        assert_eq!(*waiting.lock().unwrap(), [1, 1, 1, 1]);
        assert!(pool.run_one());
        assert!(!pool.run_one());
        assert_eq!(pool.state().ran, [0, 1, 2, 3]);
        assert_eq!(pool.state().finished, 4);
    }

    /// What rayon does to a task that waits in a `join`: the thread takes the next job, on top of
    /// the task's stack. Here each task does it, so that all runners sit on one thread; the next
    /// one is in the queue for other threads all the same.
    #[test]
    fn a_runner_waits_even_if_all_others_sit_on_one_stack() {
        let pool = Pool::default();
        let nested = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&nested);
        let tasks = pool.tasks(5, move |pool, i| {
            let found = pool.run_one();
            seen.lock().unwrap().push((i, found));
        });
        share(tasks, pool.clone()).run();
        let innermost_first = [(4, false), (3, true), (2, true), (1, true), (0, true)];
        assert_eq!(*nested.lock().unwrap(), innermost_first);
        assert_eq!(pool.state().ran, [0, 1, 2, 3, 4]);
        assert_eq!(pool.state().finished, 5);
    }

    #[test]
    fn a_single_task_queues_no_second_runner() {
        let pool = Pool::default();
        share(pool.tasks(1, |_, _| ()), pool.clone()).run();
        assert_eq!(pool.state().finished, 1);
        assert!(pool.state().queue.is_empty());
    }

    #[test]
    fn a_pool_that_drops_its_jobs_ends_their_tasks() {
        let pool = Pool::default();
        let captured = Arc::new(());
        let inside = Arc::clone(&captured);
        let tasks = pool.tasks(5, move |_, _| assert_eq!(Arc::strong_count(&inside), 0, "ran after all"));
        drop(share(tasks, pool.clone()));
        assert_eq!(pool.state().ran, [0; 0]);
        assert_eq!(pool.state().finished, 5);
        assert_eq!(Arc::strong_count(&captured), 1);
    }
}
