//! The storage of a bucket, which is an array of slots in chunks.
//!
//! Values are inserted into the open chunk. If it is the only one, it grows by doubling, so that a
//! short bucket takes little memory. Otherwise each chunk is allocated at its full length of
//! [`CHUNK`] slots, and is freed by itself. Their table is an array in chunks as well. So no
//! operation copies, allocates or frees more than a chunk of either. The position of a value does
//! not change when other chunks come and go. A chunk that was freed leaves a gap in the positions.

pub(super) use chunk::Chunk;
pub(super) use table::Table;

use super::discarded::Discarded;
use chunk::END;
use std::{iter, mem};

mod chunk;
mod table;

/// The number of slots in a chunk, which takes 4 KiB. Tests use short chunks, so that few values
/// make a long bucket.
pub(super) const CHUNK: usize = if cfg!(test) {
    16
} else if cfg!(fuzzing) {
    64
} else {
    256
};

/// The most bytes of an array that replaces a longer one. For 1 KiB or more, glibc first joins all
/// free small pieces, which takes 100 ms after a million cancels.
pub(super) const MAX_REPLACEMENT: usize = if cfg!(any(test, fuzzing)) { 64 } else { 1000 };

/// An empty bucket keeps room for this many values, so that a lone timeout does not allocate each
/// time.
pub(super) const MIN_CAPACITY: usize = 4;

/// A removal that leaves at most this many values in a chunk is followed by upkeep, unless
/// insertions fill that chunk and there are others.
pub(super) const MIN_UPKEEP: usize = 8;

/// A value and the tick at which it is due.
pub(crate) type Entry<V> = (u64, V);

/// One element of a bucket, which is a value with its deadline. If it is vacant, its number is the
/// next vacant element of a bucket, or the new location of a value that has left a cascade.
pub(crate) type Slot<V> = (u64, Option<V>);

/// The slots of a bucket, or the due values that a step of a wheel takes out.
pub(crate) struct Slots<V> {
    /// The chunk that takes values in.
    pub(super) open: Chunk<V>,
    /// The position of the first slot of the open chunk.
    start: u32,
    /// The other chunks if there are any. In a box, because few buckets are long, and a bucket fits
    /// into a cache line.
    pub(super) others: Option<Box<Table<V>>>,
}

impl<V> Slots<V> {
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

    /// Returns the number of the last chunk plus one.
    #[inline]
    pub(super) fn chunks(&self) -> usize {
        self.others.as_ref().map_or(self.open_number() + 1, |others| others.len())
    }

    /// Returns the number of slots without gaps. O(chunks).
    pub(super) fn slots(&self) -> usize {
        self.iter_chunks().map(|chunk| chunk.slots.len()).sum()
    }

    /// Returns the number of values. O(chunks).
    pub(super) fn values(&self) -> usize {
        self.iter_chunks().map(|chunk| chunk.len as usize).sum()
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
        let chunk = self.others.as_mut()?.get_mut(position / CHUNK)?;
        Some((chunk, position % CHUNK))
    }

    #[inline]
    pub(crate) fn get(&self, position: usize) -> Option<&Slot<V>> {
        let in_open = position.wrapping_sub(self.start as usize);
        if in_open < CHUNK {
            return self.open.slots.get(in_open);
        }
        self.others.as_ref()?.slot(position)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, position: usize) -> Option<&mut Slot<V>> {
        let (chunk, position) = self.chunk_mut(position)?;
        chunk.slots.get_mut(position)
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

    /// Returns the values and their deadlines in the order of their positions.
    pub(crate) fn into_iter(self) -> impl Iterator<Item = Entry<V>> {
        self.into_chunks().flat_map(|chunk| chunk.slots).filter_map(|slot| Some((slot.0, slot.1?)))
    }

    fn into_chunks(self) -> impl Iterator<Item = Chunk<V>> {
        let (number, mut open) = (self.open_number(), Some(self.open));
        let mut others = self.others.map_or_else(Table::default, |others| *others);
        if !others.is_empty() {
            open = open.map(|open| others.replace(number, open));
        }
        others.into_chunks().chain(open)
    }

    /// Inserts a value and calls `placed` with its position. Returns `true` if the open chunk had
    /// no slots.
    #[inline(always)]
    pub(super) fn insert(&mut self, deadline: u64, value: V, placed: impl FnOnce(&V, u32)) -> bool {
        loop {
            let (vacant, len) = (self.open.vacant, self.open.slots.len());
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
            self.grow();
        }
    }

    /// Doubles the open chunk while it is the only one and short. Otherwise opens another one, at
    /// the first position if that is free, so that positions do not grow with each use of a bucket.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let capacity = self.open.slots.capacity();
        if self.is_short() && capacity < CHUNK {
            self.open.slots.reserve_exact(capacity.max(MIN_CAPACITY).min(CHUNK - capacity));
            return self.open.set_upkeep();
        }
        let open = self.open_number();
        let number = match &mut self.others {
            Some(others) => others.find_room(open).unwrap_or(others.len()),
            None if open > 0 => 0,
            None => 1,
        };
        self.open_chunk(number);
    }

    /// Makes a chunk the open one, and allocates it if it is a gap.
    fn open_chunk(&mut self, number: usize) {
        let former = self.open_number();
        if number != former {
            self.open.set_upkeep();
            let others = self.others.get_or_insert_default();
            let open = others.replace(number, Chunk::default());
            others.replace(former, mem::replace(&mut self.open, open));
            self.start = (number * CHUNK) as u32;
        }
        self.open.slots.reserve_exact(CHUNK - self.open.slots.len());
        if self.is_short() {
            self.open.set_upkeep();
        } else {
            // Insertions fill it, so it needs no upkeep as long as it has values.
            self.open.upkeep_below = 1;
        }
    }

    /// Takes out the chunk that has a position, which leaves a gap.
    pub(super) fn take_chunk(&mut self, position: usize, discarded: &mut Discarded<V>) -> Vec<Slot<V>> {
        let number = position / CHUNK;
        if number == self.open_number() {
            return mem::take(&mut self.open).slots;
        }
        let Some(others) = &mut self.others else { return Vec::new() };
        let chunk = others.replace(number, Chunk::default());
        self.trim(discarded);
        chunk.slots
    }

    /// Takes out a chunk, the open one last.
    pub(super) fn pop_chunk(&mut self, discarded: &mut Discarded<V>) -> Vec<Slot<V>> {
        self.take_chunk(self.last_number() * CHUNK, discarded)
    }

    /// Returns the number of the last chunk that is not open. If there is none, returns that of the
    /// open one.
    fn last_number(&self) -> usize {
        self.others.as_ref().map_or(self.open_number(), |others| others.last_number())
    }

    /// Shortens the table, and discards it if the open chunk is the only one.
    fn trim(&mut self, discarded: &mut Discarded<V>) {
        let number = self.open_number();
        let Some(others) = &mut self.others else { return };
        others.trim(number + 1, discarded);
        if others.is_empty() {
            discarded.push_table(self.others.take());
            self.open.set_upkeep();
        }
    }

    /// Restores the bound on the memory after a removal at `position`. Calls `moved` with each
    /// value that has a new position.
    pub(super) fn keep_up(&mut self, position: usize, mut moved: impl FnMut(&V, u32), discarded: &mut Discarded<V>) {
        let sparse = self.chunk_mut(position).filter(|(chunk, _)| chunk.is_sparse());
        let Some(len) = sparse.map(|(chunk, _)| chunk.len as usize) else { return };
        let (number, open) = (position / CHUNK, self.open_number());
        let mut slots = if number == open && self.is_short() {
            self.shorten(len)
        } else if number != open && len > 0 && !self.open.is_sparse() {
            return self.open_chunk(number);
        } else {
            if number == open {
                self.open_chunk(self.last_number());
            }
            self.take_chunk(position, discarded)
        };
        for (deadline, value) in slots.drain(..) {
            if let Some(value) = value {
                self.insert(deadline, value, &mut moved);
            }
        }
        discarded.push_slots(slots);
    }

    /// Exchanges the only chunk, which has `len` values, for a shorter one without values, unless
    /// it is small. Returns the slots of the former one.
    fn shorten(&mut self, len: usize) -> Vec<Slot<V>> {
        if self.open.slots.capacity() <= MIN_CAPACITY {
            if len == 0 {
                self.clear();
            }
            return Vec::new();
        }
        if 2 * len * size_of::<Slot<V>>() > MAX_REPLACEMENT {
            return Vec::new();
        }
        let slots = mem::take(&mut self.open).slots;
        self.open.slots.reserve_exact(2 * len);
        self.open.set_upkeep();
        slots
    }

    /// Exchanges the slots for those of `empty` in O(1). Returns the memory of `empty` unless it is
    /// small.
    #[must_use]
    pub(super) fn take(&mut self, empty: &mut Slots<V>) -> Slots<V> {
        debug_assert!(empty.is_empty());
        let memory = empty.empty();
        mem::swap(self, empty);
        memory
    }

    /// Removes all slots. Keeps the memory if it is small, and returns it if not.
    #[must_use]
    pub(super) fn empty(&mut self) -> Slots<V> {
        if !self.is_short() || self.open.slots.capacity() > MIN_CAPACITY {
            return mem::take(self);
        }
        self.clear();
        Slots::default()
    }

    /// Removes all slots, and frees all chunks but the open one.
    pub(crate) fn clear(&mut self) {
        (self.others, self.start) = (None, 0);
        self.open.slots.clear();
        (self.open.vacant, self.open.len) = (END, 0);
        self.open.set_upkeep();
    }

    /// Calls `visit` with the slots of each chunk in the order of their positions, and frees the
    /// chunks on the way. Afterwards there are no slots.
    pub(crate) fn drain(&mut self, mut visit: impl FnMut(&mut [Slot<V>])) {
        if self.is_short() {
            visit(&mut self.open.slots);
            return self.clear();
        }
        mem::take(self).into_chunks().for_each(|mut chunk| visit(&mut chunk.slots));
    }
}

impl<V> Default for Slots<V> {
    fn default() -> Self {
        Slots { open: Chunk::default(), start: 0, others: None }
    }
}

#[cfg(test)]
impl<V> Slots<V> {
    /// Asserts the invariants of the table, and that each vacant slot is in the list of its chunk.
    pub(super) fn check(&self) {
        self.others.iter().for_each(|others| others.check(self.open_number()));
        for chunk in self.iter_chunks() {
            let (mut vacancies, mut vacant) = (0, chunk.vacant);
            while let Some(slot) = chunk.slots.get(vacant as usize) {
                assert!(slot.1.is_none() && vacancies < CHUNK, "the list leads to a value, or in a circle");
                vacancies += 1;
                vacant = slot.0 as u32;
            }
            let all = chunk.slots.len() - chunk.len as usize;
            assert!(vacant == END && [0, all].contains(&vacancies), "the list has all vacant slots, or none");
        }
    }

    pub(super) fn capacity(&self) -> usize {
        self.iter_chunks().map(|chunk| chunk.slots.capacity()).sum()
    }
}
