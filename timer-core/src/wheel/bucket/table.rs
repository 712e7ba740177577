//! The table of the chunks of a long bucket.
//!
//! It is an array in pieces, so that it grows without copies and gives up its memory a piece at a
//! time.

use super::chunk::{CHUNK, Chunk, Dated, MIN_UPKEEP, Part, Slot, extract, vacate};
use super::piece::{FIRST, PIECE, Parts, Piece, Pieces};
use crate::wheel::discarded::{Discarded, Memory};
use std::mem;

/// The chunks of a bucket by number. The open chunk is not among them. Its number is a gap
/// here, so that a chunk can be exchanged for it without an allocation.
pub(in crate::wheel) struct Table<V> {
    first: Piece<V, FIRST>,
    more: Pieces<V>,
    /// The number of the last chunk that is no gap, plus one, or more.
    len: usize,
    /// The number of chunks that are not gaps.
    used: usize,
    /// The number at which the last search for room has ended.
    cursor: usize,
}

impl<V> Table<V> {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn get(&self, number: usize) -> Option<(u64, u8, &[Slot<V>])> {
        match number.checked_sub(FIRST) {
            None => self.first.get(number),
            Some(number) => self.more.get(number / PIECE)?.get(number % PIECE),
        }
    }

    #[inline]
    fn get_mut(&mut self, number: usize) -> Option<Parts<'_, V>> {
        match number.checked_sub(FIRST) {
            None => self.first.get_mut(number),
            Some(number) => self.more.get_mut(number / PIECE)?.get_mut(number % PIECE),
        }
    }

    /// Returns the slots of a chunk.
    pub(super) fn part(&self, number: usize) -> Option<Part<'_, V>> {
        let (marks, _, slots) = self.get(number)?;
        Some(Part::new(slots, marks))
    }

    /// Returns the chunks as parts.
    pub(super) fn parts(&self) -> impl Iterator<Item = Part<'_, V>> {
        (0..self.len).filter_map(|number| self.part(number))
    }

    pub(super) fn is_gap(&self, number: usize) -> bool {
        self.get(number).is_none_or(|(_, _, slots)| slots.is_empty())
    }

    /// Returns the number of values of a chunk.
    pub(super) fn values(&self, number: usize) -> usize {
        self.get(number).map_or(0, |(_, len, _)| usize::from(len))
    }

    /// Removes the value at `position` without reading its slot. Returns `None` if there is none or
    /// `may` returns `false`, and otherwise whether upkeep should follow.
    // Out of line, because most buckets have no table.
    #[inline(never)]
    pub(super) fn vacate(&mut self, position: usize, may: impl FnOnce() -> bool) -> Option<bool> {
        let (marks, len, _) = self.get_mut(position / CHUNK)?;
        vacate(marks, position % CHUNK, may).then(|| {
            *len -= 1;
            needs_upkeep(usize::from(*len))
        })
    }

    /// Does the same as [`extract`] for a chunk. Returns the earliest deadline and the number of
    /// values that are left.
    pub(super) fn extract(
        &mut self,
        number: usize,
        chosen: impl Fn(u64) -> bool,
        fetch: impl Fn(&V),
        each: impl FnMut(Dated<V>),
    ) -> (u64, usize) {
        let Some((marks, len, slots)) = self.get_mut(number) else { return (u64::MAX, 0) };
        let earliest = extract(slots, marks, chosen, fetch, each);
        *len = marks.count_ones() as u8;
        (earliest, usize::from(*len))
    }

    /// Removes the value at `position` if there is one and it is `wanted`. Also returns whether
    /// upkeep should follow.
    #[inline(never)]
    pub(super) fn remove(&mut self, position: usize, wanted: impl FnOnce(&V) -> bool) -> Option<(Dated<V>, bool)> {
        let (marks, len, slots) = self.get_mut(position / CHUNK)?;
        let at = position % CHUNK;
        let slot = slots.get_mut(at).filter(|_| *marks >> at & 1 == 1)?;
        let value = slot.1.take_if(|value| wanted(value))?;
        vacate(marks, at, || true);
        *len -= 1;
        Some(((slot.0, value), needs_upkeep(usize::from(*len))))
    }

    pub(super) fn into_chunks(mut self) -> impl Iterator<Item = Chunk<V>> {
        (0..self.len).map(move |number| self.exchange(number, Chunk::default()))
    }

    /// Returns `true` if there are only gaps.
    pub(super) fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Returns the number of the last chunk. Returns `None` if the last [`PIECE`] are gaps.
    pub(super) fn last_number(&self) -> Option<usize> {
        (0..self.len()).rev().take(PIECE).find(|number| !self.is_gap(*number))
    }

    /// Exchanges the chunk with this number. A gap stands for no chunk.
    pub(super) fn replace(&mut self, number: usize, chunk: Chunk<V>, discarded: &mut Discarded<V>) -> Chunk<V> {
        while number >= FIRST + self.more.len() * PIECE {
            self.add_piece(discarded);
        }
        self.len = self.len.max(number + 1);
        self.exchange(number, chunk)
    }

    /// As [`replace`](Self::replace), for a number that the table has.
    pub(super) fn exchange(&mut self, number: usize, chunk: Chunk<V>) -> Chunk<V> {
        let is_used = !chunk.is_gap();
        let Some((marks, len, slots)) = self.get_mut(number) else { return chunk };
        let (new_slots, new_marks) = chunk.into_parts();
        let former = Chunk::new(mem::replace(slots, new_slots), mem::replace(marks, new_marks));
        *len = new_marks.count_ones() as u8;
        self.used += usize::from(is_used);
        self.used -= usize::from(!former.is_gap());
        former
    }

    fn add_piece(&mut self, discarded: &mut Discarded<V>) {
        let full = self.more.len();
        if full == self.more.capacity() {
            let mut former = mem::replace(&mut self.more, Vec::with_capacity(2 * full + 1));
            self.more.append(&mut former);
            discarded.push(Memory::Pieces(former));
        }
        self.more.push(Box::new(Piece::new()));
    }

    /// Gives up the chunks.
    pub(super) fn discard(self, discarded: &mut Discarded<V>) {
        discarded.push(Memory::First(Box::new(self.first)));
        if !self.more.is_empty() {
            discarded.push(Memory::Pieces(self.more));
        }
    }

    /// Returns the number of a gap or of a chunk with much room, but not `open`. Searches at most
    /// [`PIECE`] numbers. The next search continues after them.
    pub(super) fn find_room(&mut self, open: usize) -> Option<usize> {
        for _ in 0..self.len().min(PIECE) {
            self.cursor = if self.cursor < self.len() - 1 { self.cursor + 1 } else { 0 };
            if self.cursor != open && self.values(self.cursor) <= MAX_FILLED {
                return Some(self.cursor);
            }
        }
        None
    }

    /// Removes at most [`PIECE`] gaps at the end, but none of the first `len` chunks.
    pub(super) fn trim(&mut self, len: usize, discarded: &mut Discarded<V>) {
        for _ in 0..PIECE {
            if self.len <= len || !self.is_gap(self.len - 1) {
                return;
            }
            self.len -= 1;
            if self.len >= FIRST && (self.len - FIRST) % PIECE == 0 {
                if let Some(piece) = self.more.pop() {
                    discarded.push(Memory::Piece(piece));
                }
            }
        }
    }

    /// Returns the numbers of chunks and of slots for which there is memory.
    #[cfg(all(test, not(timer_loom)))]
    pub(in crate::wheel) fn room(&self) -> (usize, usize) {
        (FIRST + self.more.len() * PIECE, self.parts().map(|part| part.len()).sum())
    }

    /// Asserts that the number of the open chunk is a gap, and that there are other chunks.
    #[cfg(all(test, not(timer_loom)))]
    pub(super) fn check(&self, open: usize) {
        assert!(self.is_gap(open) && self.used > 0);
        assert!(self.used == (0..self.len).filter(|number| !self.is_gap(*number)).count());
        assert!(self.more.len() == self.len.saturating_sub(FIRST).div_ceil(PIECE));
    }
}

/// Returns `true` if a removal that leaves `values` in a chunk of a table should be followed by
/// upkeep.
#[inline]
pub(super) fn needs_upkeep(values: usize) -> bool {
    values < (CHUNK / 4).max(MIN_UPKEEP + 1)
}

/// A chunk with at most this many values has room for those of a sparse one.
const MAX_FILLED: usize = CHUNK - CHUNK / 4;

impl<V> Default for Table<V> {
    fn default() -> Self {
        Table { first: Piece::new(), more: Vec::new(), len: 0, used: 0, cursor: 0 }
    }
}
