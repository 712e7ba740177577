//! A chunk of slots, with a list of the vacant ones.

use std::mem;

/// The number of slots in a chunk, which takes 4 KiB. Tests use short chunks, so that few values
/// make a long bucket.
pub(crate) const CHUNK: usize = if cfg!(test) {
    16
} else if cfg!(fuzzing) {
    64
} else {
    256
};

/// An empty bucket keeps room for this many values, so that a lone timeout does not allocate each
/// time.
pub(in crate::wheel) const MIN_CAPACITY: usize = 4;

/// A removal that leaves at most this many values in a chunk is followed by upkeep, unless
/// insertions fill that chunk and there are others.
pub(super) const MIN_UPKEEP: usize = 8;

/// A value and the tick at which it is due.
pub(crate) type Dated<V> = (u64, V);

/// One element of a bucket, a value with its deadline. If it is vacant, its number is the next
/// vacant element of its chunk.
pub(crate) type Slot<V> = (u64, Option<V>);

/// A chunk with at most this many values has room for those of a sparse one.
const MAX_FILLED: usize = CHUNK - CHUNK / 4;

/// The end of a list of vacant slots.
pub(super) const END: u32 = u32::MAX;

/// An array of at most [`CHUNK`] slots, with a list of the vacant ones.
pub(in crate::wheel) struct Chunk<V> {
    pub(in crate::wheel) slots: Vec<Slot<V>>,
    /// The slot that became vacant last, or [`END`]. Each vacant slot has the next one in place of
    /// a deadline.
    pub(super) vacant: u32,
    /// The number of values.
    pub(in crate::wheel) len: u32,
    /// A removal that leaves fewer values than this is followed by upkeep.
    pub(super) upkeep_below: u32,
}

impl<V> Chunk<V> {
    /// Removes the value at `position` if there is one and it is `wanted`.
    #[inline]
    pub(in crate::wheel) fn remove(&mut self, position: usize, wanted: impl FnOnce(&V) -> bool) -> Option<Dated<V>> {
        let slot = self.slots.get_mut(position)?;
        let value = slot.1.take_if(|value| wanted(value))?;
        let deadline = mem::replace(&mut slot.0, u64::from(self.vacant));
        self.vacant = position as u32;
        self.len -= 1;
        Some((deadline, value))
    }

    /// Removes the value at `position`, whose slot must have one. Does not read a value that needs
    /// no drop.
    #[inline]
    pub(in crate::wheel) fn vacate(&mut self, position: usize) {
        self.slots[position] = (u64::from(self.vacant), None);
        self.vacant = position as u32;
        self.len -= 1;
    }

    /// Removes the values whose deadlines are `chosen`, and calls `each` with them. Returns the
    /// earliest deadline of the others, or `u64::MAX` if there are none.
    #[inline]
    pub(in crate::wheel) fn extract(&mut self, chosen: impl Fn(u64) -> bool, mut each: impl FnMut(Dated<V>)) -> u64 {
        let mut from = 0;
        let mut earliest = u64::MAX;
        let mut is_chosen = |(deadline, value): &Slot<V>| {
            // No branch, because vacant slots are at random places. They may be chosen, and the
            // removal skips them.
            let deadline = if value.is_some() { *deadline } else { u64::MAX };
            let is_chosen = chosen(deadline);
            earliest = earliest.min(if is_chosen { u64::MAX } else { deadline });
            is_chosen
        };
        while let Some(passed) = self.slots.get(from..).and_then(|slots| slots.iter().position(&mut is_chosen)) {
            if let Some(dated) = self.remove(from + passed, |_| true) {
                each(dated);
            }
            from += passed + 1;
        }
        earliest
    }

    /// Returns `true` if a removal should be followed by upkeep.
    #[inline]
    pub(in crate::wheel) fn needs_upkeep(&self) -> bool {
        self.len < self.upkeep_below
    }

    /// Returns `true` if fewer than a quarter of the slots have values.
    pub(super) fn is_sparse(&self) -> bool {
        4 * (self.len as usize) < self.slots.capacity()
    }

    /// Returns `true` if the chunk has its full length, and room for the values of a sparse chunk.
    pub(super) fn has_much_room(&self) -> bool {
        self.slots.capacity() == CHUNK && self.len as usize <= MAX_FILLED
    }

    /// Returns `true` if the chunk has no memory, so that it is a gap in the positions.
    pub(super) fn is_gap(&self) -> bool {
        self.slots.capacity() == 0
    }

    pub(super) fn set_upkeep(&mut self) {
        self.upkeep_below = (self.slots.capacity() / 4).max(MIN_UPKEEP + 1) as u32;
    }
}

impl<V> Default for Chunk<V> {
    fn default() -> Self {
        Chunk { slots: Vec::new(), vacant: END, len: 0, upkeep_below: MIN_UPKEEP as u32 + 1 }
    }
}
