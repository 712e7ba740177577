//! The causes of the lateness of attempts.

use crate::TimeoutId;
use std::time::Instant;

timer_core::late_causes! {
    /// A cause for which an attempt begins late.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_durable::{DurableLateCause, DurableTimer, MemoryStore};
    ///
    /// let (timer, _driver) = DurableTimer::builder().build_manual(MemoryStore::new())?;
    /// let lateness = timer.stats().lateness;
    /// for cause in DurableLateCause::ALL {
    ///     println!("{cause}: {:?}", lateness.part(cause));
    /// }
    /// # Ok::<(), timer_durable::Error>(())
    /// ```
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
    #[doc(alias = "LateCause")]
    pub enum DurableLateCause {
        /// No process could begin it. The timer was not open, another node owned the timeout and
        /// then died or stopped, or the lease of this node was over.
        Lease = "lease",
        /// The run was put back, because there was no handler for its topic, or because an attempt
        /// that had begun was not started before its timer stopped or lost its lease.
        PutBack = "put_back",
        /// The topic was [paused](crate::DurableTimer::pause).
        Paused = "paused",
        /// The [rate](crate::DurableTimerBuilder::rate) of the topic, or the
        /// [rate of overdue timeouts](crate::DurableTimerBuilder::overdue_rate).
        Rate = "rate",
        /// Too many attempts were in flight, by the
        /// [limit](crate::DurableTimerBuilder::max_running) of the timer or the topic. Overdue
        /// timeouts and those that waited for their topic use at most half of the places of a
        /// timer.
        Places = "places",
        /// The store was at work or had failed. A commit took long, a transaction of the user ran,
        /// or another transaction kept the timeout locked. The step that begins an attempt takes
        /// one commit.
        Store = "store",
        /// The keeper was not woken in time, was busy with its own work, or the store's clock was
        /// set forward. On a shared store, this includes the time until the keeper learns of a
        /// timeout that another program has written.
        System = "system",
        /// The CPU quota of the process, such as that of a container, stopped the keeper. Known
        /// on Linux only, and only if more than 10 ms of the lateness would otherwise be `System`.
        Quota = "quota",
        /// The attempt had begun and waited for a thread of the executor, or the executor accepted
        /// no tasks or held up the keeper.
        Executor = "executor",
    }
}

/// The time by which an attempt began late, or many attempts together, as one part for each
/// [`DurableLateCause`]. The parts add up to the time from the due time to the start of the
/// handler.
///
/// # Examples
///
/// ```
/// use timer_durable::{DurableTimer, MemoryStore};
///
/// let (timer, _driver) = DurableTimer::builder().build_manual(MemoryStore::new())?;
/// assert_eq!(timer.stats().lateness.main_cause(), None);
/// # Ok::<(), timer_durable::Error>(())
/// ```
#[doc(alias = "Lateness")]
pub type DurableLateness = timer_core::lateness::Lateness<DurableLateCause>;

/// An attempt that began late, as returned by [`DurableTimer::worst`](crate::DurableTimer::worst).
#[derive(Clone, Debug)]
#[non_exhaustive]
#[doc(alias = "LateRun")]
pub struct DurableLateRun {
    /// The id of the timeout.
    pub id: TimeoutId,
    /// The topic.
    pub topic: String,
    /// The key, unless [`hide_keys`](crate::DurableTimerBuilder::hide_keys) leaves keys out.
    pub key: Option<String>,
    /// The number of the attempt.
    pub attempt: u32,
    /// The time by which it was late.
    pub lateness: DurableLateness,
    /// The instant at which its handler started, or at which it was found too late to begin.
    pub at: Instant,
}
