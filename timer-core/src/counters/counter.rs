//! Counters, and the bound on pending timeouts.

use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// A count, which either has one writer at a time, the holder of a lock or the turn's thread, or is
/// written by any thread.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds `n` without a read-modify-write. Called by the only writer.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        // ORDERING: Relaxed load, because only the writer writes, and a writer passes its right on
        // by release and acquire. The Release store pairs with the load in `get`, so that a reader
        // that counts an end has seen the start.
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(before.wrapping_add(n), Ordering::Release);
    }

    /// Adds `n`. Called by any thread, if all of them call this.
    pub(crate) fn add_contended(&self, n: u64) {
        // ORDERING: Release pairs with the load in `get`, as in `add`.
        self.0.fetch_add(n, Ordering::Release);
    }

    /// Returns the count.
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        // ORDERING: Acquire pairs with the Release of the additions.
        self.0.load(Ordering::Acquire)
    }

    /// Resets the count for another timer. Called by the only writer.
    pub(crate) fn clear(&self) {
        // ORDERING: Relaxed, because the pool's lock passes the counter on.
        self.0.store(0, Ordering::Relaxed);
    }
}

/// The bound on pending timeouts, each of which has a permit.
#[derive(Debug)]
pub(crate) struct Limit {
    pub(crate) max: usize,
    acquired: AtomicUsize,
}

impl Limit {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, acquired: AtomicUsize::new(0) }
    }

    /// Acquires a permit. Returns `false` if there is none left.
    pub(crate) fn try_acquire(&self) -> bool {
        let one_more = |acquired: usize| (acquired < self.max).then_some(acquired + 1);
        // ORDERING: Relaxed, because read-modify-writes of one word never give out too many
        // permits. The shard's lock publishes the timeout itself.
        self.acquired.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }

    /// Releases a permit.
    pub(crate) fn release(&self) {
        // ORDERING: Relaxed, as in `try_acquire`.
        self.acquired.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the number of permits that are in use.
    pub(crate) fn acquired(&self) -> usize {
        // ORDERING: Relaxed, because the count is a snapshot. It is exact if all threads that
        // changed it have synchronized.
        self.acquired.load(Ordering::Relaxed)
    }
}
