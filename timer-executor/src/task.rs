//! A due task on its way from a timer to the thread that runs it.
//!
//! A task ends exactly once. Either it runs, and a panic in it is caught and reported; or it is
//! dropped without having run. In the second case the work behind a [`Waker`] notices the drop of
//! its waker. No panic leaves a task in either case.
//!
//! A task has no result and no priority. Its cancellation belongs to the timer that hands it out.

use std::fmt;
use std::task::Waker;

use crate::panics;

pub(crate) enum Work {
    Boxed(Box<dyn FnOnce() + Send>),
    Waker(Waker),
}

impl Work {
    fn run(self) {
        match self {
            Self::Boxed(work) => work(),
            Self::Waker(waker) => waker.wake(),
        }
    }

    fn abandon(self) {
        match self {
            Self::Boxed(work) => drop(work),
            Self::Waker(waker) => drop(waker),
        }
    }
}

/// A due task. The thread that owns it runs it once, with [`run`](Task::run).
///
/// A task that is dropped never runs. It drops its closure, or its waker if
/// [`from_waker`](Task::from_waker) made it. A task takes at most 24 bytes.
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
    // `None` once the work was taken out. Such a task never leaves this crate.
    work: Option<Work>,
}

// A timer moves a batch of tasks per tick, so a task has to be small.
const _: () = assert!(size_of::<Task>() <= 24);

impl Task {
    /// A placeholder in a batch for a task that was taken out.
    pub(crate) const SPENT: Task = Task { work: None };

    pub(crate) fn from_work(work: Work) -> Self {
        Self { work: Some(work) }
    }

    /// Creates a task that calls `work` once. This allocates once, or never if the closure captures
    /// nothing.
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
        Self::from_work(Work::Boxed(Box::new(work)))
    }

    /// Creates a task whose work lives behind a waker. [`run`](Task::run) wakes it once, by value.
    /// This does not allocate.
    ///
    /// A task that is dropped without having run drops the waker and does not wake it. Work that
    /// has to tell the two cases apart sees exactly one of `wake` and `drop`. The waker is neither
    /// cloned nor woken by reference. A panic in `wake` or `drop` is caught and reported, and no
    /// drop follows a `wake` that panicked.
    ///
    /// # Examples
    ///
    /// Work with its own allocation can become a task again and again, without another
    /// allocation:
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// use std::task::{Wake, Waker};
    /// use timer_executor::Task;
    ///
    /// struct Heartbeat {
    ///     sent: AtomicUsize,
    /// }
    ///
    /// impl Wake for Heartbeat {
    ///     fn wake(self: Arc<Self>) {
    ///         // ORDERING: Relaxed, a plain count.
    ///         self.sent.fetch_add(1, Ordering::Relaxed);
    ///     }
    /// }
    ///
    /// let heartbeat = Arc::new(Heartbeat { sent: AtomicUsize::new(0) });
    /// Task::from_waker(Waker::from(heartbeat.clone())).run();
    /// drop(Task::from_waker(Waker::from(heartbeat.clone()))); // wakes nothing
    /// // ORDERING: as above.
    /// assert_eq!(heartbeat.sent.load(Ordering::Relaxed), 1);
    /// assert_eq!(Arc::strong_count(&heartbeat), 1);
    /// ```
    pub fn from_waker(waker: Waker) -> Self {
        Self::from_work(Work::Waker(waker))
    }

    /// Runs the task on this thread and returns when it has finished.
    ///
    /// This function never panics. A panic of the task is caught and reported as a `tracing` error,
    /// so it harms neither the thread nor the tasks after this one. Panics that abort cannot be
    /// caught; see [`panics::catch`].
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
            panics::contain("a task panicked", || work.run());
        }
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.work.is_none()
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            // A task is often dropped by a thread that unwinds, where a second panic would abort.
            panics::contain("a task that was never run panicked while it was dropped", || work.abandon());
        }
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.work {
            Some(Work::Boxed(_)) => "Task(boxed)",
            Some(Work::Waker(_)) => "Task(waker)",
            None => "Task(spent)",
        })
    }
}
