//! A growable array in chunks.
//!
//! Unlike a `Vec`, the array never copies more than one chunk, and it returns its memory chunk by
//! chunk. So the cost of any operation under a lock has a bound that does not depend on the length.
//!
//! The first chunk grows by doubling, so that a short array takes little memory. Each further chunk
//! is allocated at its full length of [`CHUNK`] slots.

use super::slots::{CHUNK, MIN_CAPACITY};
use std::mem;

/// A growable array in chunks.
pub(crate) struct Chunks<T> {
    /// All chunks but the last. Each is full.
    full: Vec<Vec<T>>,
    /// The last chunk. It may be empty although others are full, which keeps an array whose length
    /// changes by one at the boundary from allocating each time.
    last: Vec<T>,
}

impl<T> Chunks<T> {
    pub(crate) const fn new() -> Self {
        Chunks { full: Vec::new(), last: Vec::new() }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.full.len() * CHUNK + self.last.len()
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.full.len() * CHUNK + self.last.capacity()
    }

    #[inline]
    pub(crate) fn get(&self, position: usize) -> Option<&T> {
        if self.full.is_empty() { self.last.get(position) } else { self.get_in_chunk(position) }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, position: usize) -> Option<&mut T> {
        if self.full.is_empty() { self.last.get_mut(position) } else { self.get_mut_in_chunk(position) }
    }

    #[inline(never)]
    fn get_in_chunk(&self, position: usize) -> Option<&T> {
        match self.full.get(position / CHUNK) {
            Some(chunk) => chunk.get(position % CHUNK),
            None => self.last.get(position - self.full.len() * CHUNK),
        }
    }

    #[inline(never)]
    fn get_mut_in_chunk(&mut self, position: usize) -> Option<&mut T> {
        let full = self.full.len();
        match self.full.get_mut(position / CHUNK) {
            Some(chunk) => chunk.get_mut(position % CHUNK),
            None => self.last.get_mut(position - full * CHUNK),
        }
    }

    /// Returns the elements of a group of `size`, which divides [`CHUNK`].
    pub(super) fn group(&self, nth: usize, size: usize) -> &[T] {
        let (start, full) = (nth * size, self.full.len());
        let chunk = self.full.get(start / CHUNK).unwrap_or(&self.last);
        let start = if start / CHUNK > full { chunk.len() } else { (start % CHUNK).min(chunk.len()) };
        &chunk[start..chunk.len().min(start + size)]
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        self.full.iter().flatten().chain(&self.last)
    }

    pub(crate) fn into_iter(self) -> impl Iterator<Item = T> {
        self.full.into_iter().flatten().chain(self.last)
    }

    /// Appends an element.
    #[inline]
    pub(super) fn push(&mut self, element: T) {
        if self.last.len() >= self.last.capacity().min(CHUNK) {
            self.grow();
        }
        self.last.push(element);
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        if self.last.len() >= CHUNK {
            self.full.push(mem::replace(&mut self.last, Vec::with_capacity(CHUNK)));
        } else {
            let len = self.last.len();
            self.last.reserve_exact(len.max(MIN_CAPACITY).min(CHUNK - len));
        }
    }

    /// Removes the last element and returns it. Frees an empty chunk before it goes on to the
    /// previous one.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.last.is_empty() {
            self.last = self.full.pop()?;
        }
        self.last.pop()
    }

    /// Gives back most of the memory that is not used, which may copy up to a quarter of a chunk.
    pub(super) fn shrink(&mut self) {
        let (len, capacity) = (self.last.len(), self.last.capacity());
        if self.full.is_empty() && capacity > MIN_CAPACITY && len < capacity / 4 {
            self.last.shrink_to(2 * len);
        }
    }
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
