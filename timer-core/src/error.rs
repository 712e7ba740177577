//! The errors of the public API.

use crate::sync::TaskBox;
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

/// A timeout that was not accepted. [`into_inner`](Self::into_inner) returns the task.
///
/// The error works with `?` for every task, because it is `Error + Send + Sync + 'static` for every
/// task that is `Send + 'static`. It is small.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::{RejectReason, Timer};
///
/// let timer = Timer::builder().max_pending_timeouts(1).build()?;
/// let first = timer.new_timeout(Duration::from_secs(60), |_| {})?;
/// let rejected = timer.new_timeout(Duration::from_secs(60), |_| println!("never")).unwrap_err();
/// assert_eq!(rejected.reason, RejectReason::TooManyPending { max: 1 });
/// assert_eq!(rejected.to_string(), "too many pending timeouts: the bound of 1 is reached");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "RejectedExecutionException")]
#[doc(alias = "RejectedTimeout")]
pub struct ScheduleError<T> {
    /// The reason for the refusal.
    pub reason: RejectReason,
    /// The mutex makes the error `Sync` even if the task is not. It is never locked.
    task: TaskBox<Box<T>>,
}

impl<T> ScheduleError<T> {
    #[cold]
    pub(crate) fn new(task: T, reason: RejectReason) -> Self {
        Self { reason, task: TaskBox::new(Box::new(task)) }
    }

    /// Returns the task.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::{Timeout, Timer};
    ///
    /// let timer = Timer::new();
    /// timer.stop()?;
    /// let rejected = timer.new_timeout(Duration::from_secs(1), |_: &Timeout| println!("retry")).unwrap_err();
    /// let task = rejected.into_inner();
    /// # drop(task);
    /// # Ok::<(), timer_core::StopError>(())
    /// ```
    #[doc(alias = "into_task")]
    pub fn into_inner(self) -> T {
        *self.task.into_inner()
    }
}

impl<T> fmt::Debug for ScheduleError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScheduleError").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for ScheduleError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<T> Error for ScheduleError<T> {}

impl<T> From<ScheduleError<T>> for RejectReason {
    fn from(rejected: ScheduleError<T>) -> RejectReason {
        rejected.reason
    }
}

/// Converts the [reason](ScheduleError::reason), and drops the task.
impl<T> From<ScheduleError<T>> for io::Error {
    fn from(rejected: ScheduleError<T>) -> Self {
        rejected.reason.into()
    }
}

/// The reason for a refusal.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::{RejectReason, Timer};
///
/// let timer = Timer::new();
/// timer.stop()?;
/// let rejected = timer.new_timeout(Duration::ZERO, |_| {}).unwrap_err();
/// // Try again only if a later call may succeed.
/// let try_again = match rejected.reason {
///     RejectReason::TooManyPending { .. } | RejectReason::ThreadRefused => true,
///     RejectReason::Stopped | RejectReason::ZeroPeriod | RejectReason::TooManyTimers => false,
///     _ => false,
/// };
/// assert!(!try_again);
/// # Ok::<(), timer_core::StopError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RejectReason {
    /// The timer was stopped.
    Stopped,
    /// The bound on pending timeouts is reached.
    TooManyPending {
        /// The bound.
        max: usize,
    },
    /// The period is zero, so the task would run without end.
    ZeroPeriod,
    /// The operating system could not start the worker's thread. `tracing` gets its error. The next
    /// call tries again.
    ThreadRefused,
    /// All 65,536 shards of the process are in use. A timer needs one per CPU.
    TooManyTimers,
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("the timer is stopped"),
            Self::TooManyPending { max } => write!(f, "too many pending timeouts: the bound of {max} is reached"),
            Self::ZeroPeriod => f.write_str("the given period is 0, but it must be at least 1 ns"),
            Self::ThreadRefused => f.write_str("the operating system refused the thread of the timer's worker"),
            Self::TooManyTimers => {
                f.write_str("too many timers live in this process; clone one instead of building another")
            }
        }
    }
}

impl Error for RejectReason {}

/// Converts to [`WouldBlock`](io::ErrorKind::WouldBlock) if the bound is reached, to
/// [`InvalidInput`](io::ErrorKind::InvalidInput) for a period of zero, and to
/// [`Other`](io::ErrorKind::Other) else.
impl From<RejectReason> for io::Error {
    fn from(reason: RejectReason) -> Self {
        let kind = match reason {
            RejectReason::TooManyPending { .. } => io::ErrorKind::WouldBlock,
            RejectReason::ZeroPeriod => io::ErrorKind::InvalidInput,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, reason)
    }
}

/// The reason why [`Timer::stop`](crate::Timer::stop),
/// [`Timer::stop_and_wait`](crate::Timer::stop_and_wait) or [`Timer::drain`](crate::Timer::drain)
/// refused to stop. The timer continues.
///
/// # Examples
///
/// ```
/// use timer_core::{StopError, Timer};
///
/// let (timer, driver) = Timer::builder().build_manual()?;
/// assert_eq!(timer.stop().unwrap_err(), StopError::Driven);
/// driver.stop();
/// # Ok::<(), timer_core::BuildError>(())
/// ```
///
/// A task that runs on the worker cannot stop its timer:
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use timer_core::{StopError, Timer};
///
/// let timer = Timer::new();
/// let (sender, errors) = mpsc::channel();
/// timer.new_timeout(Duration::ZERO, move |me| {
///     let timer = me.timer().expect("the main thread has a handle");
///     sender.send(timer.stop().unwrap_err()).unwrap();
///     sender.send(timer.stop_and_wait(Duration::MAX).unwrap_err()).unwrap();
/// })?;
/// assert_eq!(errors.recv()?, StopError::OnWorker);
/// assert_eq!(errors.recv()?, StopError::InTask);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopError {
    /// The caller is a task on the worker, which would wait for its own end. Drop the timer there,
    /// or stop it from another thread.
    OnWorker,
    /// The timer has a driver. Call the driver's `stop`.
    Driven,
    /// The timer of the process, [`Timer::global`](crate::Timer::global), is never stopped.
    Global,
    /// The caller is a task of this timer, so a wait for all tasks would never end.
    InTask,
}

impl fmt::Display for StopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OnWorker => "stop was called from the worker's own thread, which cannot wait for its own end",
            Self::Driven => "the timer has a driver; call the stop method of the driver",
            Self::Global => "the timer of the whole process is never stopped",
            Self::InTask => {
                "a task of this timer called stop_and_wait or drain, so the call would wait for its own caller"
            }
        })
    }
}

impl Error for StopError {}

/// The caller of [`Timeout::cancel_and_wait`](crate::Timeout::cancel_and_wait) is a run of the same
/// timeout, so it would wait for itself. Nothing was changed.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::{Timer, DeadlockError};
///
/// let (timer, mut driver) = Timer::builder().build_manual()?;
/// timer.new_timeout(Duration::from_secs(1), |me| assert_eq!(me.cancel_and_wait(), Err(DeadlockError)))?;
/// assert_eq!(driver.advance(Duration::from_secs(1)), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[doc(alias = "WouldDeadlock")]
pub struct DeadlockError;

impl fmt::Display for DeadlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cancel_and_wait was called from a run of this timeout, so it would wait for its own caller")
    }
}

impl Error for DeadlockError {}

/// An invalid configuration. The message names the given value and the allowed ones.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::{BuildError, Timer, TimerBuilder, WheelKind};
///
/// let build = |builder: TimerBuilder| builder.build().unwrap_err();
/// let error = build(Timer::builder().max_pending_timeouts(0));
/// assert_eq!(error, BuildError::MaxPendingTimeouts { given: 0 });
/// let error = build(Timer::builder().wheel(WheelKind::Hashed { ticks_per_wheel: 0 }));
/// assert_eq!(error, BuildError::TicksPerWheel { given: 0 });
/// let error = build(Timer::builder().name("a\0b"));
/// assert_eq!(error, BuildError::Name { given: "a\0b".to_owned() });
/// let error = build(Timer::builder().tick_duration(Duration::ZERO));
/// assert_eq!(error, BuildError::TickDuration { given: Duration::ZERO });
/// assert_eq!(error.to_string(), "the tick duration is 0ns, but must be from 1µs to 31536000s");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BuildError {
    /// The tick is shorter than a microsecond or longer than a year.
    TickDuration {
        /// The given value.
        given: Duration,
    },
    /// The hashed wheel has no slots, or more than 2^30.
    TicksPerWheel {
        /// The given value.
        given: usize,
    },
    /// The bound is zero.
    MaxPendingTimeouts {
        /// The given value.
        given: usize,
    },
    /// The name contains a NUL character, so it cannot be the name of a thread.
    Name {
        /// The given value.
        given: String,
    },
    /// All 65,536 shards of the process are in use.
    TooManyTimers,
}

impl BuildError {
    /// The shortest tick.
    pub(crate) const MIN_TICK: Duration = Duration::from_micros(1);
    /// The longest tick: 365 days.
    pub(crate) const MAX_TICK: Duration = Duration::from_secs(365 * 86_400);
    /// The largest number of slots of a hashed wheel.
    pub(crate) const MAX_SLOTS: usize = 1 << 30;
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TickDuration { given } => {
                write!(
                    f,
                    "the tick duration is {given:?}, but must be from {:?} to {:?}",
                    Self::MIN_TICK,
                    Self::MAX_TICK
                )
            }
            Self::TicksPerWheel { given } => {
                write!(f, "the hashed wheel has {given} ticks, but must have from 1 to {}", Self::MAX_SLOTS)
            }
            Self::MaxPendingTimeouts { given } => {
                write!(f, "the bound on pending timeouts is {given}, but must be 1 or more")
            }
            Self::Name { given } => {
                write!(f, "the name {given:?} contains a NUL character, which the name of a thread must not")
            }
            Self::TooManyTimers => {
                f.write_str("all 65536 shards of this process are in use; clone a timer instead of building another")
            }
        }
    }
}

impl Error for BuildError {}
