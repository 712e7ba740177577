//! What a timer can be built with, and what of it is refused.

use crate::error::BuildError;
use crate::sync::{Arc, cpu, thread_slot};
use std::fmt;
use std::time::Duration;

/// Which wheel a timer uses.
///
/// # Examples
///
/// ```
/// use timer_core::{Timer, WheelKind};
///
/// let timer = Timer::builder().wheel(WheelKind::Hashed { ticks_per_wheel: 512 }).build()?;
/// # Ok::<(), timer_core::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WheelKind {
    /// Hierarchical wheels, scheme 7 of Varghese and Lauck (1987), as in Kafka: far timeouts wait in coarse levels and are
    /// cascaded down. Any delay, any number of timeouts; the default.
    #[default]
    #[doc(alias = "TimingWheel")]
    Hierarchical,
    /// One wheel with rounds, scheme 6 of Varghese and Lauck (1987), as in Netty. Good when most delays are shorter than
    /// the wheel; a tick with something due walks all entries of its bucket.
    #[doc(alias = "HashedWheelTimer")]
    Hashed {
        /// How many ticks one round has: 1 to 2^30, rounded up to a power of two. Netty's default is 512.
        ticks_per_wheel: usize,
    },
}

/// What a fixed rate does about the runs it has missed.
///
/// # Examples
///
/// ```
/// use timer_core::{MissedRuns, Timer};
///
/// let timer = Timer::builder().missed_runs(MissedRuns::Burst).build()?;
/// # Ok::<(), timer_core::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MissedRuns {
    /// They do not take place; the next run is at the next multiple of the period after the first one (the default).
    #[default]
    Skip,
    /// They take place one right after the other, until the task has caught up, as in the JDK.
    Burst,
    /// They do not take place; the next run is one period after the late one, so the phase moves.
    Delay,
}

/// What takes the turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DrivenBy {
    /// A thread of the timer's own, started with the first timeout.
    Worker,
    /// A driver in the user's hands, on the real clock.
    Driver,
    /// A driver in the user's hands, which also moves the time.
    ManualDriver,
}

/// By what callers are spread among the shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpreadBy {
    /// The CPU that the caller runs on just now.
    Cpu,
    /// The caller's thread, where the system does not tell the CPU.
    Thread,
}

impl SpreadBy {
    /// The caller's number: callers of different numbers go to different shards, if there are as many.
    #[inline]
    pub(crate) fn number(self) -> usize {
        match self {
            SpreadBy::Cpu => cpu(),
            SpreadBy::Thread => thread_slot(),
        }
    }
}

/// A function of the user's that is called without arguments.
pub(crate) type Hook = Arc<dyn Fn() + Send + Sync>;

/// The choices of a [`TimerBuilder`](crate::TimerBuilder).
#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) name: String,
    pub(crate) tick: Duration,
    pub(crate) wheel: WheelKind,
    pub(crate) max_pending: Option<usize>,
    pub(crate) missed_runs: MissedRuns,
    /// Whether callers may sleep while the worker is overloaded.
    pub(crate) may_sleep: bool,
    /// Called on the worker's thread at its start.
    pub(crate) on_worker_start: Option<Hook>,
    /// `None`: one per CPU.
    pub(crate) shards: Option<usize>,
    pub(crate) spread: SpreadBy,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config").field("name", &self.name).field("tick", &self.tick).finish_non_exhaustive()
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: "timer".to_owned(),
            tick: Duration::from_millis(1),
            wheel: WheelKind::default(),
            max_pending: None,
            missed_runs: MissedRuns::default(),
            may_sleep: true,
            on_worker_start: None,
            shards: None,
            spread: SpreadBy::Cpu,
        }
    }
}

impl Config {
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        if self.tick < BuildError::MIN_TICK || self.tick > BuildError::MAX_TICK {
            return Err(BuildError::TickDuration { given: self.tick });
        }
        if let WheelKind::Hashed { ticks_per_wheel: given } = self.wheel {
            if given == 0 || given > BuildError::MAX_SLOTS {
                return Err(BuildError::TicksPerWheel { given });
            }
        }
        if self.max_pending == Some(0) {
            return Err(BuildError::MaxPendingTimeouts { given: 0 });
        }
        if self.name.contains('\0') {
            return Err(BuildError::Name { given: self.name.clone() });
        }
        Ok(())
    }
}
