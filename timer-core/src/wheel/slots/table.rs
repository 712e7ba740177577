//! The table of the chunks of a long bucket.
//!
//! It is an array in chunks itself, so that it grows without copies, and gives up its memory in
//! pieces. A piece of 64 KiB would make glibc join all free small pieces when it is freed.

use super::{CHUNK, Chunk, Slot};
use crate::wheel::chunks::Chunks;
use crate::wheel::discarded::{Discarded, Memory};
use std::mem;

/// The number of chunks that are searched for room at a time.
const SEARCHED: usize = 64;

/// The chunks of a bucket by number. The open chunk is not among them. It has an entry that is a
/// gap, so that a chunk can be exchanged for it without an allocation.
pub(in crate::wheel) struct Table<V> {
    chunks: Chunks<Chunk<V>>,
    /// The number of entries that are not gaps.
    used: usize,
    /// The entry at which the last search for room has ended.
    cursor: usize,
}

impl<V> Table<V> {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.chunks.len()
    }

    #[inline]
    pub(super) fn get(&self, number: usize) -> Option<&Chunk<V>> {
        self.chunks.get(number)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: usize) -> Option<&mut Chunk<V>> {
        self.chunks.get_mut(number)
    }

    pub(in crate::wheel) fn iter(&self) -> impl Iterator<Item = &Chunk<V>> {
        self.chunks.iter()
    }

    pub(super) fn into_chunks(self) -> impl Iterator<Item = Chunk<V>> {
        self.chunks.into_iter()
    }

    /// Returns `true` if all entries are gaps.
    pub(super) fn is_empty(&self) -> bool {
        self.used == 0
    }

    // Out of line, because most buckets have no table.
    #[inline(never)]
    pub(super) fn slot(&self, position: usize) -> Option<&Slot<V>> {
        self.get(position / CHUNK)?.slots.get(position % CHUNK)
    }

    /// Returns the position after the last slot.
    #[inline(never)]
    pub(super) fn end(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.len() - 1) * CHUNK + last.slots.len())
    }

    /// Returns the number of the last chunk. The table must not be empty.
    pub(super) fn last_number(&self) -> usize {
        let is_gap = |number: &usize| self.get(*number).is_none_or(Chunk::is_gap);
        (0..self.len()).rev().find(|number| !is_gap(number)).unwrap_or(0)
    }

    /// Exchanges the chunk with this number. A gap stands for no chunk.
    pub(super) fn replace(&mut self, number: usize, chunk: Chunk<V>) -> Chunk<V> {
        while self.len() <= number {
            self.chunks.push(Chunk::default());
        }
        self.used += usize::from(!chunk.is_gap());
        let former = self.chunks.get_mut(number).map(|entry| mem::replace(entry, chunk)).unwrap_or_default();
        self.used -= usize::from(!former.is_gap());
        former
    }

    /// Returns the number of a gap or of a chunk with much room, but not `open`. Searches at most
    /// [`SEARCHED`] entries. The next search continues after them.
    pub(super) fn find_room(&mut self, open: usize) -> Option<usize> {
        for _ in 0..self.len().min(SEARCHED) {
            self.cursor = if self.cursor < self.len() - 1 { self.cursor + 1 } else { 0 };
            let has_room = |chunk: &Chunk<V>| chunk.is_gap() || chunk.has_much_room();
            if self.cursor != open && self.get(self.cursor).is_some_and(has_room) {
                return Some(self.cursor);
            }
        }
        None
    }

    /// Removes gaps at the end, but none of the first `len` entries.
    pub(super) fn trim(&mut self, len: usize, discarded: &mut Discarded<V>) {
        while self.len() > len && self.chunks.last().is_some_and(Chunk::is_gap) {
            self.chunks.pop(|memory| discarded.push(Memory::Chunks(memory)));
        }
    }

    #[cfg(test)]
    pub(in crate::wheel) fn capacity(&self) -> usize {
        self.chunks.capacity()
    }

    /// Asserts that the entry of the open chunk is a gap, and that there are other chunks.
    #[cfg(test)]
    pub(super) fn check(&self, open: usize) {
        assert!(self.get(open).is_some_and(Chunk::is_gap) && self.used > 0);
        assert!(self.used == self.iter().filter(|chunk| !chunk.is_gap()).count());
        assert!(self.len() == open + 1 || !self.chunks.last().is_some_and(Chunk::is_gap));
    }
}

impl<V> Default for Table<V> {
    fn default() -> Self {
        Table { chunks: Chunks::default(), used: 0, cursor: 0 }
    }
}
