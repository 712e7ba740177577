//! Figures about a timer.

use crate::histogram::Histogram;
use crate::lateness::DurableLateness;
use crate::store::Membership;
use crate::topic_stats::TopicStats;
use std::collections::BTreeMap;
use std::time::Instant;

/// The largest number of topics without a handler in this process that have figures of their own.
const MAX_FOREIGN: usize = 100;

/// Figures about a timer since its start.
///
/// The figures are a copy of one moment, which may be in the middle of a turn of the keeper. They
/// agree with each other at quiet times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Stats {
    /// Timeouts that are pending or running, of all processes that share the store. `None` if the
    /// store does not know the number, because counting is too expensive.
    ///
    /// An SQLite store counts in the background after it was opened, and is exact from then on. A
    /// PostgreSQL store looks once a minute. It counts up to 20,000 timeouts, and takes a larger
    /// number from the statistics of the server, or from a sample if there are none. The number is
    /// never less than [`in_memory`](Self::in_memory) and [`running`](Self::running) together.
    pub pending: Option<u64>,
    /// Timeouts in memory.
    pub in_memory: u64,
    /// Attempts that have begun and not ended.
    pub running: u64,
    /// Timeouts in memory that are due and have not begun, as of the last turn of the keeper. While
    /// no handler can start, the keeper takes a turn only for calls and ends of attempts.
    pub due: u64,
    /// Timeouts that were scheduled by this process.
    pub scheduled: u64,
    /// Timeouts that were cancelled by this process.
    pub cancelled: u64,
    /// Attempts that have begun.
    pub begun: u64,
    /// Attempts that succeeded, or that a transaction of another client has ended.
    pub done: u64,
    /// Attempts that failed, because their handlers returned an error or panicked, or because they
    /// were cut off.
    pub failed: u64,
    /// Attempts that are repeated.
    pub retried: u64,
    /// Attempts that were neither done nor failed, and run again later.
    pub postponed: u64,
    /// Attempts that were cut off at the time limit of their topic.
    pub timed_out: u64,
    /// Timeouts that became dead letters.
    pub buried: u64,
    /// Timeouts that were too late to begin.
    pub expired: u64,
    /// Attempts of topics without a handler.
    pub without_handler: u64,
    /// Results that the store refused after this process had joined it again, because another
    /// attempt has begun or the timeout has ended.
    pub refused: u64,
    /// Batches that were committed.
    pub commits: u64,
    /// Parts of all commits. Divided by [`commits`](Self::commits) it is the mean size of a batch.
    pub operations: u64,
    /// Failures of the store.
    pub store_errors: u64,
    /// New instances after a lost answer or a take-over.
    pub rejoins: u64,
    /// Turns of the keeper. While idle it takes one for each look at the wall clock (SQLite, every
    /// 30 s if timeouts are pending) and each renewal (PostgreSQL).
    pub turns: u64,
    /// Positions that were read from the store.
    pub loaded: u64,
    /// How late attempts have begun on the store's clock.
    #[cfg_attr(feature = "serde", serde(with = "crate::serde_form::histogram"))]
    pub lag: Histogram,
    /// The time by which all attempts have begun late, by cause. It also has the wait for a thread
    /// of the executor, and the time before the run was put back for lack of a handler, which
    /// [`lag`](Self::lag) leaves out.
    #[cfg_attr(feature = "serde", serde(with = "crate::serde_form::lateness"))]
    pub lateness: DurableLateness,
    /// How long commits took.
    #[cfg_attr(feature = "serde", serde(with = "crate::serde_form::histogram"))]
    pub commit_time: Histogram,
    /// The place of this process among those that share the store, or `None` if the store belongs
    /// to one process.
    pub membership: Option<Membership>,
    /// Whether [`DurableTimer::stop`](crate::DurableTimer::stop) has returned. The numbers of
    /// timeouts and the membership are then those of the last turn.
    pub is_stopped: bool,
    /// Figures for each topic with a handler in this process or named by
    /// [`topic_elsewhere`](crate::DurableTimerBuilder::topic_elsewhere), and for up to 100 others
    /// that this process has met. Further topics count in the other figures alone.
    pub topics: BTreeMap<String, TopicStats>,
    /// The number of others in `topics`.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) foreign_topics: usize,
    /// The instant at which the ages of due timeouts were right.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) looked: Option<Instant>,
}

impl Stats {
    /// Changes the figures of a topic, unless there are too many topics.
    pub(crate) fn change_topic(&mut self, name: &str, change: impl FnOnce(&mut TopicStats)) {
        if let Some(topic) = self.topics.get_mut(name) {
            change(topic);
        } else if self.foreign_topics < MAX_FOREIGN {
            self.foreign_topics += 1;
            change(self.topics.entry(name.to_owned()).or_default());
        }
    }
}
