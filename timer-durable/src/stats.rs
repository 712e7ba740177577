//! Figures about a timer.

use crate::store::Membership;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
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
}

/// Figures about a timer since its start.
///
/// The figures are read without a lock, one after the other. They agree with each other at quiet
/// times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

/// A counter with one writer.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        // ORDERING: Relaxed, counts are only read for people.
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn set(&self, n: u64) {
        // ORDERING: Relaxed, as above.
        self.0.store(n, Ordering::Relaxed);
    }

    fn raise(&self, n: u64) {
        // ORDERING: Relaxed, as above.
        self.0.fetch_max(n, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        // ORDERING: Relaxed, as above.
        self.0.load(Ordering::Relaxed)
    }
}

/// The counts behind a [`Histogram`].
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    counts: [Counter; BOUNDS.len() + 1],
    nanos: Counter,
    max_nanos: Counter,
}

impl Recorder {
    pub(crate) fn record(&self, duration: Duration) {
        let bucket = BOUNDS.partition_point(|bound| *bound < duration);
        self.counts[bucket].add(1);
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.add(nanos);
        self.max_nanos.raise(nanos);
    }

    fn read(&self) -> Histogram {
        Histogram {
            counts: std::array::from_fn(|bucket| self.counts[bucket].get()),
            sum: Duration::from_nanos(self.nanos.get()),
            max: Duration::from_nanos(self.max_nanos.get()),
        }
    }
}

/// The figures that the keeper writes.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) in_memory: Counter,
    pub(crate) running: Counter,
    pub(crate) due: Counter,
    pub(crate) scheduled: Counter,
    pub(crate) cancelled: Counter,
    pub(crate) begun: Counter,
    pub(crate) done: Counter,
    pub(crate) retried: Counter,
    pub(crate) buried: Counter,
    pub(crate) expired: Counter,
    pub(crate) without_handler: Counter,
    pub(crate) refused: Counter,
    pub(crate) commits: Counter,
    pub(crate) operations: Counter,
    pub(crate) store_errors: Counter,
    pub(crate) rejoins: Counter,
    pub(crate) turns: Counter,
    pub(crate) loaded: Counter,
    pub(crate) lag: Recorder,
    pub(crate) commit_time: Recorder,
    membership: Mutex<Option<Membership>>,
    is_stopped: AtomicBool,
    /// The largest number stands for an unknown one.
    pending: Counter,
}

impl Figures {
    pub(crate) fn set_pending(&self, pending: Option<u64>) {
        self.pending.set(pending.unwrap_or(u64::MAX));
    }

    pub(crate) fn set_membership(&self, membership: Option<Membership>) {
        *self.membership.lock().unwrap_or_else(PoisonError::into_inner) = membership;
    }

    pub(crate) fn set_stopped(&self) {
        // ORDERING: Relaxed, as above.
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Stats {
        Stats {
            pending: Some(self.pending.get()).filter(|pending| *pending != u64::MAX),
            in_memory: self.in_memory.get(),
            running: self.running.get(),
            due: self.due.get(),
            scheduled: self.scheduled.get(),
            cancelled: self.cancelled.get(),
            begun: self.begun.get(),
            done: self.done.get(),
            retried: self.retried.get(),
            buried: self.buried.get(),
            expired: self.expired.get(),
            without_handler: self.without_handler.get(),
            refused: self.refused.get(),
            commits: self.commits.get(),
            operations: self.operations.get(),
            store_errors: self.store_errors.get(),
            rejoins: self.rejoins.get(),
            turns: self.turns.get(),
            loaded: self.loaded.get(),
            lag: self.lag.read(),
            commit_time: self.commit_time.read(),
            membership: self.membership.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            // ORDERING: Relaxed, as above.
            is_stopped: self.is_stopped.load(Ordering::Relaxed),
        }
    }
}
