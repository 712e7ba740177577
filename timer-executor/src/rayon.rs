//! The executor that runs tasks on a rayon pool.
//!
//! A panic of a task reaches neither rayon, which would abort the process, nor the other tasks.

use ::rayon::ThreadPool;

use crate::batch::{self, Runner, RunnerQueue};
use crate::{ExecuteError, Task, TaskExecutor, panics};

/// An executor that runs each task on a rayon pool. A slow task occupies a thread of the pool and
/// delays no other task while a thread is idle.
///
/// A batch costs the caller one job, whatever its size. The threads of the pool share its tasks one
/// by one. The tasks of a batch start in order, and several batches run side by side. The queue has
/// no bound.
///
/// Dropping an executor that owns its pool does not wait. The accepted tasks still run, and then
/// the threads end.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc::channel;
/// use timer_executor::{RayonExecutor, Task, TaskExecutor};
///
/// let (sender, receiver) = channel();
/// RayonExecutor::global().execute(Task::new(move || sender.send(7).unwrap())).unwrap();
/// assert_eq!(receiver.recv().unwrap(), 7);
/// ```
#[derive(Debug)]
#[doc(alias = "ForkJoinPool")]
#[doc(alias = "commonPool")]
pub struct RayonExecutor {
    pool: Pool,
}

#[derive(Debug)]
enum Pool {
    Global,
    Own(ThreadPool),
}

impl RayonExecutor {
    /// Creates an executor that runs tasks on rayon's global pool, which parallel iterators use
    /// too. Rayon starts it with the first task.
    ///
    /// A pool of your own ([`new`](Self::new)) is better in most programs, because the other jobs
    /// of the global pool affect the tasks in two ways:
    ///
    /// - A thread of rayon that waits in `join`, `scope` or a parallel iterator runs other jobs of
    ///   its pool meanwhile, which may include a task. If the waiting code holds a `Mutex` that the
    ///   task locks, the thread deadlocks with itself.
    /// - Parallel jobs occupy all threads. During a job of 3 s, tasks started 2.6 to 2.9 s late.
    ///
    /// As with `rayon::spawn`, a task that a thread *of another rayon pool* hands over runs on that
    /// pool. If the global pool cannot be started, every task is rejected.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    /// use timer_executor::{RayonExecutor, Task, TaskExecutor};
    ///
    /// let (sender, receiver) = channel();
    /// let mut tasks: Vec<Task> = (0..100)
    ///     .map(|i| {
    ///         let sender = sender.clone();
    ///         Task::new(move || sender.send(i).unwrap())
    ///     })
    ///     .collect();
    /// RayonExecutor::global().execute_batch(&mut tasks);
    /// assert!(tasks.is_empty());
    /// drop(sender);
    /// assert_eq!(receiver.iter().count(), 100);
    /// ```
    #[must_use]
    pub fn global() -> Self {
        Self { pool: Pool::Global }
    }

    /// Creates an executor that owns `pool` and runs tasks on it.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    /// use std::thread;
    /// use timer_executor::{RayonExecutor, Task, TaskExecutor};
    ///
    /// # fn main() -> Result<(), rayon::ThreadPoolBuildError> {
    /// let pool = rayon::ThreadPoolBuilder::new().num_threads(1).thread_name(|_| "due".into()).build()?;
    /// let executor = RayonExecutor::new(pool);
    ///
    /// let (sender, receiver) = channel();
    /// executor.execute(Task::new(move || sender.send(thread::current().name() == Some("due")).unwrap())).unwrap();
    /// assert!(receiver.recv().unwrap());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A program that starts the threads itself can join them, which leak checkers and libraries
    /// that are unloaded require. The pool ends when the executor is dropped:
    ///
    /// ```
    /// use timer_executor::{RayonExecutor, Task, TaskExecutor};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut threads = Vec::new();
    /// let start = |thread: rayon::ThreadBuilder| {
    ///     threads.push(std::thread::Builder::new().name("due".into()).spawn(|| thread.run())?);
    ///     Ok(())
    /// };
    /// let pool = rayon::ThreadPoolBuilder::new().num_threads(2).spawn_handler(start).build()?;
    /// let executor = RayonExecutor::new(pool);
    /// executor.execute(Task::new(|| println!("due"))).unwrap();
    /// drop(executor);
    /// threads.into_iter().for_each(|thread| thread.join().unwrap());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn new(pool: ThreadPool) -> Self {
        Self { pool: Pool::Own(pool) }
    }

    /// Returns `true` if the pool can run tasks. The caller checks this before it gives a task
    /// away, because a global pool that cannot start panics and the task would be lost.
    fn is_up(&self) -> bool {
        match self.pool {
            Pool::Global => panics::catch(::rayon::current_num_threads).is_ok(),
            Pool::Own(_) => true,
        }
    }

    fn spawn(&self, job: impl FnOnce() + Send + 'static) {
        match &self.pool {
            Pool::Global => ::rayon::spawn_fifo(job),
            Pool::Own(pool) => pool.spawn_fifo(job),
        }
    }
}

impl TaskExecutor for RayonExecutor {
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        if !self.is_up() {
            return Err(ExecuteError(task));
        }
        self.spawn(move || task.run());
        Ok(())
    }

    fn execute_batch(&self, tasks: &mut Vec<Task>) {
        if tasks.is_empty() || !self.is_up() {
            return;
        }
        if tasks.len() > 1 {
            // The tasks are drained, so that the caller keeps its buffer for the next batch.
            let runner = batch::share(tasks.drain(..), CurrentPool);
            self.spawn(move || runner.run());
        } else if let Some(task) = tasks.pop() {
            self.spawn(move || task.run());
        }
    }
}

/// The pool of the calling thread. A runner always runs on a thread of its own pool.
struct CurrentPool;

impl RunnerQueue for CurrentPool {
    fn push(&self, runner: Runner<Self>) {
        ::rayon::spawn_fifo(move || runner.run());
    }
}
