//! Checks of the storage of a bucket.

use super::*;

impl<V> Slots<V> {
    /// Asserts the invariants of the table, and that each vacant slot is in the list of its chunk.
    pub(in crate::wheel) fn check(&self) {
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

    pub(in crate::wheel) fn values(&self) -> usize {
        self.iter_chunks().map(|chunk| chunk.len as usize).sum()
    }

    pub(in crate::wheel) fn capacity(&self) -> usize {
        self.iter_chunks().map(|chunk| chunk.slots.capacity()).sum()
    }
}
