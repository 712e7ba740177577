//! Counters that cost their owner no read-modify-write.

use crate::sync::{AtomicU64, Ordering};

/// A count with one privileged writer at a time (the holder of a latch, the owner of the turn) and any number of others.
///
/// Ground rule: [`add`](Self::add) is called only by whoever holds the right that the counter belongs to; the hand-over
/// of that right orders one owner's additions before the next one's. Everybody else uses [`add_shared`](Self::add_shared).
#[derive(Debug, Default)]
pub(crate) struct Tally {
    owner: AtomicU64,
    others: AtomicU64,
}

impl Tally {
    /// Adds `n`, by the owner.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        // ORDERING: Relaxed load, only the owner writes it and owners follow one another through their right's
        // release and acquire. Release store pairs with the load in `get`: a reader that counts an end has seen the start.
        let before = self.owner.load(Ordering::Relaxed);
        self.owner.store(before.wrapping_add(n), Ordering::Release);
    }

    /// Adds `n`, by anybody.
    pub(crate) fn add_shared(&self, n: u64) {
        // ORDERING: Release pairs with the load in `get`, as above.
        self.others.fetch_add(n, Ordering::Release);
    }

    /// Takes back an addition of `add_shared`.
    pub(crate) fn take_back(&self, n: u64) {
        // ORDERING: Release pairs with the load in `get`, as above.
        self.others.fetch_sub(n, Ordering::Release);
    }

    /// The sum so far.
    pub(crate) fn get(&self) -> u64 {
        // ORDERING: Acquire pairs with the Release of the additions.
        self.owner.load(Ordering::Acquire).wrapping_add(self.others.load(Ordering::Acquire))
    }
}

/// The bound on pending timeouts: a place is taken before a timeout is accepted and given back at its winning transition.
#[derive(Debug)]
pub(crate) struct Bound {
    max: usize,
    taken: crate::sync::AtomicUsize,
}

impl Bound {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, taken: crate::sync::AtomicUsize::new(0) }
    }

    /// Takes a place; `Err` has the bound.
    pub(crate) fn take(&self) -> Result<(), usize> {
        // ORDERING: Relaxed, the places are only counted; read-modify-writes of one word never hand out too many. The
        // timeout itself is published by the latch.
        self.taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| (taken < self.max).then_some(taken + 1))
            .map(drop)
            .map_err(|_| self.max)
    }

    /// Gives a place back.
    pub(crate) fn give_back(&self) {
        // ORDERING: Relaxed, as in `take`.
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many places are taken.
    pub(crate) fn taken(&self) -> usize {
        // ORDERING: Relaxed, a count of the moment; at quiet the threads that changed it have been joined or heard from.
        self.taken.load(Ordering::Relaxed)
    }
}
