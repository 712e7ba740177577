//! What can be refused, and why.

use std::error::Error;
use std::fmt;
use std::time::Duration;

/// A timeout that was not accepted. The task comes back unharmed.
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
pub struct RejectedTimeout<T> {
    /// The task that was to be timed.
    pub task: T,
    /// Why it was refused.
    pub reason: RejectReason,
}

impl<T> fmt::Debug for RejectedTimeout<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RejectedTimeout").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for RejectedTimeout<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<T> Error for RejectedTimeout<T> {}

/// Why a timeout was refused.
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
/// assert_eq!(rejected.reason, RejectReason::Stopped);
/// # Ok::<(), timer_core::StopError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectReason {
    /// The timer was stopped, or its worker thread could not be started.
    Stopped,
    /// As many timeouts are pending as the timer was built for.
    TooManyPending {
        /// The bound.
        max: usize,
    },
    /// A period of zero: the task would run without end.
    ZeroPeriod,
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("the timer is stopped"),
            Self::TooManyPending { max } => write!(f, "too many pending timeouts: the bound of {max} is reached"),
            Self::ZeroPeriod => f.write_str("a period of 0 was given: it must be at least 1 ns"),
        }
    }
}

/// The timer was stopped.
///
/// # Examples
///
/// ```
/// use timer_core::{Stopped, Timer};
///
/// let timer = Timer::new();
/// timer.stop().unwrap();
/// assert_eq!(timer.start(), Err(Stopped));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the timer is stopped")
    }
}

impl Error for Stopped {}

/// Why [`Timer::stop`](crate::Timer::stop) did not stop.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopError {
    /// Called by a task that runs on the worker itself, which would wait for its own end. Drop the timer there, or stop it
    /// from another thread.
    OnWorker,
    /// The timer has a driver: call the driver's `stop`.
    Driven,
}

impl fmt::Display for StopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OnWorker => "stop was called from the worker's own thread, which cannot wait for its own end",
            Self::Driven => "the timer is driven by hand: its driver stops it",
        })
    }
}

impl Error for StopError {}

/// A configuration that cannot be built. It says what was given and what is allowed.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::Timer;
///
/// let error = Timer::builder().tick_duration(Duration::ZERO).build().unwrap_err();
/// assert_eq!(error.to_string(), "tick duration 0ns: allowed is 1µs to 31536000s");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// A tick shorter than a microsecond or longer than a year.
    TickDuration {
        /// What was given.
        given: Duration,
    },
    /// A hashed wheel without slots, or with more than 2^30.
    TicksPerWheel {
        /// What was given.
        given: usize,
    },
    /// A bound of zero.
    MaxPendingTimeouts {
        /// What was given.
        given: usize,
    },
    /// A name that no thread can bear.
    Name {
        /// What was given.
        given: String,
    },
}

impl BuildError {
    /// The shortest tick.
    pub(crate) const MIN_TICK: Duration = Duration::from_micros(1);
    /// The longest tick: 365 days.
    pub(crate) const MAX_TICK: Duration = Duration::from_secs(365 * 86_400);
    /// The most slots of a hashed wheel.
    pub(crate) const MAX_SLOTS: usize = 1 << 30;
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TickDuration { given } => {
                write!(f, "tick duration {given:?}: allowed is {:?} to {:?}", Self::MIN_TICK, Self::MAX_TICK)
            }
            Self::TicksPerWheel { given } => {
                write!(f, "{given} ticks per wheel: allowed is 1 to {}", Self::MAX_SLOTS)
            }
            Self::MaxPendingTimeouts { given } => {
                write!(f, "a bound of {given} pending timeouts: allowed is 1 or more")
            }
            Self::Name { given } => write!(f, "the name {given:?}: a NUL character is not allowed in it"),
        }
    }
}

impl Error for BuildError {}
