//! Runs tasks on a pool of plain threads, with or without a bound on what waits.
//!
//! Promises: accepted tasks that have not finished never exceed threads + queue; no task waits
//! behind a slow one while a thread of the pool is idle; a panicking task costs no thread; one can
//! wait until no task is left. Absent: growing and shrinking, keep-alive times.

use std::sync::Arc;

use ::threadpool::ThreadPool;

use crate::batch::{self, Runner, RunnerQueue};
use crate::permits::Permits;
use crate::{Rejected, Task, TaskExecutor};

/// Runs each task on a pool of threads of its own, named `timer-pool`.
///
/// A slow task occupies one thread and delays no other as long as one is idle. A batch costs the
/// caller one job, however many tasks are in it; the threads share it out task by task. The tasks
/// of a batch start in its order; several batches run side by side.
///
/// Dropping the executor does not wait: what was accepted still runs, then the threads end. They do
/// not keep the process alive: what has not run when `main` returns is lost.
/// [`wait_idle`](Self::wait_idle) waits for it.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc::channel;
/// use timer_executor::{Task, TaskExecutor, ThreadPoolExecutor};
///
/// let executor = ThreadPoolExecutor::new(2);
/// let (sender, receiver) = channel();
/// executor.execute(Task::new(move || sender.send(7).unwrap())).unwrap();
/// assert_eq!(receiver.recv().unwrap(), 7);
/// ```
#[derive(Debug)]
#[doc(alias = "newFixedThreadPool")]
pub struct ThreadPoolExecutor {
    jobs: Jobs,
}

impl ThreadPoolExecutor {
    /// A pool of so many threads (0 is taken as 1) that takes any amount of work.
    ///
    /// # Panics
    ///
    /// If the operating system refuses to start a thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    /// use timer_executor::{Task, TaskExecutor, ThreadPoolExecutor};
    ///
    /// let executor = ThreadPoolExecutor::new(2);
    /// let (sender, receiver) = channel();
    /// let mut tasks: Vec<Task> = (0..100)
    ///     .map(|i| {
    ///         let sender = sender.clone();
    ///         Task::new(move || sender.send(i).unwrap())
    ///     })
    ///     .collect();
    /// executor.execute_batch(&mut tasks);
    /// assert!(tasks.is_empty());
    /// drop(sender);
    /// assert_eq!(receiver.iter().count(), 100);
    /// ```
    #[must_use]
    pub fn new(threads: usize) -> Self {
        Self::start(threads.max(1), usize::MAX)
    }

    /// A pool of so many threads (0 is taken as 1) that holds at most `threads + queue` tasks that
    /// have not finished.
    ///
    /// Beyond that, tasks are rejected: of a batch, those that come last.
    ///
    /// # Panics
    ///
    /// If the operating system refuses to start a thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    /// use timer_executor::{Rejected, Task, TaskExecutor, ThreadPoolExecutor};
    ///
    /// let executor = ThreadPoolExecutor::bounded(1, 1);
    /// let (open, gate) = channel::<()>();
    /// executor.execute(Task::new(move || gate.recv().unwrap())).unwrap(); // occupies the thread
    /// executor.execute(Task::new(|| println!("waited in the queue"))).unwrap();
    /// let Rejected(task) = executor.execute(Task::new(|| println!("ran by the caller"))).unwrap_err();
    /// task.run();
    /// open.send(()).unwrap();
    /// ```
    #[must_use]
    #[doc(alias = "ArrayBlockingQueue")]
    pub fn bounded(threads: usize, queue: usize) -> Self {
        let threads = threads.max(1);
        Self::start(threads, threads.saturating_add(queue))
    }

    fn start(threads: usize, max: usize) -> Self {
        let pool = ThreadPool::with_name("timer-pool".into(), threads);
        Self { jobs: Jobs { pool, permits: Arc::new(Permits::new(max)) } }
    }

    /// Waits until the pool has no task, queued or running, from whatever thread or timer.
    ///
    /// When it returns, what those tasks did has happened, and what they captured is dropped. Tasks
    /// that come while it waits are waited for as well, also those that a task hands to its own
    /// pool; it returns at a moment without any, and others may come right after that. There is no
    /// limit to the time that it takes: first stop what hands over, such as a timer. Any number of
    /// threads may wait. It costs one uncontended lock if the pool is idle.
    ///
    /// *Called from a task of this very pool* it would wait for itself. It returns at once then,
    /// whatever is left in the pool, and reports a `tracing` error. Other circular waits are not
    /// detected: two tasks of different pools that wait for each other's pool never end.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// use timer_executor::{Task, TaskExecutor, ThreadPoolExecutor};
    ///
    /// let executor = ThreadPoolExecutor::new(2);
    /// let done = Arc::new(AtomicUsize::new(0));
    /// for _ in 0..100 {
    ///     let done = done.clone();
    ///     // ORDERING: Relaxed, `wait_idle` orders what the tasks did before what follows it.
    ///     let task = Task::new(move || drop(done.fetch_add(1, Ordering::Relaxed)));
    ///     executor.execute(task).unwrap();
    /// }
    /// executor.wait_idle();
    /// // ORDERING: as above.
    /// assert_eq!(done.load(Ordering::Relaxed), 100);
    /// ```
    #[doc(alias = "join")]
    #[doc(alias = "awaitTermination")]
    #[doc(alias = "awaitQuiescence")]
    pub fn wait_idle(&self) {
        if !self.jobs.permits.wait_idle() {
            tracing::error!("a task waits for its own pool to be idle: not waited");
        }
    }
}

impl TaskExecutor for ThreadPoolExecutor {
    fn execute(&self, task: Task) -> Result<(), Rejected> {
        if self.jobs.try_acquire(1) == 0 {
            return Err(Rejected(task));
        }
        self.jobs.push_one(task);
        Ok(())
    }

    fn execute_batch(&self, tasks: &mut Vec<Task>) {
        let accepted = self.jobs.try_acquire(tasks.len());
        if accepted > 1 {
            // Not taken whole: the caller keeps its buffer for the next batch.
            self.jobs.push(batch::share(tasks.drain(..accepted).collect(), self.jobs.clone()));
        } else {
            tasks.drain(..accepted).for_each(|task| self.jobs.push_one(task));
        }
    }
}

/// A handle to the pool and its permits. The pool's threads end when the last one is gone, and the
/// queue is empty.
#[derive(Clone, Debug)]
struct Jobs {
    pool: ThreadPool,
    permits: Arc<Permits>,
}

impl Jobs {
    fn try_acquire(&self, wanted: usize) -> usize {
        self.permits.try_acquire(wanted)
    }

    /// For a task whose permit is acquired.
    fn push_one(&self, task: Task) {
        let job = Job { task, permit: Permit(Arc::clone(&self.permits)) };
        self.pool.execute(move || job.run());
    }
}

impl RunnerQueue for Jobs {
    fn push(&self, runner: Runner<Self>) {
        let permits = Arc::clone(&self.permits);
        self.pool.execute(move || permits.run_job(|| runner.run()));
    }

    fn finished(&self) {
        self.permits.release();
    }
}

/// A single task with its permit. Fields are dropped in order: a task that is lost has ended when
/// its permit is free.
struct Job {
    task: Task,
    permit: Permit,
}

impl Job {
    fn run(self) {
        let Self { task, permit } = self;
        permit.0.run_job(|| task.run());
    }
}

struct Permit(Arc<Permits>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.release();
    }
}
