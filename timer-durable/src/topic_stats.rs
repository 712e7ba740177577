//! Figures about one topic.

use crate::histogram::Histogram;
use crate::lateness::DurableLateness;
use std::time::Duration;

/// Figures about the timeouts of one topic, by this process since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct TopicStats {
    /// Attempts that have begun and not ended.
    pub running: u64,
    /// Timeouts that were scheduled.
    pub scheduled: u64,
    /// Timeouts that were cancelled by their keys. A cancel by an id does not name the topic, so it
    /// counts in [`Stats::cancelled`](crate::Stats::cancelled) alone.
    pub cancelled: u64,
    /// Attempts that have begun.
    pub begun: u64,
    /// Attempts that succeeded, or that a transaction of another client has ended.
    pub done: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Attempts that are repeated.
    pub retried: u64,
    /// Attempts that were neither done nor failed, and run again later.
    pub postponed: u64,
    /// Attempts that were cut off at the time limit.
    pub timed_out: u64,
    /// Timeouts that became dead letters.
    pub buried: u64,
    /// Timeouts that were too late to begin.
    pub expired: u64,
    /// How late attempts have begun on the store's clock.
    #[cfg_attr(feature = "serde", serde(with = "crate::serde_form::histogram"))]
    pub lag: Histogram,
    /// The time by which attempts have begun late, by cause, as in
    /// [`Stats::lateness`](crate::Stats::lateness).
    #[cfg_attr(feature = "serde", serde(default, with = "crate::serde_form::lateness"))]
    pub lateness: DurableLateness,
    /// The age of the oldest timeout that is due and has not begun, or zero. In a shared store
    /// another node may own the timeout.
    ///
    /// The keeper looks while a timeout has been due for a second, at most twice a second, so that
    /// the age is right from 1.5 seconds on. It grows between the looks. The keeper finds the
    /// oldest timeout of each topic that is paused or limited, and those of other topics among the
    /// 256 timeouts of the store that were due first. A timer that is being stopped begins nothing,
    /// so its ages are zero.
    pub oldest_due: Duration,
    /// Whether the topic is paused.
    pub is_paused: bool,
}
