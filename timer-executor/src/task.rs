//! One due piece of work, on its way from a timer to a thread that runs it.
//!
//! Promises: a task ends once. It is run, and then a panic in it is caught and reported; or it is dropped without having
//! been run, and then work in a shared allocation is told so by [`Runnable::abandoned`]. Neither way lets a panic out.
//! Absent: cancellation, results, priorities. Whoever hands out tasks knows about those.

use std::fmt;
use std::sync::Arc;

use crate::panics;

/// Work that lives in a shared allocation and becomes a [`Task`] without another one: see [`Task::from_shared`].
///
/// Exactly one of the two methods is called for each `Task` that was made, once.
///
/// # Examples
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use timer_executor::{Runnable, Task};
///
/// struct Ping(Mutex<Vec<&'static str>>);
///
/// impl Runnable for Ping {
///     fn run(self: Arc<Self>) {
///         self.0.lock().unwrap().push("ran");
///     }
///     fn abandoned(self: Arc<Self>) {
///         self.0.lock().unwrap().push("abandoned");
///     }
/// }
///
/// let ping = Arc::new(Ping(Mutex::default()));
/// Task::from_shared(ping.clone()).run();
/// drop(Task::from_shared(ping.clone()));
/// assert_eq!(*ping.0.lock().unwrap(), ["ran", "abandoned"]);
/// ```
#[doc(alias = "java.lang.Runnable")]
pub trait Runnable: Send + Sync + 'static {
    /// The task's turn has come. A panic is caught by [`Task::run`], and `abandoned` is not called after it.
    fn run(self: Arc<Self>);

    /// The task was dropped without having been run: its executor panicked, was shut down, or threw it away.
    ///
    /// Called on the thread that dropped the task. A panic in here is caught and reported.
    fn abandoned(self: Arc<Self>);
}

enum Work {
    Boxed(Box<dyn FnOnce() + Send>),
    Shared(Arc<dyn Runnable>),
}

/// One due piece of work. Whoever receives it runs it with [`run`](Task::run), once, on whatever thread it likes.
///
/// Dropping a task means that it will never run; work made by [`from_shared`](Task::from_shared) is told so, a closure is
/// simply dropped. A task takes no more than 24 bytes.
///
/// # Examples
///
/// ```
/// use timer_executor::Task;
///
/// let task = Task::new(|| println!("time is up"));
/// std::thread::spawn(move || task.run()).join().unwrap();
/// ```
#[must_use = "a task that is dropped never runs"]
#[doc(alias = "Runnable")]
pub struct Task {
    // None once the work was taken out; nobody outside this crate can hold such a task.
    work: Option<Work>,
}

// A timer moves a batch of these per tick: keep them small.
const _: () = assert!(size_of::<Task>() <= 24);

impl Task {
    /// Stands in a batch for a task that was taken out.
    pub(crate) const SPENT: Task = Task { work: None };

    /// A task that calls `work` once. Costs one allocation, none if the closure captures nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    /// use timer_executor::Task;
    ///
    /// let (sender, receiver) = channel();
    /// Task::new(move || sender.send("done").unwrap()).run();
    /// assert_eq!(receiver.recv().unwrap(), "done");
    /// ```
    pub fn new(work: impl FnOnce() + Send + 'static) -> Self {
        Self { work: Some(Work::Boxed(Box::new(work))) }
    }

    /// A task out of work that already lives in a shared allocation: costs no further allocation.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use timer_executor::{Runnable, Task};
    ///
    /// struct Reminder(String);
    ///
    /// impl Runnable for Reminder {
    ///     fn run(self: Arc<Self>) {
    ///         println!("{}", self.0);
    ///     }
    ///     fn abandoned(self: Arc<Self>) {
    ///         println!("nobody will ever remind you: {}", self.0);
    ///     }
    /// }
    ///
    /// Task::from_shared(Arc::new(Reminder("tea".into()))).run();
    /// ```
    pub fn from_shared(work: Arc<dyn Runnable>) -> Self {
        Self { work: Some(Work::Shared(work)) }
    }

    /// Runs the task on this thread and returns when it has finished.
    ///
    /// Never panics: a panic of the task is caught and reported as a `tracing` error, so it harms neither the thread nor
    /// the tasks after this one. (Aborting panics cannot be caught, see [`panics::catch`].)
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_executor::Task;
    ///
    /// Task::new(|| panic!("caught, reported, over")).run();
    /// println!("still here");
    /// ```
    pub fn run(mut self) {
        if let Some(work) = self.work.take() {
            panics::contain("a task panicked", || match work {
                Work::Boxed(work) => work(),
                Work::Shared(work) => work.run(),
            });
        }
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.work.is_none()
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            // Caught because a task is often dropped by a thread that unwinds, where a second panic would abort.
            panics::contain("a task that was never run panicked while it was dropped", || match work {
                Work::Boxed(work) => drop(work),
                Work::Shared(work) => work.abandoned(),
            });
        }
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.work {
            Some(Work::Boxed(_)) => "Task(boxed)",
            Some(Work::Shared(_)) => "Task(shared)",
            None => "Task(spent)",
        })
    }
}
