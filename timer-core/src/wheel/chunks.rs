//! A growable array in chunks.
//!
//! Unlike a `Vec`, the array never copies more than one chunk, and it returns its memory chunk by
//! chunk. So the cost of any operation under a lock has a bound that does not depend on the length.
//!
//! The first chunk grows by doubling, so that a short array takes little memory. Each further chunk
//! is allocated at its full length of [`CHUNK`] slots.

use std::mem;

/// The number of elements in a chunk. Tests use short chunks, so that few values make a long array.
pub(super) const CHUNK: usize = if cfg!(test) {
    16
} else if cfg!(fuzzing) {
    256
} else {
    1 << 10
};

/// An emptied array keeps room for this many elements, so that a lone timeout does not allocate
/// each time.
pub(super) const MIN_CAPACITY: usize = 4;

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

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.last.is_empty() && self.full.is_empty()
    }

    #[inline]
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

    /// Returns the elements of a chunk, which are none beyond the last chunk.
    pub(super) fn chunk_mut(&mut self, nth: usize) -> &mut [T] {
        let full = self.full.len();
        match self.full.get_mut(nth) {
            Some(chunk) => chunk,
            None if nth == full => &mut self.last,
            None => &mut [],
        }
    }

    /// Returns the elements of a group of `size`, which divides [`CHUNK`].
    pub(super) fn group(&self, nth: usize, size: usize) -> &[T] {
        let (start, full) = (nth * size, self.full.len());
        let chunk = self.full.get(start / CHUNK).unwrap_or(&self.last);
        let start = if start / CHUNK > full { chunk.len() } else { (start % CHUNK).min(chunk.len()) };
        &chunk[start..chunk.len().min(start + size)]
    }

    /// Calls `visit` with each element. This is faster than [`iter`](Self::iter) for short arrays.
    #[inline]
    pub(super) fn for_each(&self, mut visit: impl FnMut(&T)) {
        for chunk in &self.full {
            chunk.iter().for_each(&mut visit);
        }
        self.last.iter().for_each(visit);
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

    /// Removes a chunk, the last one first.
    pub(super) fn pop_chunk(&mut self) -> Option<Vec<T>> {
        if self.last.capacity() > 0 { Some(mem::take(&mut self.last)) } else { self.full.pop() }
    }

    /// Exchanges an array for an empty one in O(1). The memory of the empty one is kept if it is
    /// small, and freed if not.
    pub(super) fn take(&mut self, empty: &mut Chunks<T>) {
        debug_assert!(empty.is_empty());
        if empty.last.capacity() > MIN_CAPACITY {
            empty.last = Vec::new();
        }
        mem::swap(self, empty);
    }

    /// Empties the array and frees all chunks but one.
    pub(crate) fn clear(&mut self) {
        self.full = Vec::new();
        self.last.clear();
    }

    /// Calls `visit` with the elements of each chunk in turn, and frees the chunks on the way. The
    /// array is empty afterwards.
    pub(super) fn drain(&mut self, mut visit: impl FnMut(&mut [T])) {
        for mut chunk in mem::take(&mut self.full) {
            visit(&mut chunk);
        }
        visit(&mut self.last);
        self.last.clear();
    }
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
