//! A bucket of a wheel, with the values of one span of ticks.
//!
//! A bucket is an array and not a linked list, because an expiry and a cascade read all of it in
//! sequence. A removal leaves a vacant slot, and a later insertion fills it. So a removal moves no
//! other value. A bit for each slot says whether it has a value. A removal that only clears this
//! bit does not fetch the slot from memory.
//!
//! *Chunks.* Values are inserted into the open chunk, into its first vacant slot. If it is the only
//! one, it grows by doubling, so that a short bucket takes little memory. Otherwise each chunk is
//! allocated at its full length of [`CHUNK`] slots, and is given up by itself. Their table is an
//! array in pieces as well. So no operation copies, allocates or frees more than a chunk of either.
//! The position of a value does not change when other chunks come and go. A chunk that was given up
//! leaves a gap in the positions.
//!
//! A bucket caches the earliest of its deadlines. An insertion keeps it exact. A removal from a
//! bucket of many values leaves it unchanged, because the new minimum could only be found by
//! reading the whole bucket. The cached value is then a lower bound. Every `u64` is a legal
//! deadline, so none of them marks an empty bucket.

pub(crate) use chunk::Chunk;
pub(crate) use chunk::{CHUNK, Part};
pub(super) use chunk::{CHUNKS_PER_STEP, Dated, MIN_CAPACITY, Slot};

use super::discarded::Discarded;
use super::location::{GENERATION, Location, Tracker};
pub(super) use piece::{FIRST, PIECE, Piece, Pieces};
use std::{iter, mem};
use table::{Table, needs_upkeep};

mod chunk;
mod piece;
mod table;
mod upkeep;

/// The number of the bucket of overdue values.
pub(super) const OVERDUE: u32 = GENERATION - 2;

/// The values of one span of ticks, or the due values that a step of a wheel takes out.
pub(crate) struct Bucket<V> {
    /// The chunk that takes values in.
    pub(super) open: Chunk<V>,
    /// The position of the first slot of the open chunk.
    start: u32,
    /// The number of the bucket, and its generation. Locations contain it.
    pub(crate) name: u32,
    /// The other chunks if there are any. In a box, because few buckets are long, and a bucket fits
    /// into a cache line.
    pub(super) others: Option<Box<Table<V>>>,
    /// A lower bound of the deadlines. That of an empty bucket is `u64::MAX`, which is also a legal
    /// deadline.
    pub(super) earliest: u64,
    /// The number of values.
    pub(crate) values: u32,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Bucket<()>>() <= 64, "a cache line");

impl<V> Bucket<V> {
    /// Returns an empty bucket with this number.
    pub(super) fn new(number: u32) -> Self {
        Bucket { open: Chunk::default(), start: 0, name: number, others: None, earliest: u64::MAX, values: 0 }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.values == 0
    }

    /// Returns `true` if there is only one chunk.
    #[inline]
    pub(super) fn is_short(&self) -> bool {
        self.others.is_none()
    }

    /// Returns `true` if a step reads all chunks.
    pub(super) fn is_one_step(&self) -> bool {
        self.is_short() || self.chunks() <= CHUNKS_PER_STEP
    }

    /// Returns `true` if a step reads all chunks, and all values are due by `now`.
    pub(super) fn is_due(&self, now: u64) -> bool {
        self.is_one_step() && self.parts().all(|part| part.is_due(now))
    }

    /// Returns the number of the last chunk plus one.
    pub(crate) fn chunks(&self) -> usize {
        self.others.as_ref().map_or(0, |others| others.len()).max(self.open_number() + 1)
    }

    #[inline]
    fn open_number(&self) -> usize {
        self.start as usize / CHUNK
    }

    /// Returns the slots of all chunks, those of the open chunk first.
    fn parts(&self) -> impl Iterator<Item = Part<'_, V>> {
        iter::once(self.open.part(0)).chain(self.others.iter().flat_map(|others| others.parts()))
    }

    /// Returns the position in the open chunk, if it has this one.
    #[inline]
    fn in_open(&self, position: usize) -> Option<usize> {
        Some(position.wrapping_sub(self.start as usize)).filter(|at| *at < CHUNK)
    }

    /// Returns the value at `position`, and its deadline.
    #[inline]
    pub(super) fn value(&self, position: u32) -> Option<(u64, &V)> {
        let position = position as usize;
        match self.in_open(position) {
            Some(at) => self.open.get(at),
            None => self.others.as_ref()?.part(position / CHUNK)?.get(position % CHUNK),
        }
    }

    /// Returns the values and their deadlines, those of the open chunk first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &V)> {
        self.parts().flat_map(|part| part.iter())
    }

    /// Returns the number of values of a chunk, or `None` if it is a gap.
    fn values_of(&self, number: usize) -> Option<usize> {
        if number == self.open_number() {
            return (!self.open.is_gap()).then_some(usize::from(self.open.len));
        }
        self.others.as_ref().filter(|others| !others.is_gap(number)).map(|others| others.values(number))
    }

    /// Returns the number of the first chunk from `number` on. If there is none among the next
    /// [`PIECE`] numbers, returns the one after them.
    pub(crate) fn next_chunk(&self, number: usize) -> usize {
        let mut numbers = number..number + PIECE;
        numbers.find(|number| self.values_of(*number).is_some()).unwrap_or(number + PIECE)
    }

    /// Returns the slots of the chunk that has `position`.
    pub(crate) fn slots_from(&self, position: usize) -> Option<Part<'_, V>> {
        let number = position / CHUNK;
        if number == self.open_number() {
            return Some(self.open.part(0));
        }
        self.others.as_ref()?.part(number)
    }

    /// Takes out all values and returns them with their deadlines in the order of their positions.
    /// The iterator frees the memory.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Dated<V>> + use<V> {
        let number = self.open_number();
        let mut open = Some(mem::take(&mut self.open));
        let mut others = self.others.take().map_or_else(Table::default, |others| *others);
        if !others.is_empty() {
            open = open.map(|open| others.replace(number, open, &mut Discarded::new()));
        }
        self.clear();
        others.into_chunks().chain(open).flat_map(Chunk::into_values)
    }

    /// Inserts a value and reports its location. Returns `true` if the caller must mark the bucket
    /// as occupied.
    #[inline(always)]
    pub(super) fn push(
        &mut self,
        dated: Dated<V>,
        tracker: &mut impl Tracker<V>,
        discarded: &mut Discarded<V>,
    ) -> bool {
        let name = self.name;
        self.insert(dated, discarded, |value, position| tracker.moved(value, Location::new(name, position)))
    }

    /// Inserts a value and calls `placed` with its position. Returns `true` if the bucket was
    /// empty.
    #[inline(always)]
    pub(super) fn insert(
        &mut self,
        dated: Dated<V>,
        discarded: &mut Discarded<V>,
        placed: impl FnOnce(&V, u32),
    ) -> bool {
        self.earliest = self.earliest.min(dated.0);
        self.values += 1;
        self.place(dated, discarded, placed);
        self.values == 1
    }

    /// As [`insert`](Self::insert), without counting the value.
    #[inline(always)]
    fn place(&mut self, dated: Dated<V>, discarded: &mut Discarded<V>, placed: impl FnOnce(&V, u32)) {
        let mut vacant = self.open.vacant();
        if vacant >= self.open.capacity() {
            self.grow(discarded);
            vacant = self.open.vacant();
        }
        placed(&dated.1, self.start + vacant as u32);
        self.open.put(vacant, dated);
    }

    /// Doubles the open chunk while it is the only one and short. Otherwise opens another one, at
    /// the first position if that is free, so that positions do not grow with each use of a bucket.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, discarded: &mut Discarded<V>) {
        let capacity = self.open.capacity();
        if self.is_short() && capacity < CHUNK {
            // The former array is not freed here.
            discarded.push_slots(self.open.lengthen((2 * capacity).clamp(MIN_CAPACITY, CHUNK)));
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
        if self.open.is_gap() {
            self.open.lengthen(CHUNK);
        }
        if self.is_short() {
            self.open.set_upkeep();
        } else {
            // Insertions fill it, so it needs no upkeep as long as it has values.
            self.open.upkeep_below = 1;
        }
    }

    /// Takes out a chunk, which leaves a gap.
    pub(super) fn take_chunk(&mut self, number: usize, discarded: &mut Discarded<V>) -> Chunk<V> {
        if number == self.open_number() {
            return mem::take(&mut self.open);
        }
        let Some(others) = self.others.as_mut().filter(|others| !others.is_gap(number)) else {
            self.trim(discarded);
            return Chunk::default();
        };
        let chunk = others.replace(number, Chunk::default(), discarded);
        if others.is_empty() {
            if let Some(others) = self.others.take() {
                others.discard(discarded);
            }
            self.open.set_upkeep();
        }
        self.trim(discarded);
        chunk
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
        let position = position as usize;
        let removed = match self.in_open(position) {
            Some(at) => (self.open.remove(at, wanted)?, self.open.needs_upkeep()),
            None => self.others.as_mut()?.remove(position, wanted)?,
        };
        self.values -= 1;
        Some(removed)
    }

    /// Removes the value at `position` without reading its slot. Returns `None` if there is none or
    /// `may` returns `false`. If this returns `true`, the caller must [`keep_up`](Self::keep_up) the
    /// bucket.
    #[inline]
    pub(super) fn vacate(&mut self, position: u32, may: impl FnOnce() -> bool) -> Option<bool> {
        const { assert!(!mem::needs_drop::<V>()) };
        let position = position as usize;
        let needs_upkeep = match self.in_open(position) {
            Some(at) => self.open.vacate(at, may).then(|| self.open.needs_upkeep()),
            None => self.others.as_mut()?.vacate(position, may),
        };
        self.values -= u32::from(needs_upkeep.is_some());
        needs_upkeep
    }

    /// Removes the values of a chunk whose deadlines are `chosen`. Calls `fetch` with each of them,
    /// and then `each`. The earliest deadline then covers the others. If this returns `true`, the
    /// caller must [`keep_up`](Self::keep_up) the bucket.
    #[inline]
    pub(super) fn extract(
        &mut self,
        number: usize,
        chosen: impl Fn(u64) -> bool,
        fetch: impl Fn(&V),
        each: impl FnMut(Dated<V>),
    ) -> bool {
        let before = self.values_of(number).unwrap_or(0);
        let extracted = if number == self.open_number() {
            self.open.extract(chosen, fetch, each)
        } else if let Some(others) = &mut self.others {
            others.extract(number, chosen, fetch, each)
        } else {
            return false;
        };
        let (earliest, left) = extracted;
        self.earliest = self.earliest.min(earliest);
        self.values -= (before - left) as u32;
        if number == self.open_number() { self.open.needs_upkeep() } else { needs_upkeep(left) }
    }

    /// Exchanges the values for those of `due` in O(1), which must be empty. Returns their number.
    /// The locations of these values name no bucket from now on.
    pub(super) fn take(&mut self, due: &mut Bucket<V>, discarded: &mut Discarded<V>) -> usize {
        debug_assert!(due.is_empty());
        due.give_up(discarded);
        mem::swap(self, due);
        mem::swap(&mut self.name, &mut due.name);
        self.begin_generation();
        due.values as usize
    }

    /// Makes the locations of values that have left the bucket name no bucket.
    pub(super) fn begin_generation(&mut self) {
        self.name = self.name.wrapping_add(GENERATION);
    }

    /// Gives up the slots of a bucket without values. Keeps the memory if it is small.
    pub(super) fn give_up(&mut self, discarded: &mut Discarded<V>) {
        if !self.is_short() || self.open.capacity() > MIN_CAPACITY {
            discarded.push_slots(self.open.take_slots());
            if let Some(others) = self.others.take() {
                others.discard(discarded);
            }
        }
        self.clear();
    }

    /// Removes all values, and frees all chunks but the open one.
    pub(crate) fn clear(&mut self) {
        self.others = None;
        self.start = 0;
        self.earliest = u64::MAX;
        self.values = 0;
        self.open.clear();
        self.open.set_upkeep();
    }

    /// Removes the first chunk from `number` on, calls `each` with it, and returns the number after
    /// it. If there is none, returns 0. Nothing may be inserted until the bucket is empty.
    pub(crate) fn drain_chunk(&mut self, number: usize, each: impl FnOnce(&mut Chunk<V>)) -> usize {
        if self.is_short() {
            each(&mut self.open);
            self.clear();
            return 0;
        }
        let number = self.next_chunk(number);
        if number >= self.chunks() {
            return 0;
        }
        self.values -= self.values_of(number).unwrap_or(0) as u32;
        each(&mut self.take_chunk(number, &mut Discarded::new()));
        if !self.is_empty() {
            return number + 1;
        }
        self.clear();
        0
    }

    /// Calls `each` with each chunk in the order of their positions, and frees the chunks on the
    /// way. Afterwards there are no values.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(&mut Chunk<V>)) {
        let mut next = 0;
        while !self.is_empty() {
            next = self.drain_chunk(next, &mut each);
        }
    }
}

impl<V> Default for Bucket<V> {
    fn default() -> Self {
        Bucket::new(0)
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests;
