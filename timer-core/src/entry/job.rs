//! The kinds of jobs of timeouts: a closure, a periodic closure, a task with a hook, and a waker.

use super::Timeout;
use super::period::Period;
use super::state::Runs;
use crate::sync::{AtomicU64, Ordering};
use core::task::Waker;
use std::any::type_name;
use timer_executor::panics;

/// A task that is also told when it will not run.
///
/// A closure is enough in most cases. Implement this trait if a task must also act when it is
/// cancelled.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use timer_core::{Timeout, Timer, TimerTask};
///
/// struct Reply(mpsc::Sender<&'static str>);
///
/// impl TimerTask for Reply {
///     fn run(self, _: &Timeout) {
///         let _ = self.0.send("timed out");
///     }
///     fn cancelled(self, _: &Timeout) {
///         let _ = self.0.send("answered in time");
///     }
/// }
///
/// let (sender, replies) = mpsc::channel();
/// let timer = Timer::new();
/// let timeout = timer.new_timeout_task(Duration::from_secs(3600), Reply(sender))?;
/// assert!(timeout.cancel());
/// assert_eq!(replies.recv()?, "answered in time");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "Runnable")]
pub trait TimerTask: Sized + Send + 'static {
    /// Runs the task at its deadline, at most once, on the thread that the executor has chosen. A
    /// panic is caught and counted.
    fn run(self, timeout: &Timeout);

    /// Tells the task that it will not run. The timer calls this at most once, and instead of
    /// [`run`](Self::run), if the timeout is cancelled, or if `stop` returned the timeout and the
    /// program drops it unrun.
    ///
    /// Runs on the thread that cancels the timeout, before that call returns. It may call any
    /// method of the timer. The default drops the task. `cancel` and `cancel_and_wait` pass a panic
    /// on to their caller. All other calls catch and count it.
    fn cancelled(self, timeout: &Timeout) {
        let _ = timeout;
    }

    /// Returns the name of the task in [`Timer::worst`](crate::Timer::worst) and in warnings. The
    /// default is the name of the type, which is also used if this function panics. The worker
    /// calls the function when a run was late, so it must not block. [`named!`](crate::named) gives a
    /// closure a name.
    fn name() -> &'static str {
        type_name::<Self>()
    }
}

/// A task that runs again and again.
///
/// Closures implement it, and [`named!`](crate::named) gives them another name. Implement this
/// trait for a type whose name says more than that of a closure.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::{PeriodicTask, Timeout, Timer};
///
/// struct Heartbeat(u64);
///
/// impl PeriodicTask for Heartbeat {
///     fn run(&mut self, _: &Timeout) {
///         self.0 += 1;
///         println!("beat {}", self.0);
///     }
/// }
///
/// let (timer, mut driver) = Timer::builder().build_manual()?;
/// let second = Duration::from_secs(1);
/// timer.schedule_task_at_fixed_rate(second, second, Heartbeat(0))?;
/// assert_eq!(driver.advance(5 * second), 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait PeriodicTask: Sized + Send + 'static {
    /// Runs the task at each of its deadlines, on the thread that the executor has chosen. A panic
    /// is caught and counted, and no further run follows.
    fn run(&mut self, timeout: &Timeout);

    /// Returns the name of the task, as [`TimerTask::name`] does.
    fn name() -> &'static str {
        type_name::<Self>()
    }
}

impl<F: FnMut(&Timeout) + Send + 'static> PeriodicTask for F {
    fn run(&mut self, timeout: &Timeout) {
        self(timeout);
    }
}

/// The content of a timeout.
pub(crate) trait Job: Sized + Send + 'static {
    /// Decides how a run changes the state of the timeout.
    const RUNS: Runs;

    /// The part of the job that all threads share. It is not dropped.
    type Shared;

    /// Returns the shared part of a new job.
    fn shared(&self) -> Self::Shared;

    /// Returns the period in nanoseconds if the job runs again.
    fn period(_: &Self::Shared) -> Option<&AtomicU64> {
        None
    }

    /// Returns the name of the user's task.
    fn name() -> &'static str;

    /// Runs the job. Returns it with its period if it runs again.
    fn run(self, timeout: &Timeout) -> Option<(Self, Period)>;

    /// Ends the job, which will not run.
    fn cancelled(self, timeout: &Timeout);
}

/// A closure that runs once.
pub(crate) struct Closure<F>(pub(crate) F);

impl<F: FnOnce(&Timeout) + Send + 'static> Job for Closure<F> {
    const RUNS: Runs = Runs::Once;
    type Shared = ();

    fn shared(&self) {}

    fn name() -> &'static str {
        type_name::<F>()
    }

    fn run(self, timeout: &Timeout) -> Option<(Self, Period)> {
        (self.0)(timeout);
        None
    }

    fn cancelled(self, _: &Timeout) {}
}

/// A [`TimerTask`].
pub(crate) struct Hooked<T>(pub(crate) T);

impl<T: TimerTask> Job for Hooked<T> {
    const RUNS: Runs = Runs::Once;
    type Shared = ();

    fn shared(&self) {}

    fn name() -> &'static str {
        panics::catch(T::name).unwrap_or_else(|_| type_name::<T>())
    }

    fn run(self, timeout: &Timeout) -> Option<(Self, Period)> {
        self.0.run(timeout);
        None
    }

    fn cancelled(self, timeout: &Timeout) {
        self.0.cancelled(timeout);
    }
}

/// A [`PeriodicTask`].
pub(crate) struct Periodic<T> {
    pub(crate) task: T,
    /// The kind of the period, and its first length.
    pub(crate) period: Period,
}

impl<T: PeriodicTask> Job for Periodic<T> {
    const RUNS: Runs = Runs::Again;
    type Shared = AtomicU64;

    fn shared(&self) -> AtomicU64 {
        let (Period::Rate(nanos) | Period::Delay(nanos)) = self.period;
        AtomicU64::new(nanos)
    }

    fn period(shared: &AtomicU64) -> Option<&AtomicU64> {
        Some(shared)
    }

    fn name() -> &'static str {
        panics::catch(T::name).unwrap_or_else(|_| type_name::<T>())
    }

    fn run(mut self, timeout: &Timeout) -> Option<(Self, Period)> {
        self.task.run(timeout);
        // ORDERING: Relaxed, because the period is the only value that its writer passes on.
        let nanos = timeout.period()?.load(Ordering::Relaxed);
        let period = match self.period {
            Period::Rate(_) => Period::Rate(nanos),
            Period::Delay(_) => Period::Delay(nanos),
        };
        Some((self, period))
    }

    fn cancelled(self, _: &Timeout) {}
}

/// The waker of a future's task.
pub(crate) struct Wakeup(pub(crate) Waker);

impl Job for Wakeup {
    const RUNS: Runs = Runs::Wake;
    type Shared = ();

    fn shared(&self) {}

    fn name() -> &'static str {
        "the waker of a future"
    }

    fn run(self, _: &Timeout) -> Option<(Self, Period)> {
        self.0.wake();
        None
    }

    /// Wakes the task as well, because the future reports that the timer was stopped.
    fn cancelled(self, _: &Timeout) {
        self.0.wake();
    }
}
