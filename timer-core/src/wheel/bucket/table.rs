//! The table of the chunks of a long bucket.
//!
//! It is an array in pieces, so that it grows without copies and gives up its memory a piece at a
//! time.

use super::chunk::{CHUNK, Chunk, Slot};
use crate::wheel::discarded::{Discarded, Memory};
use std::mem;

/// The number of chunks in a piece, which takes 2.5 KiB, and the number of chunks that are searched
/// at a time.
pub(super) const PIECE: usize = 64;

/// The chunks of a bucket by number. The open chunk is not among them. Its number is a gap
/// here, so that a chunk can be exchanged for it without an allocation.
pub(in crate::wheel) struct Table<V> {
    /// All pieces but the last one are full.
    pieces: Vec<Vec<Chunk<V>>>,
    /// The number of chunks that are not gaps.
    used: usize,
    /// The number at which the last search for room has ended.
    cursor: usize,
}

impl<V> Table<V> {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.pieces.last().map_or(0, |last| (self.pieces.len() - 1) * PIECE + last.len())
    }

    #[inline]
    pub(super) fn get(&self, number: usize) -> Option<&Chunk<V>> {
        self.pieces.get(number / PIECE)?.get(number % PIECE)
    }

    // Out of line, as `slot`.
    #[inline(never)]
    pub(super) fn get_mut(&mut self, number: usize) -> Option<&mut Chunk<V>> {
        self.pieces.get_mut(number / PIECE)?.get_mut(number % PIECE)
    }

    pub(in crate::wheel) fn iter(&self) -> impl Iterator<Item = &Chunk<V>> {
        self.pieces.iter().flatten()
    }

    pub(super) fn into_chunks(self) -> impl Iterator<Item = Chunk<V>> {
        self.pieces.into_iter().flatten()
    }

    /// Returns `true` if there are only gaps.
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
        let last = self.pieces.last().and_then(|last| last.last());
        last.map_or(0, |last| (self.len() - 1) * CHUNK + last.slots.len())
    }

    /// Returns the number of the last chunk. Returns `None` if the last [`PIECE`] are gaps.
    pub(super) fn last_number(&self) -> Option<usize> {
        let is_gap = |number: &usize| self.get(*number).is_none_or(Chunk::is_gap);
        (0..self.len()).rev().take(PIECE).find(|number| !is_gap(number))
    }

    /// Exchanges the chunk with this number. A gap stands for no chunk.
    pub(super) fn replace(&mut self, number: usize, chunk: Chunk<V>, discarded: &mut Discarded<V>) -> Chunk<V> {
        while self.len() <= number {
            if self.len() % PIECE == 0 {
                self.add_piece(discarded);
            }
            if let Some(last) = self.pieces.last_mut() {
                last.push(Chunk::default());
            }
        }
        self.used += usize::from(!chunk.is_gap());
        let former = self.get_mut(number).map(|former| mem::replace(former, chunk)).unwrap_or_default();
        self.used -= usize::from(!former.is_gap());
        former
    }

    fn add_piece(&mut self, discarded: &mut Discarded<V>) {
        let full = self.pieces.len();
        if full == self.pieces.capacity() {
            let mut former = mem::replace(&mut self.pieces, Vec::with_capacity(2 * full + 1));
            self.pieces.append(&mut former);
            discarded.push(Memory::Pieces(former));
        }
        self.pieces.push(Vec::with_capacity(PIECE));
    }

    /// Returns the number of a gap or of a chunk with much room, but not `open`. Searches at most
    /// [`PIECE`] numbers. The next search continues after them.
    pub(super) fn find_room(&mut self, open: usize) -> Option<usize> {
        for _ in 0..self.len().min(PIECE) {
            self.cursor = if self.cursor < self.len() - 1 { self.cursor + 1 } else { 0 };
            let has_room = |chunk: &Chunk<V>| chunk.is_gap() || chunk.has_much_room();
            if self.cursor != open && self.get(self.cursor).is_some_and(has_room) {
                return Some(self.cursor);
            }
        }
        None
    }

    /// Removes at most [`PIECE`] gaps at the end, but none of the first `len` chunks.
    pub(super) fn trim(&mut self, len: usize, discarded: &mut Discarded<V>) {
        for _ in 0..PIECE {
            let is_longer = self.len() > len;
            let ends_with_gap = |piece: &&mut Vec<Chunk<V>>| is_longer && piece.last().is_some_and(Chunk::is_gap);
            let Some(piece) = self.pieces.last_mut().filter(ends_with_gap) else { return };
            piece.pop();
            if piece.is_empty() {
                discarded.push(Memory::Piece(mem::take(piece)));
                self.pieces.pop();
            }
        }
    }

    /// Gives up the chunks.
    pub(super) fn discard(self, discarded: &mut Discarded<V>) {
        discarded.push(Memory::Pieces(self.pieces));
    }

    #[cfg(all(test, not(timer_loom)))]
    pub(in crate::wheel) fn capacity(&self) -> usize {
        self.pieces.iter().map(Vec::capacity).sum()
    }

    /// Asserts that the number of the open chunk is a gap, and that there are other chunks.
    #[cfg(all(test, not(timer_loom)))]
    pub(super) fn check(&self, open: usize) {
        assert!(self.get(open).is_some_and(Chunk::is_gap) && self.used > 0);
        assert!(self.used == self.iter().filter(|chunk| !chunk.is_gap()).count());
    }
}

impl<V> Default for Table<V> {
    fn default() -> Self {
        Table { pieces: Vec::new(), used: 0, cursor: 0 }
    }
}
