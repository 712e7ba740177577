//! A piece of the table of the chunks of a long bucket.
//!
//! The marks of its chunks lie next to each other, and so do the counts. Those of a million values
//! take 140 KiB, which the cache of a CPU holds.

use super::chunk::Slot;

/// The number of chunks in a piece, which takes 1.6 KiB, and the number of chunks that are searched
/// at a time.
pub(in crate::wheel) const PIECE: usize = 64;

/// The number of chunks in the first piece, which is a part of the table.
pub(in crate::wheel) const FIRST: usize = 8;

/// The pieces after the first one. The list grows without copying them.
#[allow(clippy::vec_box, reason = "a piece is large")]
pub(in crate::wheel) type Pieces<V> = Vec<Box<Piece<V, PIECE>>>;

/// `N` chunks. One without slots is a gap.
pub(in crate::wheel) struct Piece<V, const N: usize> {
    /// Bit n of an element: slot n of that chunk has a value.
    marks: [u64; N],
    /// The numbers of values.
    lens: [u8; N],
    slots: [Box<[Slot<V>]>; N],
}

/// The parts of a chunk of a piece.
pub(super) type Parts<'a, V> = (&'a mut u64, &'a mut u8, &'a mut Box<[Slot<V>]>);

impl<V, const N: usize> Piece<V, N> {
    pub(super) fn new() -> Self {
        Piece { marks: [0; N], lens: [0; N], slots: std::array::from_fn(|_| Box::default()) }
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<(u64, u8, &[Slot<V>])> {
        Some((*self.marks.get(at)?, *self.lens.get(at)?, self.slots.get(at)?))
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: usize) -> Option<Parts<'_, V>> {
        Some((self.marks.get_mut(at)?, self.lens.get_mut(at)?, self.slots.get_mut(at)?))
    }
}

#[cfg(all(test, not(timer_loom)))]
impl<V, const N: usize> Piece<V, N> {
    /// Returns the numbers of chunks and of slots for which there is memory.
    pub(in crate::wheel) fn room(&self) -> (usize, usize) {
        (N, self.slots.iter().map(|slots| slots.len()).sum())
    }
}
