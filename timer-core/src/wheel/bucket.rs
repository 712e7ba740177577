//! A bucket of the hierarchical wheel, which has the values of one span of ticks.
//!
//! A bucket is an array and not a linked list, because an expiry and a cascade read all of it in
//! sequence. A removal leaves a vacant slot, and a later insertion fills it. So a removal moves no
//! other value, and its slot is usually still in the cache when it is filled.
//!
//! *Upkeep.* A removal that leaves few values in its chunk restores the bounds on the memory. A
//! sparse chunk becomes the open one, which insertions fill. If the open one is sparse as well, the
//! values move there. If the bucket has no other chunk, the sparse one is replaced by a shorter
//! one, which takes less than 1 KiB. So the capacity stays within four times the number of values
//! plus a chunk, and one removal moves less than a quarter of a chunk.
//!
//! A bucket caches the earliest of its deadlines. An insertion keeps it exact. A removal from a
//! bucket of many values leaves it unchanged, because the new minimum could only be found by
//! reading the whole bucket. The cached value is then a lower bound. Every `u64` is a legal
//! deadline, so none of them marks an empty bucket.

use super::discarded::Discarded;
use super::location::{Location, Tracker};
use super::slots::{CHUNK, Entry, MIN_UPKEEP, Slots};

/// The number of the bucket of overdue values.
pub(super) const OVERDUE: u32 = u32::MAX - 1;

/// A removal that leaves at most this many values in a bucket leaves its earliest deadline exact.
/// Only a bucket of one chunk has so few, because a chunk that is not open has more.
const MAX_REREAD: usize = MIN_UPKEEP;
const _: () = assert!(cfg!(test) || CHUNK / 4 > MAX_REREAD);

/// The values of one span of ticks.
pub(super) struct Bucket<V> {
    pub(super) slots: Slots<V>,
    /// A lower bound of the deadlines. That of an empty bucket is `u64::MAX`, which is also a legal
    /// deadline.
    pub(super) earliest: u64,
}

impl<V> Bucket<V> {
    pub(super) fn new() -> Self {
        Bucket { slots: Slots::default(), earliest: u64::MAX }
    }

    /// Inserts a value and calls `placed` with its location. Returns `true` if the caller must mark
    /// the bucket as occupied. A superfluous `true` does no harm. `id` is the number of this
    /// bucket.
    #[inline(always)]
    pub(super) fn push(&mut self, id: u32, deadline: u64, value: V, placed: impl FnOnce(&V, Location)) -> bool {
        self.earliest = self.earliest.min(deadline);
        self.slots.insert(deadline, value, |value, position| placed(value, Location::new(id, position)))
    }

    /// Removes the value at `position` if there is one and it is `wanted`. If this returns `true`
    /// as well, the caller must [`keep_up`](Self::keep_up) the bucket.
    #[inline]
    pub(super) fn remove(&mut self, position: u32, wanted: impl FnOnce(&V) -> bool) -> Option<(Entry<V>, bool)> {
        let (chunk, position) = self.slots.chunk_mut(position as usize)?;
        let removed = chunk.remove(position, wanted)?;
        Some((removed, chunk.len < chunk.upkeep_below))
    }

    /// Restores the bounds on the memory and on the earliest deadline after a value at `position`
    /// with the deadline `removed` has left.
    pub(super) fn keep_up(
        &mut self,
        id: u32,
        position: u32,
        removed: u64,
        tracker: &mut impl Tracker<V>,
        discarded: &mut Discarded<V>,
    ) {
        let moved = |value: &V, position| tracker.moved(value, Location::new(id, position));
        self.slots.keep_up(position as usize, moved, discarded);
        if !self.slots.is_short() {
            return;
        }
        let len = self.slots.open.len as usize;
        if len == MAX_REREAD || (len < MAX_REREAD && removed == self.earliest) || len == 0 {
            self.earliest = self.slots.iter().fold(u64::MAX, |min, (deadline, _)| min.min(deadline));
        }
    }

    /// Exchanges the slots for those of `empty` in O(1). The bucket is empty afterwards. Returns
    /// the memory of `empty` unless it is small.
    #[must_use]
    pub(super) fn take(&mut self, empty: &mut Slots<V>) -> Slots<V> {
        self.earliest = u64::MAX;
        self.slots.take(empty)
    }
}

#[cfg(test)]
mod tests;
