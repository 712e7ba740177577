//! A bucket of a wheel, with the values of one span of ticks.
//!
//! A bucket is an array and not a linked list, because an expiry and a cascade read all of it in
//! sequence. A removal leaves a vacant slot, and a later insertion fills it. So a removal moves no
//! other value, and its slot is usually still in the cache when it is filled.
//!
//! *Chunks.* Values are inserted into the open chunk. If it is the only one, it grows by doubling,
//! so that a short bucket takes little memory. Otherwise each chunk is allocated at its full length
//! of [`CHUNK`] slots, and is given up by itself. Their table is an array in pieces as well. So no
//! operation copies, allocates or frees more than a chunk of either. The position of a value does
//! not change when other chunks come and go. A chunk that was given up leaves a gap in the
//! positions.
//!
//! A bucket caches the earliest of its deadlines. An insertion keeps it exact. A removal from a
//! bucket of many values leaves it unchanged, because the new minimum could only be found by
//! reading the whole bucket. The cached value is then a lower bound. Every `u64` is a legal
//! deadline, so none of them marks an empty bucket.

pub(crate) use chunk::{CHUNK, Slot};
pub(super) use chunk::{Chunk, Dated, MIN_CAPACITY};

use super::discarded::Discarded;
use super::location::{Location, Tracker};
use chunk::END;
use std::{iter, mem};
use table::{PIECE, Table};

mod chunk;
mod table;
mod upkeep;

/// The number of the bucket of overdue values.
pub(super) const OVERDUE: u32 = u32::MAX - 1;

/// The values of one span of ticks, or the due values that a step of a wheel takes out.
pub(crate) struct Bucket<V> {
    /// The chunk that takes values in.
    pub(super) open: Chunk<V>,
    /// The position of the first slot of the open chunk.
    start: u32,
    /// The other chunks if there are any. In a box, because few buckets are long, and a bucket fits
    /// into a cache line.
    pub(super) others: Option<Box<Table<V>>>,
    /// A lower bound of the deadlines. That of an empty bucket is `u64::MAX`, which is also a legal
    /// deadline.
    pub(super) earliest: u64,
    /// The number of values.
    pub(crate) values: u32,
}

impl<V> Bucket<V> {
    /// Returns the number of positions, which includes vacant slots and gaps.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        let others = self.others.as_ref().map_or(0, |others| others.end());
        others.max(self.start as usize + self.open.slots.len())
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.open.slots.is_empty() && self.is_short()
    }

    /// Returns `true` if there is only one chunk.
    #[inline]
    pub(super) fn is_short(&self) -> bool {
        self.others.is_none()
    }

    /// Returns `true` if there is only one chunk, and all its values are due by `now`. May return
    /// `false` if some slots are vacant.
    pub(super) fn is_due(&self, now: u64) -> bool {
        self.is_short() && self.open.slots.iter().all(|(deadline, _)| *deadline <= now)
    }

    /// Returns the number of the last chunk plus one.
    pub(crate) fn chunks(&self) -> usize {
        self.others.as_ref().map_or(0, |others| others.len()).max(self.open_number() + 1)
    }

    #[inline]
    fn open_number(&self) -> usize {
        self.start as usize / CHUNK
    }

    fn iter_chunks(&self) -> impl Iterator<Item = &Chunk<V>> {
        iter::once(&self.open).chain(self.others.iter().flat_map(|others| others.iter()))
    }

    /// Returns the chunk that has a position, and the position in it.
    #[inline]
    pub(super) fn chunk_mut(&mut self, position: usize) -> Option<(&mut Chunk<V>, usize)> {
        let in_open = position.wrapping_sub(self.start as usize);
        if in_open < CHUNK {
            return Some((&mut self.open, in_open));
        }
        Some((self.others.as_mut()?.get_mut(position / CHUNK)?, position % CHUNK))
    }

    #[inline]
    pub(crate) fn get(&self, position: usize) -> Option<&Slot<V>> {
        let in_open = position.wrapping_sub(self.start as usize);
        if in_open < CHUNK {
            return self.open.slots.get(in_open);
        }
        self.others.as_ref()?.slot(position)
    }

    /// Takes the value and its deadline out of the slot at `position` and does not count the slot
    /// as vacant. For slots that are soon cleared.
    #[inline]
    pub(crate) fn take_value(&mut self, position: usize) -> Option<Dated<V>> {
        let (chunk, at) = self.chunk_mut(position)?;
        let slot = chunk.slots.get_mut(at)?;
        Some((slot.0, slot.1.take()?))
    }

    /// Returns the value at `position`, and its deadline.
    #[inline]
    pub(super) fn value(&self, position: u32) -> Option<(u64, &V)> {
        self.get(position as usize).and_then(|(deadline, value)| Some((*deadline, value.as_ref()?)))
    }

    /// Returns the values and their deadlines, those of the open chunk first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &V)> {
        self.iter_chunks().flat_map(|chunk| &chunk.slots).filter_map(|slot| Some((slot.0, slot.1.as_ref()?)))
    }

    fn chunk(&self, number: usize) -> Option<&Chunk<V>> {
        if number == self.open_number() { Some(&self.open) } else { self.others.as_ref()?.get(number) }
    }

    /// Returns the number of the first chunk from `number` on. If there is none among the next
    /// [`PIECE`] numbers, returns the one after them.
    pub(crate) fn next_chunk(&self, number: usize) -> usize {
        let mut numbers = number..number + PIECE;
        numbers.find(|number| self.chunk(*number).is_some_and(|chunk| !chunk.is_gap())).unwrap_or(number + PIECE)
    }

    /// Returns the slots of a chunk from `position` on.
    pub(crate) fn slots_from(&self, position: usize) -> &[Slot<V>] {
        self.chunk(position / CHUNK).and_then(|chunk| chunk.slots.get(position % CHUNK..)).unwrap_or_default()
    }

    /// Returns the values and their deadlines in the order of their positions.
    pub(crate) fn into_iter(self) -> impl Iterator<Item = Dated<V>> {
        self.into_chunks().flat_map(|chunk| chunk.slots).filter_map(|slot| Some((slot.0, slot.1?)))
    }

    fn into_chunks(self) -> impl Iterator<Item = Chunk<V>> {
        let number = self.open_number();
        let mut open = Some(self.open);
        let mut others = self.others.map_or_else(Table::default, |others| *others);
        if !others.is_empty() {
            open = open.map(|open| others.replace(number, open, &mut Discarded::new()));
        }
        others.into_chunks().chain(open)
    }

    /// Inserts a value and reports its location. Returns `true` if the caller must mark the bucket
    /// as occupied. A superfluous `true` does no harm. `id` is the number of this bucket.
    #[inline(always)]
    pub(super) fn push(
        &mut self,
        id: u32,
        dated: Dated<V>,
        tracker: &mut impl Tracker<V>,
        discarded: &mut Discarded<V>,
    ) -> bool {
        self.insert(dated, discarded, |value, position| tracker.moved(value, Location::new(id, position)))
    }

    /// Inserts a value and calls `placed` with its position. Returns `true` if the open chunk had
    /// no slots.
    #[inline(always)]
    pub(super) fn insert(
        &mut self,
        dated: Dated<V>,
        discarded: &mut Discarded<V>,
        placed: impl FnOnce(&V, u32),
    ) -> bool {
        self.earliest = self.earliest.min(dated.0);
        self.values += 1;
        self.place(dated, discarded, placed)
    }

    /// As [`insert`](Self::insert), without counting the value.
    #[inline(always)]
    fn place(
        &mut self,
        (deadline, value): Dated<V>,
        discarded: &mut Discarded<V>,
        placed: impl FnOnce(&V, u32),
    ) -> bool {
        loop {
            let vacant = self.open.vacant;
            let len = self.open.slots.len();
            if let Some(slot) = self.open.slots.get_mut(vacant as usize) {
                placed(&value, self.start + vacant);
                self.open.vacant = slot.0 as u32;
                self.open.len += 1;
                // The slot is vacant, so there is nothing to drop.
                mem::forget(mem::replace(slot, (deadline, Some(value))));
                return false;
            }
            // `<` and not `!=`, so that the compiler sees that `push` never grows the array.
            if len < self.open.slots.capacity() {
                self.open.slots.push((deadline, Some(value)));
                self.open.len += 1;
                if let Some((_, Some(value))) = self.open.slots.last() {
                    placed(value, self.start + len as u32);
                }
                return len == 0;
            }
            self.grow(discarded);
        }
    }

    /// Doubles the open chunk while it is the only one and short. Otherwise opens another one, at
    /// the first position if that is free, so that positions do not grow with each use of a bucket.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, discarded: &mut Discarded<V>) {
        let capacity = self.open.slots.capacity();
        if self.is_short() && capacity < CHUNK {
            // The former array is not freed here, as `reserve` would do.
            let longer = Vec::with_capacity((2 * capacity).clamp(MIN_CAPACITY, CHUNK));
            let mut former = mem::replace(&mut self.open.slots, longer);
            self.open.slots.append(&mut former);
            discarded.push_slots(former);
            return self.open.set_upkeep();
        }
        let open = self.open_number();
        let number = match &mut self.others {
            Some(others) => others.find_room(open).unwrap_or(others.len()),
            None if open > 0 => 0,
            None => 1,
        };
        self.open_chunk(number, discarded);
    }

    /// Makes another chunk the open one, and allocates it if it is a gap.
    fn open_chunk(&mut self, number: usize, discarded: &mut Discarded<V>) {
        let former = self.open_number();
        self.open.set_upkeep();
        let others = self.others.get_or_insert_default();
        let open = others.replace(number, Chunk::default(), discarded);
        others.replace(former, mem::replace(&mut self.open, open), discarded);
        self.start = (number * CHUNK) as u32;
        self.open.slots.reserve_exact(CHUNK - self.open.slots.len());
        if self.is_short() {
            self.open.set_upkeep();
        } else {
            // Insertions fill it, so it needs no upkeep as long as it has values.
            self.open.upkeep_below = 1;
        }
    }

    /// Takes out a chunk, which leaves a gap.
    pub(super) fn take_chunk(&mut self, number: usize, discarded: &mut Discarded<V>) -> Vec<Slot<V>> {
        if number == self.open_number() {
            return mem::take(&mut self.open).slots;
        }
        let Some(others) = &mut self.others else { return Vec::new() };
        let chunk = others.replace(number, Chunk::default(), discarded);
        if others.is_empty() {
            mem::take(&mut **others).discard(discarded);
            self.others = None;
            self.open.set_upkeep();
        }
        self.trim(discarded);
        chunk.slots
    }

    /// Shortens the table by some gaps at its end.
    fn trim(&mut self, discarded: &mut Discarded<V>) {
        let number = self.open_number();
        if let Some(others) = &mut self.others {
            others.trim(number + 1, discarded);
        }
    }

    /// Removes the value at `position` if there is one and it is `wanted`. If this returns `true`
    /// as well, the caller must [`keep_up`](Self::keep_up) the bucket.
    #[inline]
    pub(crate) fn remove(&mut self, position: u32, wanted: impl FnOnce(&V) -> bool) -> Option<(Dated<V>, bool)> {
        let (chunk, position) = self.chunk_mut(position as usize)?;
        let removed = (chunk.remove(position, wanted)?, chunk.needs_upkeep());
        self.values -= 1;
        Some(removed)
    }

    /// Removes the value at `position`, whose slot must have one. Does not read a value that needs
    /// no drop. If this returns `true`, the caller must [`keep_up`](Self::keep_up) the bucket.
    #[inline]
    pub(super) fn vacate(&mut self, position: u32) -> bool {
        let Some((chunk, position)) = self.chunk_mut(position as usize) else { return false };
        chunk.vacate(position);
        let needs_upkeep = chunk.needs_upkeep();
        self.values -= 1;
        needs_upkeep
    }

    /// Removes the values of a chunk whose deadlines are `chosen`, and calls `each` with them. The
    /// earliest deadline then covers the others. If this returns `true`, the caller must
    /// [`keep_up`](Self::keep_up) the bucket.
    #[inline]
    pub(super) fn extract(&mut self, number: usize, chosen: impl Fn(u64) -> bool, each: impl FnMut(Dated<V>)) -> bool {
        let Some((chunk, _)) = self.chunk_mut(number * CHUNK) else { return false };
        let before = chunk.len;
        let earliest = chunk.extract(chosen, each);
        let left = chunk.len;
        let needs_upkeep = chunk.needs_upkeep();
        self.earliest = self.earliest.min(earliest);
        self.values -= before - left;
        needs_upkeep
    }

    /// Exchanges the values for those of `due` in O(1), which must be empty. Returns their number.
    pub(super) fn take(&mut self, due: &mut Bucket<V>, discarded: &mut Discarded<V>) -> usize {
        debug_assert!(due.is_empty());
        due.give_up(discarded);
        mem::swap(self, due);
        due.values as usize
    }

    /// Gives up the slots of a bucket without values. Keeps the memory if it is small.
    pub(super) fn give_up(&mut self, discarded: &mut Discarded<V>) {
        if !self.is_short() || self.open.slots.capacity() > MIN_CAPACITY {
            return mem::take(self).discard(discarded);
        }
        self.clear();
    }

    /// Gives up all arrays of the bucket.
    pub(super) fn discard(self, discarded: &mut Discarded<V>) {
        discarded.push_slots(self.open.slots);
        if let Some(others) = self.others {
            others.discard(discarded);
        }
    }

    /// Removes all slots, and frees all chunks but the open one.
    pub(crate) fn clear(&mut self) {
        self.others = None;
        self.start = 0;
        self.earliest = u64::MAX;
        self.values = 0;
        self.open.slots.clear();
        self.open.vacant = END;
        self.open.len = 0;
        self.open.set_upkeep();
    }

    /// Removes the first chunk from `number` on, calls `each` with its slots, and returns the
    /// number after it. If none of the next [`PIECE`] numbers has a chunk, `each` gets no slots.
    /// Nothing may be inserted until the bucket is empty.
    pub(crate) fn drain_chunk(&mut self, number: usize, each: impl FnOnce(&mut [Slot<V>])) -> usize {
        if self.is_short() {
            each(&mut self.open.slots);
            self.clear();
            return 0;
        }
        let number = self.next_chunk(number);
        self.values -= self.chunk(number).map_or(0, |chunk| chunk.len);
        each(&mut self.take_chunk(number, &mut Discarded::new()));
        if !self.is_empty() {
            return number + 1;
        }
        self.clear();
        0
    }

    /// Calls `each` with the slots of each chunk in the order of their positions, and frees the
    /// chunks on the way. Afterwards there are no slots.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(&mut [Slot<V>])) {
        let mut next = 0;
        while !self.is_empty() {
            next = self.drain_chunk(next, &mut each);
        }
    }
}

impl<V> Default for Bucket<V> {
    fn default() -> Self {
        Bucket { open: Chunk::default(), start: 0, others: None, earliest: u64::MAX, values: 0 }
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests;
