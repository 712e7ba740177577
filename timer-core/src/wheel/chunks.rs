//! A growable array in chunks.
//!
//! Unlike a `Vec`, the array never copies more than one chunk, and it gives up its memory chunk by
//! chunk. So the cost of any operation under a lock has a bound that does not depend on the length.
//!
//! The first chunk grows by doubling, so that a short array takes little memory. Each further chunk
//! is allocated at its full length, which takes 4 KiB.

use super::slots::{CHUNK, MIN_CAPACITY, Slot};
use std::mem;

/// A growable array in chunks.
pub(crate) struct Chunks<T> {
    /// All chunks but the last. Each is full.
    full: Vec<Vec<T>>,
    /// The last chunk. It may be empty although others are full, so that an array whose length
    /// changes by one at a boundary does not allocate each time. The first chunk stays until the
    /// array is dropped.
    last: Vec<T>,
}

impl<T> Chunks<T> {
    /// The number of elements in a chunk. A chunk takes as much memory as a chunk of slots.
    const LEN: usize = (CHUNK * size_of::<Slot<()>>() / size_of::<T>()).next_power_of_two();

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.full.len() * Self::LEN + self.last.len()
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.full.len() * Self::LEN + self.last.capacity()
    }

    #[inline]
    pub(crate) fn get(&self, position: usize) -> Option<&T> {
        if self.full.is_empty() { self.last.get(position) } else { self.group(position, 1).first() }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, position: usize) -> Option<&mut T> {
        if self.full.is_empty() { self.last.get_mut(position) } else { self.get_mut_in_chunk(position) }
    }

    #[inline(never)]
    fn get_mut_in_chunk(&mut self, position: usize) -> Option<&mut T> {
        let full = self.full.len();
        match self.full.get_mut(position / Self::LEN) {
            Some(chunk) => chunk.get_mut(position % Self::LEN),
            None => self.last.get_mut(position - full * Self::LEN),
        }
    }

    /// Returns the elements of a group of `size`, which divides the length of a chunk.
    pub(super) fn group(&self, nth: usize, size: usize) -> &[T] {
        let (start, full) = (nth * size, self.full.len());
        let chunk = self.full.get(start / Self::LEN).unwrap_or(&self.last);
        let start = if start / Self::LEN > full { chunk.len() } else { (start % Self::LEN).min(chunk.len()) };
        &chunk[start..chunk.len().min(start + size)]
    }

    #[inline]
    pub(super) fn last(&self) -> Option<&T> {
        self.last.last().or_else(|| self.full.last()?.last())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        self.full.iter().flatten().chain(&self.last)
    }

    pub(crate) fn into_iter(self) -> impl Iterator<Item = T> {
        self.full.into_iter().flatten().chain(self.last)
    }

    /// Appends an element.
    #[inline]
    pub(super) fn push(&mut self, element: T) {
        if self.last.len() >= self.last.capacity().min(Self::LEN) {
            self.grow();
        }
        self.last.push(element);
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        if self.last.len() >= Self::LEN {
            self.full.push(mem::replace(&mut self.last, Vec::with_capacity(Self::LEN)));
        } else {
            let len = self.last.len();
            self.last.reserve_exact(len.max(MIN_CAPACITY).min(Self::LEN - len));
        }
    }

    /// Removes the last element and returns it. Calls `discard` with an empty chunk before the
    /// array goes on to the previous one.
    #[inline]
    pub(super) fn pop(&mut self, discard: impl FnOnce(Vec<T>)) -> Option<T> {
        if self.last.is_empty() {
            let previous = self.full.pop()?;
            discard(mem::replace(&mut self.last, previous));
        }
        self.last.pop()
    }
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Chunks { full: Vec::new(), last: Vec::new() }
    }
}

#[cfg(test)]
mod tests;
