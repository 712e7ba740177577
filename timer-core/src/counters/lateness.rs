//! The causes of the lateness of runs, and the lateness of all runs of a timer.

use super::counter::Counter;
use crate::deadline::Nanos;
use std::time::Instant;

crate::late_causes! {
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
    /// assert_eq!(LateCause::Executor.as_str(), "executor");
    /// ```
    pub enum LateCause {
        /// The wheel rounds deadlines up to a tick. A shorter
        /// [`tick_duration`](crate::TimerBuilder::tick_duration) helps.
        Tick = "tick",
        /// The worker did not run. The system woke it late or, as Linux tells, gave its CPU to
        /// another thread, or a driver's owner took its turn late.
        System = "system",
        /// The CPU quota of the process, such as that of a container, stopped the worker. Known on
        /// Linux only, and only if more than 10 ms of the lateness would otherwise be `System`. A
        /// higher quota or fewer busy threads help.
        Quota = "quota",
        /// The worker waited for the lock of a shard, whose holder was preempted.
        Lock = "lock",
        /// Tasks ran on the worker. This includes the batch of the run itself, so a slow task
        /// counts its own duration. An [executor](crate::TimerBuilder::executor) with threads
        /// helps.
        Tasks = "tasks",
        /// The worker was busy with the timer's own work, because many timeouts were due.
        Turn = "turn",
        /// The task waited for a thread of the executor, or the executor held up the worker. The
        /// threads may be busy with tasks, and those of rayon's global pool with parallel jobs of
        /// the program.
        Executor = "executor",
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
pub type Lateness = crate::lateness::Lateness<LateCause>;

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
    parts: [Counter; LateCause::ALL.len()],
    /// The waits in the queue of an executor. Any thread writes.
    queued: Counter,
}

impl LatenessTotals {
    /// Adds the lateness of some runs.
    #[inline]
    pub(crate) fn add(&self, sums: &Lateness) {
        for (total, part) in self.parts.iter().zip(sums.as_nanos()).filter(|(_, part)| **part > 0) {
            total.add(*part);
        }
    }

    /// Adds the wait of one run in the queue of an executor.
    pub(crate) fn add_queued(&self, nanos: Nanos) {
        self.queued.add_contended(nanos);
    }

    pub(crate) fn get(&self) -> Lateness {
        let mut sum = Lateness::default();
        LateCause::ALL.iter().zip(&self.parts).for_each(|(cause, part)| sum.add_nanos(*cause, part.get()));
        sum.add_nanos(LateCause::Executor, self.queued.get());
        sum
    }
}
