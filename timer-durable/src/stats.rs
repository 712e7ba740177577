//! Figures about a timer.

use crate::store::Membership;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The upper bounds of the buckets of a [`Histogram`], from 100 us to 1 min. A last bucket has no
/// bound.
pub const BOUNDS: [Duration; 18] = [
    Duration::from_micros(100),
    Duration::from_micros(200),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_millis(2),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(20),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_secs(60),
];

/// Counts of durations by [`BOUNDS`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Histogram {
    /// The number of durations per bucket; the last one counts those beyond the last bound.
    pub counts: [u64; BOUNDS.len() + 1],
    /// The sum of all durations.
    pub sum: Duration,
    /// The longest duration.
    pub max: Duration,
}

impl Histogram {
    /// Returns the number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(crate) fn record(&mut self, duration: Duration) {
        self.counts[BOUNDS.partition_point(|bound| *bound < duration)] += 1;
        self.sum = self.sum.saturating_add(duration);
        self.max = self.max.max(duration);
    }
}

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
    /// number from the statistics of the server. The number is never less than
    /// [`in_memory`](Self::in_memory) and [`running`](Self::running) together.
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
    /// Attempts that succeeded.
    pub done: u64,
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
    /// Results that the store refused, because another attempt has begun or the timeout has ended.
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
    pub lag: Histogram,
    /// How long commits took.
    pub commit_time: Histogram,
    /// The place of this process among those that share the store, or `None` if the store belongs
    /// to one process.
    pub membership: Option<Membership>,
    /// Whether [`DurableTimer::stop`](crate::DurableTimer::stop) has returned. The numbers of
    /// timeouts and the membership are then those of the last turn.
    pub is_stopped: bool,
}

/// The figures that the keeper and `stop` write. The lock is not held while other code is called,
/// such as a store or the subscriber of an event.
#[derive(Debug, Default)]
pub(crate) struct Figures(Mutex<Stats>);

impl Figures {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Stats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
