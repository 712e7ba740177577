//! The table behind the keys, which has the location of the value of each key.
//!
//! A key names a slot of the table and the generation of the slot. The generation is incremented
//! each time a value leaves, so an old key meets another generation and finds nothing. A slot whose
//! generations are used up is retired, so no key is ever given out twice.
//!
//! The memory of a large table is given back when the last value leaves. The table keeps one number
//! for [`CHUNK`] slots then, the highest of their generations.

use super::location::{Location, Tracker};
use std::num::NonZeroU32;

/// The number of slots that share one floor. A table of at most this many slots is kept when it
/// becomes empty.
const CHUNK: usize = 256;

/// The generation of a slot that is out of use for good. No key bears it.
const RETIRED: u32 = u32::MAX;

/// The bucket number in the location of a vacant slot, whose position is the next vacant slot.
/// [`Location::NONE`] has it too.
const VACANT: u32 = u32::MAX;

/// The end of the chain of vacant slots.
const END: u32 = u32::MAX;

/// The name of a value in a wheel, returned by [`insert`](super::TimingWheel::insert) and used up
/// by [`remove`](super::TimingWheel::remove).
///
/// A key belongs to the wheel that returned it. Once its value has expired or was removed, the key
/// never finds another value. It may be copied, compared and kept. In another wheel the key may or
/// may not name a value.
///
/// ```
/// use timer_core::wheel::{HierarchicalWheel, TimingWheel};
///
/// let mut wheel = HierarchicalWheel::new();
/// let key = wheel.insert(10, "first");
/// assert_eq!(wheel.remove(key), Some("first"));
///
/// let other = wheel.insert(10, "second");
/// assert_ne!(key, other);
/// assert_eq!(wheel.remove(key), None);
/// assert_eq!(wheel.remove(other), Some("second"));
/// ```
#[doc(alias = "Timeout")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    /// Returns the item that the wheel stores for `value`.
    #[inline]
    pub(super) fn item<T>(self, value: T) -> Item<T> {
        Item { above: NonZeroU32::MIN.saturating_add(self.index), value }
    }
}

/// The item that a keyed wheel stores, which has a value and the slot that tracks it.
pub(super) struct Item<T> {
    /// The index of the slot plus one. It is never zero, so a vacant slot of a bucket needs no mark
    /// of its own.
    above: NonZeroU32,
    pub(super) value: T,
}

impl<T> Item<T> {
    #[inline]
    pub(super) fn index(&self) -> usize {
        self.above.get() as usize - 1
    }
}

#[derive(Clone, Copy)]
struct Slot {
    generation: u32,
    location: Location,
}

impl Slot {
    /// Returns `true` if the slot tracks no value, also if it is retired.
    fn is_vacant(&self) -> bool {
        self.location.bucket() == VACANT
    }
}

/// Slots by index.
pub(super) struct Slab {
    slots: Vec<Slot>,
    /// The first vacant slot, or [`END`].
    vacant: u32,
    /// The generations with which each chunk of slots begins when the table grows again.
    floors: Vec<u32>,
}

impl Slab {
    pub(super) const fn new() -> Self {
        Slab { slots: Vec::new(), vacant: END, floors: Vec::new() }
    }

    /// Reserves a slot for a new value. The wheel reports the location afterwards.
    #[inline]
    pub(super) fn reserve(&mut self) -> Key {
        let index = match self.vacant {
            END => self.grow(),
            index => {
                self.vacant = self.slots[index as usize].location.position();
                index
            }
        };
        Key { index, generation: self.slots[index as usize].generation }
    }

    /// Returns the location of the value that `key` names.
    #[inline]
    pub(super) fn find(&self, key: Key) -> Option<Location> {
        let slot = self.slots.get(key.index as usize)?;
        (slot.generation == key.generation && slot.location.bucket() != VACANT).then_some(slot.location)
    }

    /// Returns the key of the value that this slot tracks.
    #[inline]
    pub(super) fn key(&self, index: usize) -> Key {
        Key { index: index as u32, generation: self.slots[index].generation }
    }

    /// Writes the location of the value that this slot tracks.
    #[inline]
    pub(super) fn set(&mut self, index: usize, location: Location) {
        self.slots[index].location = location;
    }

    /// Returns `true` if the table is given back when the last value leaves.
    #[inline]
    pub(super) fn is_large(&self) -> bool {
        self.slots.len() > CHUNK
    }

    /// Returns the number of slots, vacant ones included.
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Makes room for `additional` slots.
    pub(super) fn reserve_slots(&mut self, additional: usize) {
        self.slots.reserve(additional);
    }

    /// Gives back the memory of the vacant slots behind the last one that is in use. O(slots).
    pub(super) fn shrink(&mut self) {
        let used = self.slots.iter().rposition(|slot| !slot.is_vacant()).map_or(0, |last| last + 1);
        for (at, slot) in self.slots.drain(used..).enumerate() {
            let chunk = (used + at) / CHUNK;
            if self.floors.len() <= chunk {
                self.floors.resize(chunk + 1, 0);
            }
            self.floors[chunk] = self.floors[chunk].max(slot.generation);
        }
        self.slots.shrink_to_fit();
        self.vacant = END;
        for (index, slot) in self.slots.iter_mut().enumerate().rev() {
            if slot.is_vacant() && slot.generation != RETIRED {
                slot.location = Location::new(VACANT, self.vacant);
                self.vacant = index as u32;
            }
        }
    }

    /// Releases a slot whose value has left. Its keys find nothing from now on.
    #[inline]
    pub(super) fn release(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        slot.generation += 1;
        slot.location = Location::NONE;
        if slot.generation != RETIRED {
            slot.location = Location::new(VACANT, self.vacant);
            self.vacant = index as u32;
        }
    }

    /// Gives back the memory of a large table that has no values.
    pub(super) fn reset(&mut self) {
        if !self.is_large() {
            return;
        }
        for (at, chunk) in self.slots.chunks(CHUNK).enumerate() {
            let floor = chunk.iter().fold(0, |max, slot| max.max(slot.generation));
            match self.floors.get_mut(at) {
                Some(former) => *former = floor.max(*former),
                None => self.floors.push(floor),
            }
        }
        self.slots = Vec::new();
        self.vacant = END;
    }

    fn grow(&mut self) -> u32 {
        loop {
            let index = self.slots.len();
            assert!(index < END as usize, "a wheel holds fewer than 2^32 - 1 values");
            let generation = self.floors.get(index / CHUNK).copied().unwrap_or(0);
            self.slots.push(Slot { generation, location: Location::NONE });
            if generation != RETIRED {
                return index as u32;
            }
        }
    }
}

impl<T> Tracker<Item<T>> for Slab {
    #[inline]
    fn moved(&mut self, item: &Item<T>, location: Location) {
        self.slots[item.index()].location = location;
    }
}

#[cfg(test)]
impl Slab {
    pub(super) fn room(&self) -> usize {
        self.slots.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(slab: &mut Slab, key: Key, position: u32) {
        slab.moved(&key.item(()), Location::new(1, position));
    }

    fn put_new(slab: &mut Slab) -> Key {
        let key = slab.reserve();
        put(slab, key, key.index);
        key
    }

    // B70: generations are used up, not wrapped round.
    #[test]
    fn a_slot_whose_generations_are_used_up_is_retired() {
        let mut slab = Slab::new();
        let first = put_new(&mut slab);
        slab.slots[0].generation = RETIRED - 1;
        let last = Key { index: 0, generation: RETIRED - 1 };
        assert!(slab.find(last).is_some());
        slab.release(0);

        for stale in [first, last, Key { index: 0, generation: RETIRED }] {
            assert_eq!(slab.find(stale), None);
        }
        for index in 1..5 {
            assert_eq!(put_new(&mut slab).index, index, "the slot is not used again");
        }
        assert_eq!(slab.vacant, END);
    }

    #[test]
    fn generations_go_on_after_the_table_was_given_back() {
        let mut slab = Slab::new();
        let mut old = Vec::new();
        for _ in 0..5 {
            let keys: Vec<Key> = (0..3 * CHUNK).map(|_| put_new(&mut slab)).collect();
            for key in &keys {
                assert!(slab.find(*key).is_some());
                slab.release(key.index as usize);
            }
            old.extend(keys);
            slab.reset();
            assert_eq!(slab.slots.capacity(), 0);
            assert!(old.iter().all(|key| slab.find(*key).is_none()));
        }
        let unique: std::collections::HashSet<&Key> = old.iter().collect();
        assert_eq!(unique.len(), old.len(), "no key came twice");
    }

    #[test]
    fn a_chunk_without_generations_is_passed_over() {
        let mut slab = Slab::new();
        for _ in 0..=CHUNK {
            put_new(&mut slab);
        }
        slab.slots[7].generation = RETIRED - 1;
        for index in 0..=CHUNK {
            slab.release(index);
        }
        slab.reset();
        let key = put_new(&mut slab);
        assert_eq!(key, Key { index: CHUNK as u32, generation: 1 });
        slab.release(key.index as usize);
        assert_eq!(put_new(&mut slab), Key { index: CHUNK as u32, generation: 2 });
    }

    #[test]
    fn a_shortened_table_goes_on_with_its_generations() {
        let mut slab = Slab::new();
        let mut old: Vec<Key> = Vec::new();
        for round in 0..4 {
            let keys: Vec<Key> = (0..3 * CHUNK).map(|_| put_new(&mut slab)).collect();
            let kept = 10 + round;
            keys[kept..].iter().for_each(|key| slab.release(key.index as usize));
            slab.shrink();
            assert!(slab.slots.len() <= 3 * CHUNK && slab.slots.capacity() < 2 * CHUNK);
            assert!(keys[..kept].iter().all(|key| slab.find(*key).is_some()));
            keys[..kept].iter().for_each(|key| slab.release(key.index as usize));
            if round % 2 == 0 {
                slab.reset();
            }
            old.extend(keys);
            assert!(old.iter().all(|key| slab.find(*key).is_none()));
        }
        let unique: std::collections::HashSet<&Key> = old.iter().collect();
        assert_eq!(unique.len(), old.len(), "no key came twice");
    }

    // A key of another wheel may name a vacant slot, even with the generation that comes next.
    #[test]
    fn a_foreign_key_finds_no_vacant_slot() {
        let mut slab = Slab::new();
        let a = put_new(&mut slab);
        slab.release(a.index as usize);
        assert_eq!(slab.find(Key { index: 0, generation: 1 }), None);
        assert_eq!(slab.find(Key { index: 9, generation: 0 }), None);
    }
}
