//! What an executor is: the trait, the rejection, and what is an executor without saying so: `Arc`,
//! `Box`, a closure.
//!
//! Promises: a task that an executor does not take comes back, in [`Rejected`] or by staying in the
//! batch, in order; the batch given here keeps what was not yet handed over even if the executor
//! panics. Absent: any executor with threads.

use std::fmt;
use std::mem;
use std::sync::Arc;

use crate::Task;

/// Where due tasks run.
///
/// A timer hands its due tasks to one of these, from its worker thread. Implement it to run them
/// wherever you like; for most cases a closure `|task: Task| ...` does.
///
/// An executor should return soon: the timer's worker waits for it. One that has no room returns
/// the task.
///
/// # Examples
///
/// An executor that takes nothing while the service shuts down:
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use timer_executor::{Rejected, Task, TaskExecutor};
///
/// struct Gate {
///     open: AtomicBool,
/// }
///
/// impl TaskExecutor for Gate {
///     fn execute(&self, task: Task) -> Result<(), Rejected> {
///         // ORDERING: Relaxed, the flag guards no other data.
///         if !self.open.load(Ordering::Relaxed) {
///             return Err(Rejected(task));
///         }
///         std::thread::spawn(move || task.run());
///         Ok(())
///     }
/// }
///
/// let gate = Gate { open: AtomicBool::new(false) };
/// let Rejected(task) = gate.execute(Task::new(|| println!("ran here instead"))).unwrap_err();
/// task.run();
/// ```
#[doc(alias = "Executor")]
#[doc(alias = "ExecutorService")]
pub trait TaskExecutor: Send + Sync + 'static {
    /// Takes the task, to run it once, now or later, on this thread or another.
    ///
    /// # Errors
    ///
    /// [`Rejected`] with the task in it, if the executor has no room for it or takes no more work.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_executor::{ImmediateExecutor, Task, TaskExecutor};
    ///
    /// ImmediateExecutor.execute(Task::new(|| println!("now"))).unwrap();
    /// ```
    fn execute(&self, task: Task) -> Result<(), Rejected>;

    /// Takes many tasks at once. What it takes is gone from `tasks`; what is left there, in order,
    /// was rejected.
    ///
    /// Provided: hands the tasks to [`execute`](Self::execute) one by one, in order. If that
    /// panics, the tasks that were not yet handed over stay in `tasks`. An executor with a queue
    /// does better to take them in one go.
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
            if let Err(Rejected(task)) = self.execute(mem::replace(slot, Task::SPENT)) {
                *slot = task;
            }
        }
    }

    /// Whether [`execute`](Self::execute) has run the task by the time it returns.
    ///
    /// A timer hands the tasks of a tick to such an executor one at a time, so that a task may
    /// still cancel those after it. Provided: `false`. Saying `true` is always safe and costs the
    /// gain of handing over in batches; `false` from an executor that runs inline means that the
    /// tasks of a tick can no longer cancel each other.
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

/// Takes the stand-ins out of a batch, also when the executor panicked half way.
struct RemoveSpent<'a>(&'a mut Vec<Task>);

impl Drop for RemoveSpent<'_> {
    fn drop(&mut self) {
        self.0.retain(|task| !task.is_spent());
    }
}

/// An executor did not take this task. The task comes back unharmed: run it elsewhere, try again,
/// or drop it.
///
/// # Examples
///
/// ```
/// use timer_executor::{Rejected, Task};
///
/// let rejected = Rejected(Task::new(|| println!("ran by the caller")));
/// assert_eq!(rejected.to_string(), "the executor did not take the task: no room left, or shut down");
/// rejected.0.run();
/// ```
#[derive(Debug)]
#[doc(alias = "RejectedExecutionException")]
pub struct Rejected(pub Task);

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the executor did not take the task: no room left, or shut down")
    }
}

impl std::error::Error for Rejected {}

/// A shared executor: two timers may run their tasks on the same pool.
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
    fn execute(&self, task: Task) -> Result<(), Rejected> {
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
/// A box of a closure is an executor as well, being a closure itself.
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
// Not for every `Box<E>`: a box of a closure is one of the closures below.
impl TaskExecutor for Box<dyn TaskExecutor> {
    fn execute(&self, task: Task) -> Result<(), Rejected> {
        (**self).execute(task)
    }

    fn execute_batch(&self, tasks: &mut Vec<Task>) {
        (**self).execute_batch(tasks);
    }

    fn runs_inline(&self) -> bool {
        (**self).runs_inline()
    }
}

/// A closure takes every task, and does with it what it likes. It counts as running inline: it may
/// do so.
///
/// # Examples
///
/// ```
/// use timer_executor::{Task, TaskExecutor};
///
/// let executor = |task: Task| {
///     std::thread::spawn(move || task.run());
/// };
/// executor.execute(Task::new(|| println!("on a thread of its own"))).unwrap();
/// ```
impl<F: Fn(Task) + Send + Sync + 'static> TaskExecutor for F {
    fn execute(&self, task: Task) -> Result<(), Rejected> {
        self(task);
        Ok(())
    }

    fn runs_inline(&self) -> bool {
        true
    }
}
