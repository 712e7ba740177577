//! Memory that a wheel has given up.
//!
//! A wheel does not free its arrays itself, because its owner may hold a lock, and an allocator may
//! take long. After a million small pieces were freed, glibc takes 100 ms to free a large one. The
//! wheel keeps the arrays here instead, and the owner takes them out before it leaves the lock and
//! frees them afterwards.

use super::bucket::{FIRST, MIN_CAPACITY, PIECE, Piece, Pieces, Slot};
use std::mem;

/// The arrays that a wheel has given up. They have no values.
pub(crate) struct Discarded<V>(Vec<Memory<V>>);

/// The number of arrays in a list, which takes 256 bytes.
const LIST: usize = 8;

/// Memory that waits to be freed.
#[allow(dead_code, reason = "nothing reads it")]
pub(super) enum Memory<V> {
    Slots(Vec<Slot<V>>),
    First(Box<Piece<V, FIRST>>),
    Piece(Box<Piece<V, PIECE>>),
    Pieces(Pieces<V>),
    /// A list that is full. A longer one would be copied, and the former one freed.
    More(Discarded<V>),
}

impl<V> Discarded<V> {
    pub(super) const fn new() -> Self {
        Discarded(Vec::new())
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[cold]
    pub(super) fn push(&mut self, memory: Memory<V>) {
        if self.0.len() == self.0.capacity() {
            let full = mem::replace(&mut self.0, Vec::with_capacity(LIST));
            if !full.is_empty() {
                self.0.push(Memory::More(Discarded(full)));
            }
        }
        self.0.push(memory);
    }

    /// Adds an array of slots. Frees a small array at once, because that takes no longer than
    /// freeing any other small piece.
    pub(super) fn push_slots(&mut self, slots: Vec<Slot<V>>) {
        if slots.capacity() > MIN_CAPACITY {
            self.push(Memory::Slots(slots));
        }
    }
}

#[cfg(all(test, not(timer_loom)))]
impl<V> Discarded<V> {
    /// Returns the number of chunks for which the tables have memory, and the number of slots.
    pub(super) fn room(&self) -> (usize, usize) {
        let add = |sum: (usize, usize), more: (usize, usize)| (sum.0 + more.0, sum.1 + more.1);
        let mut room = (0, 0);
        for memory in &self.0 {
            let here = match memory {
                Memory::Slots(array) => (0, array.capacity()),
                Memory::Piece(piece) => piece.room(),
                Memory::First(piece) => piece.room(),
                Memory::Pieces(pieces) => pieces.iter().map(|piece| piece.room()).fold((0, 0), add),
                Memory::More(list) => list.room(),
            };
            room = add(room, here);
        }
        room
    }
}
