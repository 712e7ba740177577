//! A bucket of the hierarchical wheel, which has the values of one span of ticks.
//!
//! A bucket is an array and not a linked list, because an expiry and a cascade read all of it in
//! sequence. A removal leaves a vacant slot, and the next insertion fills it. So a removal moves no
//! other value, and its slot is usually still in the cache when it is filled. The vacant slots form
//! a doubly linked list, whose links take the place of the deadlines.
//!
//! A bucket that has become sparse is compacted. Each removal takes a few slots off the end of the
//! array and moves their values into vacant slots. The capacity stays within about four times the
//! number of values.
//!
//! A bucket caches the earliest of its deadlines. An insertion keeps it exact. A removal from a
//! bucket of many values leaves it unchanged, because the new minimum could only be found by
//! reading the whole bucket. The cached value is then a lower bound. Every `u64` is a legal
//! deadline, so none of them marks an empty bucket.

use super::chunks::{CHUNK, Chunks, MIN_CAPACITY};
use super::location::{Location, Tracker};

/// The number of the bucket of overdue values.
pub(super) const OVERDUE: u32 = u32::MAX - 1;

/// A removal from a bucket of at most this many values leaves the earliest deadline exact.
const MAX_REREAD: usize = 8;

/// The capacity of a bucket is at most this many times the number of its values, not counting a
/// chunk.
const MAX_VACANT_RATIO: usize = 4;

/// The number of slots that one removal takes off the end of a sparse bucket. It exceeds the ratio,
/// so compaction keeps up.
const COMPACTED_PER_REMOVAL: usize = 16;

/// The end of the list of vacant slots.
const END: u32 = u32::MAX;

/// The links of a vacant slot. The link to the previous one has no meaning in the first vacant slot
/// of the list.
const fn links(previous: u32, next: u32) -> u64 {
    (previous as u64) << 32 | next as u64
}

/// A value and the tick at which it is due.
pub(crate) type Entry<V> = (u64, V);

/// One element of a bucket, which is a value and its deadline, or no value and a link whose meaning
/// depends on the bucket's state.
pub(crate) type Slot<V> = (u64, Option<V>);

/// The slots of a bucket, or the due values that a step of a wheel takes out.
pub(crate) type Slots<V> = Chunks<Slot<V>>;

/// The values of one span of ticks.
pub(super) struct Bucket<V> {
    slots: Slots<V>,
    /// Not later than any deadline in the bucket, and `u64::MAX` if there is none.
    earliest: u64,
    /// The number of vacant slots.
    vacancies: u32,
    /// The first slot of the list of vacant slots, or [`END`].
    vacant: u32,
}

impl<V> Bucket<V> {
    pub(super) const fn new() -> Self {
        Bucket { slots: Chunks::new(), earliest: u64::MAX, vacancies: 0, vacant: END }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.vacancies as usize
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns a lower bound of the deadlines. The bound of an empty bucket is `u64::MAX`, which is
    /// also a legal deadline.
    #[inline]
    pub(super) fn earliest(&self) -> u64 {
        self.earliest
    }

    #[inline]
    pub(super) fn get(&self, position: u32) -> Option<(u64, &V)> {
        let (deadline, value) = self.slots.get(position as usize)?;
        value.as_ref().map(|value| (*deadline, value))
    }

    #[inline]
    pub(super) fn get_mut(&mut self, position: u32) -> Option<&mut V> {
        self.slots.get_mut(position as usize)?.1.as_mut()
    }

    /// Returns the values with their deadlines.
    pub(super) fn values(&self) -> impl Iterator<Item = (u64, &V)> {
        self.slots.iter().filter_map(|(deadline, value)| Some((*deadline, value.as_ref()?)))
    }

    /// Inserts a value and reports its location. `id` is the number of this bucket.
    #[inline(always)]
    pub(super) fn push(&mut self, id: u32, deadline: u64, value: V, tracker: &mut impl Tracker<V>) {
        self.earliest = self.earliest.min(deadline);
        match self.slots.get_mut(self.vacant as usize) {
            Some(slot) => {
                let position = self.vacant;
                self.vacancies -= 1;
                self.vacant = slot.0 as u32;
                tracker.moved(&value, Location::new(id, position));
                // The slot is vacant, so there is nothing to drop.
                std::mem::forget(std::mem::replace(slot, (deadline, Some(value))));
            }
            None => {
                tracker.moved(&value, Location::new(id, self.slots.len() as u32));
                self.slots.push((deadline, Some(value)));
            }
        }
    }

    /// Removes the value at `position` if there is one and it is `wanted`. If the bucket
    /// [`is_sparse`](Self::is_sparse) afterwards, the caller must [`compact`](Self::compact) it.
    #[inline]
    pub(super) fn remove(&mut self, position: u32, wanted: impl FnOnce(&V) -> bool) -> Option<Entry<V>> {
        let is_last = position as usize + 1 == self.slots.len();
        let slot = self.slots.get_mut(position as usize)?;
        let deadline = slot.0;
        let value = slot.1.take_if(|value| wanted(value))?;
        if is_last {
            self.slots.pop();
        } else {
            slot.0 = links(END, self.vacant);
            if let Some(next) = self.slots.get_mut(self.vacant as usize) {
                next.0 = links(position, next.0 as u32);
            }
            self.vacant = position;
            self.vacancies += 1;
        }
        Some((deadline, value))
    }

    /// Returns `true` if few values are left, or few for the capacity.
    #[inline]
    pub(super) fn is_sparse(&self) -> bool {
        let len = self.len();
        len <= MAX_REREAD || len < self.slots.capacity() / MAX_VACANT_RATIO
    }

    /// Restores the bounds on the memory and on the earliest deadline after a value with the
    /// deadline `removed` has left.
    #[inline]
    pub(super) fn compact(&mut self, id: u32, removed: u64, tracker: &mut impl Tracker<V>) {
        let len = self.len();
        if len == 0 {
            while self.slots.pop().is_some() {}
            (self.vacancies, self.vacant, self.earliest) = (0, END, u64::MAX);
        }
        if len < self.slots.capacity() / MAX_VACANT_RATIO && self.slots.capacity() > MIN_CAPACITY {
            self.compact_slots(id, tracker);
        }
        if len == MAX_REREAD || (0 < len && len < MAX_REREAD && removed == self.earliest) {
            let mut earliest = u64::MAX;
            self.slots.for_each(|slot| {
                if slot.1.is_some() {
                    earliest = earliest.min(slot.0);
                }
            });
            self.earliest = earliest;
        }
    }

    #[cold]
    #[inline(never)]
    fn compact_slots(&mut self, id: u32, tracker: &mut impl Tracker<V>) {
        for _ in 0..self.vacancies.min(COMPACTED_PER_REMOVAL as u32) {
            match self.slots.pop() {
                Some((deadline, Some(value))) => self.push(id, deadline, value, tracker),
                Some((links, None)) => self.unlink_vacant(self.slots.len() as u32, links),
                None => break,
            }
        }
        self.slots.shrink();
    }

    /// Takes a vacant slot, which has just left the array, out of the list of vacant slots.
    fn unlink_vacant(&mut self, position: u32, bits: u64) {
        let (previous, next) = ((bits >> 32) as u32, bits as u32);
        self.vacancies -= 1;
        if self.vacant == position {
            self.vacant = next;
            return;
        }
        if let Some(slot) = self.slots.get_mut(previous as usize) {
            slot.0 = links((slot.0 >> 32) as u32, next);
        }
        if let Some(slot) = self.slots.get_mut(next as usize) {
            slot.0 = links(previous, slot.0 as u32);
        }
    }

    /// Exchanges the slots for those of `empty` in O(1). The bucket is empty afterwards.
    pub(super) fn take(&mut self, empty: &mut Slots<V>) {
        self.slots.take(empty);
        (self.vacancies, self.vacant, self.earliest) = (0, END, u64::MAX);
    }

    pub(super) fn into_slots(self) -> Slots<V> {
        self.slots
    }

    /// Returns `true` if the values fill at most one chunk.
    pub(super) fn is_short(&self) -> bool {
        self.slots.len() <= CHUNK
    }
}

#[cfg(test)]
mod tests;
