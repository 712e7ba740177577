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
pub(crate) struct Bucket<V> {
    pub(super) slots: Slots<V>,
    /// A lower bound of the deadlines. That of an empty bucket is `u64::MAX`, which is also a legal
    /// deadline.
    pub(super) earliest: u64,
    /// The number of values.
    pub(super) len: u32,
}

impl<V> Bucket<V> {
    pub(super) fn new() -> Self {
        Bucket { slots: Slots::default(), earliest: u64::MAX, len: 0 }
    }

    /// Inserts a value and reports its location. Returns `true` if the caller must mark the bucket
    /// as occupied. A superfluous `true` does no harm. `id` is the number of this bucket.
    #[inline(always)]
    pub(super) fn push(
        &mut self,
        id: u32,
        entry: Entry<V>,
        tracker: &mut impl Tracker<V>,
        discarded: &mut Discarded<V>,
    ) -> bool {
        self.earliest = self.earliest.min(entry.0);
        self.len += 1;
        self.slots.insert(entry, discarded, |value, position| tracker.moved(value, Location::new(id, position)))
    }

    /// Removes the value at `position` if there is one and it is `wanted`. If this returns `true`
    /// as well, the caller must [`keep_up`](Self::keep_up) the bucket.
    #[inline]
    pub(super) fn remove(&mut self, position: u32, wanted: impl FnOnce(&V) -> bool) -> Option<(Entry<V>, bool)> {
        let (chunk, position) = self.slots.chunk_mut(position as usize)?;
        let removed = chunk.remove(position, wanted)?;
        self.len -= 1;
        Some((removed, chunk.needs_upkeep()))
    }

    /// Removes the value at `position`, whose slot must have one. Does not read a value that needs
    /// no drop. If this returns `true`, the caller must [`keep_up`](Self::keep_up) the bucket.
    #[inline]
    pub(super) fn vacate(&mut self, position: u32) -> bool {
        let Some((chunk, position)) = self.slots.chunk_mut(position as usize) else { return false };
        chunk.vacate(position);
        self.len -= 1;
        chunk.needs_upkeep()
    }

    /// Removes the values of a chunk whose deadlines are `chosen`, and calls `each` with them. The
    /// earliest deadline then covers the others. If this returns `true`, the caller must
    /// [`keep_up`](Self::keep_up) the bucket.
    #[inline]
    pub(super) fn extract(&mut self, number: usize, chosen: impl Fn(u64) -> bool, each: impl FnMut(Entry<V>)) -> bool {
        let Some((chunk, _)) = self.slots.chunk_mut(number * CHUNK) else { return false };
        let before = chunk.len;
        self.earliest = self.earliest.min(chunk.extract(chosen, each));
        self.len -= before - chunk.len;
        chunk.needs_upkeep()
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
        let len = self.len as usize;
        if len == 0 {
            return self.empty(discarded);
        }
        let moved = |value: &V, position| tracker.moved(value, Location::new(id, position));
        self.slots.keep_up(position as usize, moved, discarded);
        if len == MAX_REREAD || (len < MAX_REREAD && removed == self.earliest) {
            self.earliest = self.slots.iter().fold(u64::MAX, |min, (deadline, _)| min.min(deadline));
        }
    }

    /// Gives up the slots of a bucket without values. Keeps the memory if it is small.
    pub(super) fn empty(&mut self, discarded: &mut Discarded<V>) {
        self.earliest = u64::MAX;
        discarded.push_bucket(self.slots.empty());
    }

    /// Exchanges the slots for those of `due` in O(1), which must be empty. The bucket is empty
    /// afterwards. Returns the number of values.
    pub(super) fn take(&mut self, due: &mut Slots<V>, discarded: &mut Discarded<V>) -> usize {
        self.earliest = u64::MAX;
        discarded.push_bucket(self.slots.take(due));
        std::mem::take(&mut self.len) as usize
    }
}

#[cfg(test)]
mod tests;
