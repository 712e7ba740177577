//! Memory that a wheel has given up.
//!
//! A wheel does not free its long arrays itself, because its owner may hold a lock, and an
//! allocator may take long. After a million small pieces were freed, glibc takes 100 ms to free a
//! large one. The wheel keeps the arrays here instead, and the owner takes them out before it
//! leaves the lock and frees them afterwards.

use super::hashed::List;
use super::slots::{Chunk, MIN_CAPACITY, Slot, Slots, Table};

/// The arrays that a wheel has given up. They have no values.
pub(crate) struct Discarded<V>(Vec<Memory<V>>);

/// Memory that waits to be freed.
#[allow(dead_code, reason = "nothing reads it")]
pub(super) enum Memory<V> {
    Slots(Vec<Slot<V>>),
    Chunks(Vec<Chunk<V>>),
    Table(Box<Table<V>>),
    Lists(Vec<List<V>>),
    Bounds(Vec<u64>),
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
        self.0.push(memory);
    }

    /// Adds an array of slots. Frees a small array at once, because that takes no longer than
    /// freeing any other small piece.
    pub(super) fn push_slots(&mut self, slots: Vec<Slot<V>>) {
        if slots.capacity() > MIN_CAPACITY {
            self.push(Memory::Slots(slots));
        }
    }

    /// Adds the table of a bucket, and the chunks in it.
    pub(super) fn push_table(&mut self, table: Option<Box<Table<V>>>) {
        table.into_iter().for_each(|table| self.push(Memory::Table(table)));
    }

    /// Adds all arrays of a bucket.
    pub(super) fn push_bucket(&mut self, slots: Slots<V>) {
        self.push_slots(slots.open.slots);
        self.push_table(slots.others);
    }
}

#[cfg(test)]
impl<V> Discarded<V> {
    /// Returns the number of chunks for which the tables have memory.
    pub(super) fn table_room(&self) -> usize {
        let room = |memory: &Memory<V>| match memory {
            Memory::Chunks(chunks) => chunks.capacity(),
            Memory::Table(table) => table.capacity(),
            _ => 0,
        };
        self.0.iter().map(room).sum()
    }

    /// Returns the number of slots and the number of lists for which there is memory.
    pub(super) fn room(&self) -> (usize, usize) {
        self.0.iter().fold((0, 0), |(slots, lists), memory| match memory {
            Memory::Slots(array) => (slots + array.capacity(), lists),
            Memory::Table(table) => (slots + table.iter().map(|chunk| chunk.slots.capacity()).sum::<usize>(), lists),
            Memory::Lists(array) => (slots, lists + array.capacity()),
            Memory::Chunks(_) | Memory::Bounds(_) => (slots, lists),
        })
    }
}
