//! The lateness of runs, split by its causes.

use super::counter::Counter;
use crate::deadline::Nanos;
use std::fmt;
use std::time::{Duration, Instant};

pub(super) const CAUSES: usize = LateCause::ALL.len();

/// A cause for which a run is late.
///
/// # Examples
///
/// ```
/// use timer_core::{LateCause, Timer};
///
/// let lateness = Timer::new().stats().lateness;
/// for cause in LateCause::ALL {
///     println!("{cause}: {:?}", lateness.part(cause));
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LateCause {
    /// The wheel rounds deadlines up to a tick. A shorter
    /// [`tick_duration`](crate::TimerBuilder::tick_duration) helps.
    Tick,
    /// The worker did not run. The system woke it late or, as Linux tells, gave its CPU to another
    /// thread, or a driver's owner took its turn late.
    System,
    /// The worker waited for the lock of a shard, whose holder was preempted.
    Lock,
    /// Tasks ran on the worker. This includes the batch of the run itself, so a slow task counts
    /// its own duration. An [executor](crate::TimerBuilder::executor) with threads helps.
    Tasks,
    /// The worker was busy with the timer's own work, because many timeouts were due.
    Turn,
    /// The task waited for a thread of the executor, or the executor held up the worker. The
    /// threads may be busy with tasks, and those of rayon's global pool with parallel jobs of the
    /// program.
    Executor,
}

impl LateCause {
    /// All causes, in the order in which they come up.
    pub const ALL: [LateCause; 6] = [Self::Tick, Self::System, Self::Lock, Self::Tasks, Self::Turn, Self::Executor];

    /// Returns the name of the cause in metrics, such as `"tick"`.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(timer_core::LateCause::Executor.as_str(), "executor");
    /// ```
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tick => "tick",
            Self::System => "system",
            Self::Lock => "lock",
            Self::Tasks => "tasks",
            Self::Turn => "turn",
            Self::Executor => "executor",
        }
    }
}

impl fmt::Display for LateCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The time by which a run was late, or many runs together, as one part for each [`LateCause`].
///
/// # Examples
///
/// ```
/// let lateness = timer_core::Timer::new().stats().lateness;
/// assert!(lateness.total().is_zero() && lateness.main_cause().is_none());
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Lateness {
    parts: [Nanos; CAUSES],
}

impl Lateness {
    /// Returns the part that `cause` has.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_core::{LateCause, Lateness};
    /// assert!(Lateness::default().part(LateCause::Tick).is_zero());
    /// ```
    pub fn part(&self, cause: LateCause) -> Duration {
        Duration::from_nanos(self.part_nanos(cause))
    }

    /// Returns the sum of all parts.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(timer_core::Lateness::default().total().is_zero());
    /// ```
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.nanos())
    }

    /// Returns the cause with the largest part, or `None` if nothing was late.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(timer_core::Lateness::default().main_cause(), None);
    /// ```
    pub fn main_cause(&self) -> Option<LateCause> {
        LateCause::ALL.into_iter().max_by_key(|cause| self.part(*cause)).filter(|cause| !self.part(*cause).is_zero())
    }

    /// Returns the lateness that was added after `earlier`, an older lateness of the same timer.
    ///
    /// # Examples
    ///
    /// The main cause of the last minute:
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::{LateCause, Timer};
    ///
    /// let (timer, mut driver) = Timer::builder().build_driven()?;
    /// let minute_ago = timer.stats().lateness;
    /// timer.new_timeout(Duration::from_millis(1), |_| {})?;
    /// let begin = std::time::Instant::now();
    /// while begin.elapsed() < Duration::from_millis(5) {}
    /// driver.turn();
    /// let minute = timer.stats().lateness.since(&minute_ago);
    /// assert_eq!(minute.main_cause(), Some(LateCause::System));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "difference")]
    #[must_use]
    pub fn since(&self, earlier: &Lateness) -> Lateness {
        let part = |cause: usize| self.parts[cause].saturating_sub(earlier.parts[cause]);
        Lateness { parts: std::array::from_fn(part) }
    }

    /// Returns the part that `cause` has.
    pub(crate) fn part_nanos(&self, cause: LateCause) -> Nanos {
        self.parts[cause as usize]
    }

    /// Returns the sum of all parts.
    pub(crate) fn nanos(&self) -> Nanos {
        self.parts.iter().sum()
    }

    #[inline]
    pub(crate) fn add(&mut self, cause: LateCause, nanos: Nanos) {
        let part = &mut self.parts[cause as usize];
        *part = part.wrapping_add(nanos);
    }
}

impl fmt::Debug for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(LateCause::ALL.map(|cause| (cause.as_str(), self.part(cause)))).finish()
    }
}

/// A run that was late, as returned by [`Timer::worst`](crate::Timer::worst).
///
/// # Examples
///
/// ```
/// use timer_core::Timer;
///
/// for run in Timer::new().worst() {
///     println!("{} was late by {:?}: {:?}", run.task, run.lateness.total(), run.lateness);
/// }
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct LateRun {
    /// The name of the task, which is the name of its type unless
    /// [`TimerTask::name`](crate::TimerTask::name) returns another one.
    pub task: &'static str,
    /// The name of the task on the worker for which it waited longest, if tasks took at least a
    /// tenth of the time. Tasks of several names in one batch cannot be told apart, so such a batch
    /// has no name.
    pub behind: Option<&'static str>,
    /// The time by which it was late.
    pub lateness: Lateness,
    /// The time at which it ran or was handed over.
    pub at: Instant,
}

/// The lateness of all runs of a timer.
#[derive(Default)]
pub(crate) struct LatenessTotals {
    /// Written by the turn's thread.
    parts: [Counter; CAUSES],
    /// The waits in the queue of an executor. Any thread writes.
    queued: Counter,
}

impl LatenessTotals {
    /// Adds the lateness of some runs.
    #[inline]
    pub(crate) fn add(&self, sums: &Lateness) {
        for (total, part) in self.parts.iter().zip(sums.parts).filter(|(_, part)| *part > 0) {
            total.add(part);
        }
    }

    /// Adds the wait of one run in the queue of an executor.
    pub(crate) fn add_queued(&self, nanos: Nanos) {
        self.queued.add_contended(nanos);
    }

    pub(crate) fn get(&self) -> Lateness {
        let mut sum = Lateness { parts: std::array::from_fn(|cause| self.parts[cause].get()) };
        sum.add(LateCause::Executor, self.queued.get());
        sum
    }
}
