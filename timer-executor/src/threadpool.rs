//! The executor that runs tasks on a pool of plain threads, with or without a bound.
//!
//! The number of accepted tasks that have not finished never exceeds the threads and the queue
//! together. A panic of a task costs no thread. A caller can wait until no task is left. The number
//! of threads is fixed.

use std::io;
use std::sync::Arc;

use ::threadpool::{Builder, ThreadPool};

use crate::batch::{self, Runner, RunnerQueue};
use crate::permits::PermitPool;
use crate::{ExecuteError, Task, TaskExecutor, panics};

/// An executor that runs each task on its own pool of threads. They are named `timer-pool`, unless
/// the [`builder`](Self::builder) gives them another name.
///
/// A slow task occupies one thread and delays no other task while a thread is idle. A batch costs
/// the caller one job, whatever its size. The threads share its tasks one by one. The tasks of a
/// batch start in order, and several batches run side by side.
///
/// Dropping the executor does not wait. The accepted tasks still run, and then the threads end. The
/// threads do not keep the process alive, so tasks that have not run when `main` returns are lost.
/// Call [`wait_idle`](Self::wait_idle) before that. Nobody can join these threads.
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
    handle: PoolHandle,
}

impl ThreadPoolExecutor {
    /// Returns a builder for a pool of one thread, named `timer-pool`, that accepts any number of
    /// tasks.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    /// use timer_executor::{Task, TaskExecutor, ThreadPoolExecutor};
    ///
    /// let executor = ThreadPoolExecutor::builder().thread_name("mailer").threads(2).queue(100).build()?;
    /// let (sender, receiver) = channel();
    /// let name = || std::thread::current().name().map(str::to_owned);
    /// executor.execute(Task::new(move || sender.send(name()).unwrap())).unwrap();
    /// assert_eq!(receiver.recv().unwrap().as_deref(), Some("mailer"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[doc(alias = "ThreadFactory")]
    pub fn builder() -> ThreadPoolExecutorBuilder {
        ThreadPoolExecutorBuilder { name: "timer-pool".into(), threads: 1, queue: usize::MAX }
    }

    /// Starts a pool of `threads` threads, at least 1, that accepts any number of tasks.
    ///
    /// # Panics
    ///
    /// Panics if the operating system refuses to start a thread.
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
        Self::bounded(threads, usize::MAX)
    }

    /// Starts a pool as [`new`](Self::new) does, and returns an error if the operating system
    /// refuses to start a thread.
    ///
    /// The crate `threadpool` panics in this case, so the panic hook runs. A program that is built
    /// with `panic = "abort"` ends.
    ///
    /// # Errors
    ///
    /// Returns the text of that panic, which contains the system's error, with the kind
    /// [`Other`](io::ErrorKind::Other).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    /// use timer_executor::{Task, TaskExecutor, ThreadPoolExecutor};
    ///
    /// let executor = ThreadPoolExecutor::try_new(2)?;
    /// let (sender, receiver) = channel();
    /// executor.execute(Task::new(move || sender.send(7).unwrap())).unwrap();
    /// assert_eq!(receiver.recv().unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn try_new(threads: usize) -> io::Result<Self> {
        Self::builder().threads(threads).build()
    }

    /// Starts a pool of `threads` threads, at least 1, that holds at most `threads + queue` tasks
    /// that have not finished.
    ///
    /// It rejects further tasks, and the last ones of a batch first.
    ///
    /// # Panics
    ///
    /// Panics if the operating system refuses to start a thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    /// use timer_executor::{ExecuteError, Task, TaskExecutor, ThreadPoolExecutor};
    ///
    /// let executor = ThreadPoolExecutor::bounded(1, 1);
    /// let (open, gate) = channel::<()>();
    /// executor.execute(Task::new(move || gate.recv().unwrap())).unwrap(); // occupies the thread
    /// executor.execute(Task::new(|| println!("waited in the queue"))).unwrap();
    /// let ExecuteError(task) = executor.execute(Task::new(|| println!("ran by the caller"))).unwrap_err();
    /// task.run();
    /// open.send(()).unwrap();
    /// ```
    #[must_use]
    #[doc(alias = "ArrayBlockingQueue")]
    pub fn bounded(threads: usize, queue: usize) -> Self {
        Self::builder().threads(threads).queue(queue).start()
    }

    /// Raises the number of threads to `threads`, for example because some of them hang in their
    /// tasks. Does nothing if the pool was given at least as many. The number of tasks that a
    /// bounded pool accepts stays the same.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system refuses a thread, as [`try_new`](Self::try_new)
    /// does.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    /// use timer_executor::{Task, TaskExecutor, ThreadPoolExecutor};
    ///
    /// let executor = ThreadPoolExecutor::new(1);
    /// let (open, gate) = channel::<()>();
    /// executor.execute(Task::new(move || drop(gate.recv()))).unwrap(); // occupies the thread
    /// executor.set_threads(2)?;
    /// let (sender, receiver) = channel();
    /// executor.execute(Task::new(move || sender.send(7).unwrap())).unwrap();
    /// assert_eq!(receiver.recv(), Ok(7));
    /// drop(open);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[doc(alias = "setMaximumPoolSize")]
    pub fn set_threads(&self, threads: usize) -> io::Result<()> {
        let mut pool = self.handle.pool.clone();
        if threads <= pool.max_count() {
            return Ok(());
        }
        panics::catch(|| pool.set_num_threads(threads)).map_err(io::Error::other)
    }

    /// Waits until the pool has no task, queued or running, from any thread or timer.
    ///
    /// When it returns, all effects of the tasks have happened, and their captured values are
    /// dropped. It also waits for tasks that arrive in the meantime, even if a task hands them to
    /// its own pool. It returns at a moment without tasks, and others may arrive right after it.
    /// The wait has no time limit, so first stop the source of tasks, such as a timer. Any number
    /// of threads may wait. The cost is one uncontended lock if the pool is idle.
    ///
    /// A task of this very pool would wait for itself. Called from such a task, the function
    /// returns at once, whatever is left in the pool, and reports a `tracing` error. Other circular
    /// waits are not detected. For example, two tasks of different pools that wait for each other's
    /// pool never end.
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
    ///     // ORDERING: Relaxed, because `wait_idle` orders the tasks before the code after it.
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
        if !self.handle.permits.wait_idle() {
            tracing::error!("a task cannot wait until its own pool is idle; the wait was skipped");
        }
    }
}

/// A builder of a [`ThreadPoolExecutor`], returned by [`ThreadPoolExecutor::builder`].
///
/// # Examples
///
/// See [`ThreadPoolExecutor::builder`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct ThreadPoolExecutorBuilder {
    name: String,
    threads: usize,
    queue: usize,
}

impl ThreadPoolExecutorBuilder {
    /// Sets the name of each thread, as debuggers and lists of threads show it. Linux shows the
    /// first 15 bytes.
    ///
    /// # Examples
    ///
    /// See [`ThreadPoolExecutor::builder`].
    pub fn thread_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the number of threads, at least 1. The default is 1.
    ///
    /// # Examples
    ///
    /// See [`ThreadPoolExecutor::builder`].
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Bounds the pool to `threads + queue` tasks that have not finished, as
    /// [`ThreadPoolExecutor::bounded`] does. Without this, there is no bound.
    ///
    /// # Examples
    ///
    /// See [`ThreadPoolExecutor::builder`].
    pub fn queue(mut self, queue: usize) -> Self {
        self.queue = queue;
        self
    }

    /// Starts the pool.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system refuses to start a thread, as
    /// [`ThreadPoolExecutor::try_new`] does, or if the name contains a null byte.
    ///
    /// # Examples
    ///
    /// See [`ThreadPoolExecutor::builder`].
    pub fn build(self) -> io::Result<ThreadPoolExecutor> {
        if self.name.contains('\0') {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name of a thread contains a null byte"));
        }
        panics::catch(|| self.start()).map_err(io::Error::other)
    }

    fn start(self) -> ThreadPoolExecutor {
        let threads = self.threads.max(1);
        let permits = Arc::new(PermitPool::new(threads.saturating_add(self.queue)));
        let pool = Builder::new().num_threads(threads).thread_name(self.name).build();
        ThreadPoolExecutor { handle: PoolHandle { pool, permits } }
    }
}

impl TaskExecutor for ThreadPoolExecutor {
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        if self.handle.try_acquire(1) == 0 {
            return Err(ExecuteError(task));
        }
        self.handle.push_one(task);
        Ok(())
    }

    fn execute_batch(&self, tasks: &mut Vec<Task>) {
        let accepted = self.handle.try_acquire(tasks.len());
        if accepted > 1 {
            // The tasks are drained, so that the caller keeps its buffer for the next batch.
            self.handle.push(batch::share(tasks.drain(..accepted), self.handle.clone()));
        } else {
            tasks.drain(..accepted).for_each(|task| self.handle.push_one(task));
        }
    }
}

/// A handle to the pool and its permits. The threads of the pool end when the last handle is gone
/// and the queue is empty.
#[derive(Clone, Debug)]
struct PoolHandle {
    pool: ThreadPool,
    permits: Arc<PermitPool>,
}

impl PoolHandle {
    fn try_acquire(&self, wanted: usize) -> usize {
        self.permits.try_acquire(wanted)
    }

    /// Queues a task whose permit is acquired.
    fn push_one(&self, task: Task) {
        let job = Job { task, permit: Permit(Arc::clone(&self.permits)) };
        self.pool.execute(move || job.run());
    }
}

impl RunnerQueue for PoolHandle {
    fn push(&self, runner: Runner<Self>) {
        let permits = Arc::clone(&self.permits);
        self.pool.execute(move || permits.run_job(|| runner.run()));
    }

    fn finished(&self) {
        self.permits.release();
    }
}

/// A single task with its permit. Fields are dropped in order, so the task has ended before its
/// permit is free, even if the job is lost.
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

struct Permit(Arc<PermitPool>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.release();
    }
}
