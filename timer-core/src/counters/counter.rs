//! Counters that cost their owner no read-modify-write, and the bound on what is pending.

use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// A count with one writer at a time, who adds without a read-modify-write: the holder of a lock, or the owner of the turn.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// For the one writer.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        // ORDERING: Relaxed load, only the writer writes it, and writers follow one another through their right's release and
        // acquire. Release store pairs with the load in `get`: a reader that counts an end has seen the start.
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(before.wrapping_add(n), Ordering::Release);
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        // ORDERING: Acquire pairs with the Release of the additions.
        self.0.load(Ordering::Acquire)
    }

    /// For the one writer: begins anew, for another timer.
    pub(crate) fn clear(&self) {
        // ORDERING: Relaxed, the pool's lock hands the counter on.
        self.0.store(0, Ordering::Relaxed);
    }
}

/// A count that any thread adds to.
#[derive(Debug, Default)]
pub(crate) struct ContendedCounter(AtomicU64);

impl ContendedCounter {
    pub(crate) fn add_contended(&self, n: u64) {
        // ORDERING: Release pairs with the load in `get`, as in `Counter`.
        self.0.fetch_add(n, Ordering::Release);
    }

    pub(crate) fn get(&self) -> u64 {
        // ORDERING: Acquire pairs with the Release of the additions.
        self.0.load(Ordering::Acquire)
    }
}

/// How many timeouts may be pending: a permit for each.
#[derive(Debug)]
pub(crate) struct Limit {
    max: usize,
    acquired: AtomicUsize,
}

impl Limit {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, acquired: AtomicUsize::new(0) }
    }

    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// A permit more; `false` if there is none.
    pub(crate) fn try_acquire(&self) -> bool {
        let one_more = |acquired: usize| (acquired < self.max).then_some(acquired + 1);
        // ORDERING: Relaxed, the permits are only counted; read-modify-writes of one word never hand out too many. The
        // timeout itself is published by the shard's lock.
        self.acquired.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }

    pub(crate) fn release(&self) {
        // ORDERING: Relaxed, as in `try_acquire`.
        self.acquired.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn acquired(&self) -> usize {
        // ORDERING: Relaxed, a count of the moment; at quiet the threads that changed it have been joined or heard from.
        self.acquired.load(Ordering::Relaxed)
    }
}
