//! The configuration of a timer, and its checks.

use crate::error::BuildError;
use crate::sync::Arc;
use std::time::Duration;

/// The wheel of a timer.
///
/// # Examples
///
/// ```
/// use timer_core::{Timer, WheelKind};
///
/// assert_eq!(WheelKind::default(), WheelKind::Hierarchical);
/// let timer = Timer::builder().wheel(WheelKind::Hashed { ticks_per_wheel: 512 }).build()?;
/// # Ok::<(), timer_core::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum WheelKind {
    /// Hierarchical wheels, scheme 7 of Varghese and Lauck (1987), as in Kafka. Distant timeouts
    /// wait in coarse levels and cascade down. Good for any delay and any number of timeouts. This
    /// is the default.
    #[default]
    #[doc(alias = "TimingWheel")]
    Hierarchical,
    /// One wheel with rounds, scheme 6 of Varghese and Lauck (1987), as in Netty. Good if most
    /// delays are shorter than one round and many timeouts are due in each tick. A tick in which a
    /// timeout is due reads all timeouts of its list, about 256.
    #[doc(alias = "HashedWheelTimer")]
    Hashed {
        /// The number of ticks of one round, 1 to 2^30, rounded up to a power of two. Netty's
        /// default is 512.
        ticks_per_wheel: usize,
    },
}

/// The treatment of the runs that a fixed rate has missed, and of the missed ticks of an
/// [`Interval`](crate::Interval).
///
/// A run is missed if it is late by more than one tick of the wheel. A tick of an interval must
/// also be late by more than 5 ms. A period that is shorter than the tick of the wheel therefore
/// loses nothing. The runs that fall into one tick take place one after the other at its end.
///
/// Fixed rates [skip](Self::Skip) by default, and intervals [burst](Self::Burst), as in tokio.
///
/// # Examples
///
/// ```
/// use timer_core::{MissedTickBehavior, Timer};
///
/// let timer = Timer::builder().missed_runs(MissedTickBehavior::Delay).build()?;
/// # Ok::<(), timer_core::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[doc(alias = "MissedRuns")]
pub enum MissedTickBehavior {
    /// Missed runs take place one right after the other until the task has caught up, as in the
    /// JDK.
    #[default]
    Burst,
    /// Missed runs do not take place. The next run is one period after the late one, so the phase
    /// moves.
    Delay,
    /// Missed runs do not take place. The phase is kept, because the next run is a multiple of the
    /// period after the first one.
    Skip,
}

/// The thread or driver that takes the turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DrivenBy {
    /// A thread of the timer, which starts with the first timeout.
    Worker,
    /// A driver that the user calls, on the real clock.
    Driver,
    /// A driver that the user calls and that also moves the time.
    ManualDriver,
}

/// A function of the user's that is called without arguments.
pub(crate) type Hook = Arc<dyn Fn() + Send + Sync>;

/// The length of a tick that the builder does not set. A run is late by up to one tick, and half of
/// them by half a tick. No other code repeats the length. It is in the documentation of
/// [`TimerBuilder::DEFAULT_TICK`](crate::TimerBuilder::DEFAULT_TICK), and the figures of
/// `book/choosing.md` and `book/coming_from.md` belong to it. The bench sets its own ticks.
pub(crate) const DEFAULT_TICK: Duration = Duration::from_millis(1);

/// The choices of a [`TimerBuilder`](crate::TimerBuilder).
pub(crate) struct Config {
    pub(crate) name: String,
    pub(crate) tick: Duration,
    pub(crate) wheel: WheelKind,
    pub(crate) max_pending: Option<usize>,
    pub(crate) missed_runs: MissedTickBehavior,
    /// Whether callers may sleep while the worker is overloaded.
    pub(crate) may_sleep: bool,
    /// Called on the worker's thread at its start.
    pub(crate) on_worker_start: Option<Hook>,
    /// `None` stands for one per CPU.
    pub(crate) shards: Option<usize>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: "timer".to_owned(),
            tick: DEFAULT_TICK,
            wheel: WheelKind::default(),
            max_pending: None,
            missed_runs: MissedTickBehavior::Skip,
            may_sleep: true,
            on_worker_start: None,
            shards: None,
        }
    }
}

impl Config {
    /// Returns an error for the first choice that is out of range.
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
