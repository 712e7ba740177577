//! Work in a shared allocation that is told what became of it, by a trait of this crate.
//!
//! Promises: exactly one of the two methods is called for each task. Absent: anything else; [`Task`] does the rest.

use std::sync::Arc;

use crate::Task;
use crate::task::Work;

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

impl Task {
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
    ///         println!("you will not be reminded: {}", self.0);
    ///     }
    /// }
    ///
    /// Task::from_shared(Arc::new(Reminder("tea".into()))).run();
    /// ```
    pub fn from_shared(work: Arc<dyn Runnable>) -> Self {
        Self::of(Work::Shared(work))
    }
}
