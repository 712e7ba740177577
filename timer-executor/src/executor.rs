//! The trait of executors, the rejection, and the executors among standard types: `Arc`, `Box` and
//! closures.
//!
//! A task that an executor does not take returns to the caller, in [`ExecuteError`] or in the
//! batch, which keeps its order. If the executor panics during the provided `execute_batch`, the
//! rejected tasks and those not yet handed over stay in the batch. Other modules contain the
//! executors of this crate.

use std::fmt;
use std::mem;
use std::sync::Arc;

use crate::Task;

/// The place where due tasks run.
///
/// A timer hands its due tasks to an executor from its worker thread. Implement this trait to run
/// them anywhere else. In most cases a closure `|task: Task| ...` is enough.
///
/// An executor should return soon, because the timer's worker waits for it. An executor without
/// room returns the task.
///
/// # Examples
///
/// An executor that rejects all tasks while the service shuts down:
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use timer_executor::{ExecuteError, Task, TaskExecutor};
///
/// struct Gate {
///     open: AtomicBool,
/// }
///
/// impl TaskExecutor for Gate {
///     fn execute(&self, task: Task) -> Result<(), ExecuteError> {
///         // ORDERING: Relaxed, the flag guards no other data.
///         if !self.open.load(Ordering::Relaxed) {
///             return Err(ExecuteError(task));
///         }
///         std::thread::spawn(move || task.run());
///         Ok(())
///     }
/// }
///
/// let gate = Gate { open: AtomicBool::new(false) };
/// let ExecuteError(task) = gate.execute(Task::new(|| println!("ran here instead"))).unwrap_err();
/// task.run();
/// ```
#[doc(alias = "Executor")]
#[doc(alias = "ExecutorService")]
pub trait TaskExecutor: Send + Sync + 'static {
    /// Takes the task and runs it once, now or later, on this thread or another.
    ///
    /// # Errors
    ///
    /// Returns [`ExecuteError`] with the task in it if the executor has no room for it or is shut
    /// down.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_executor::{ImmediateExecutor, Task, TaskExecutor};
    ///
    /// ImmediateExecutor.execute(Task::new(|| println!("now"))).unwrap();
    /// ```
    fn execute(&self, task: Task) -> Result<(), ExecuteError>;

    /// Takes many tasks at once. It removes each task that it takes from `tasks`. The tasks that
    /// remain there were rejected, and they keep their order.
    ///
    /// The provided method hands the tasks to [`execute`](Self::execute) one by one, in order. If
    /// that panics, the rejected tasks and those not yet handed over stay in `tasks`. An executor
    /// with a queue should take the whole batch in one step.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_executor::{ImmediateExecutor, Task, TaskExecutor};
    ///
    /// let mut tasks: Vec<Task> = (0..3).map(|i| Task::new(move || println!("{i}"))).collect();
    /// ImmediateExecutor.execute_batch(&mut tasks);
    /// assert!(tasks.is_empty());
    /// ```
    #[doc(alias = "invokeAll")]
    fn execute_batch(&self, tasks: &mut Vec<Task>) {
        let tasks = RemoveSpent(tasks);
        for slot in tasks.0.iter_mut() {
            if let Err(ExecuteError(task)) = self.execute(mem::replace(slot, Task::SPENT)) {
                *slot = task;
            }
        }
    }

    /// Returns `true` if [`execute`](Self::execute) may run the task before it returns.
    ///
    /// A timer hands the tasks of a tick to such an executor one at a time, so that a task can
    /// still cancel the tasks after it. The provided method returns `false`. `true` is always safe,
    /// but it gives up the gain of batches. If an executor that runs tasks inline returns `false`,
    /// the tasks of a tick can no longer cancel each other.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_executor::{ImmediateExecutor, TaskExecutor};
    ///
    /// assert!(ImmediateExecutor.runs_inline());
    /// ```
    fn runs_inline(&self) -> bool {
        false
    }
}

/// Removes the placeholders from a batch, also if the executor panicked half way.
struct RemoveSpent<'a>(&'a mut Vec<Task>);

impl Drop for RemoveSpent<'_> {
    fn drop(&mut self) {
        self.0.retain(|task| !task.is_spent());
    }
}

/// The error of an executor that did not take a task. It contains the task, which can run
/// elsewhere, be tried again or be dropped.
///
/// # Examples
///
/// ```
/// use timer_executor::{ExecuteError, Task};
///
/// let rejected = ExecuteError(Task::new(|| println!("ran by the caller")));
/// assert_eq!(rejected.to_string(), "the executor did not take the task, because it is full or shut down");
/// rejected.0.run();
/// ```
#[derive(Debug)]
#[doc(alias = "Rejected")]
#[doc(alias = "RejectedExecutionException")]
pub struct ExecuteError(pub Task);

impl ExecuteError {
    /// Returns the task.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_executor::{ExecuteError, Task};
    ///
    /// ExecuteError(Task::new(|| println!("ran by the caller"))).into_inner().run();
    /// ```
    pub fn into_inner(self) -> Task {
        self.0
    }
}

impl fmt::Display for ExecuteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the executor did not take the task, because it is full or shut down")
    }
}

impl std::error::Error for ExecuteError {}

/// A shared executor. Two timers may run their tasks on the same pool.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use timer_executor::{ImmediateExecutor, Task, TaskExecutor};
///
/// let one: Arc<dyn TaskExecutor> = Arc::new(ImmediateExecutor);
/// let other = Arc::clone(&one);
/// one.execute(Task::new(|| println!("by one handle"))).unwrap();
/// other.execute(Task::new(|| println!("by the other"))).unwrap();
/// ```
impl<E: TaskExecutor + ?Sized> TaskExecutor for Arc<E> {
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        (**self).execute(task)
    }

    fn execute_batch(&self, tasks: &mut Vec<Task>) {
        (**self).execute_batch(tasks);
    }

    fn runs_inline(&self) -> bool {
        (**self).runs_inline()
    }
}

/// An executor of a type that is chosen while the program runs.
///
/// A box of a closure is also an executor, because it is a closure itself.
///
/// # Examples
///
/// ```
/// use timer_executor::{ImmediateExecutor, Task, TaskExecutor};
///
/// fn chosen(name: &str) -> Option<Box<dyn TaskExecutor>> {
///     let own_thread = |task: Task| _ = std::thread::spawn(move || task.run());
///     match name {
///         "here" => Some(Box::new(ImmediateExecutor)),
///         "own-thread" => Some(Box::new(own_thread)),
///         _ => None,
///     }
/// }
///
/// chosen("here").unwrap().execute(Task::new(|| println!("here"))).unwrap();
/// ```
// This is not implemented for every `Box<E>`, because a box of a closure is a closure below.
impl TaskExecutor for Box<dyn TaskExecutor> {
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        (**self).execute(task)
    }

    fn execute_batch(&self, tasks: &mut Vec<Task>) {
        (**self).execute_batch(tasks);
    }

    fn runs_inline(&self) -> bool {
        (**self).runs_inline()
    }
}

/// A closure takes every task and decides how to run it. It may run the task inline, so a timer
/// hands it one task at a time.
///
/// # Examples
///
/// ```
/// use timer_executor::{Task, TaskExecutor};
///
/// let executor = |task: Task| {
///     std::thread::spawn(move || task.run());
/// };
/// executor.execute(Task::new(|| println!("on a new thread"))).unwrap();
/// ```
impl<F: Fn(Task) + Send + Sync + 'static> TaskExecutor for F {
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        self(task);
        Ok(())
    }

    fn runs_inline(&self) -> bool {
        true
    }
}
