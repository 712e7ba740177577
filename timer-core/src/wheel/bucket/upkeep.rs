//! Upkeep of a bucket after removals.
//!
//! A removal that leaves few values in its chunk restores the bounds on the memory. A sparse chunk
//! becomes the open one, which insertions fill. If the open one is sparse as well, the values move
//! there. If the bucket has no other chunk, the sparse one is replaced by a shorter one, which
//! takes less than 1 KiB. So the capacity stays within four times the number of values plus a
//! chunk, and one removal moves less than a quarter of a chunk.

use super::Bucket;
use super::chunk::{CHUNK, Chunk, MIN_CAPACITY, MIN_UPKEEP, Slot};
use crate::wheel::discarded::Discarded;
use crate::wheel::location::{Location, Tracker};
use std::mem;

/// The most bytes of an array that replaces a longer one. For 1 KiB or more, glibc first joins all
/// free small pieces, which takes 100 ms after a million cancels.
pub(super) const MAX_REPLACEMENT: usize = if cfg!(any(test, fuzzing)) { 64 } else { 1000 };

/// A removal that leaves at most this many values in a bucket leaves its earliest deadline exact.
/// Only a bucket of one chunk has so few, because a chunk that is not open has more.
pub(super) const MAX_REREAD: usize = MIN_UPKEEP;
const _: () = assert!(cfg!(test) || CHUNK / 4 > MAX_REREAD);

impl<V> Bucket<V> {
    /// Restores the bounds on the memory and on the earliest deadline after a value at `position`
    /// with the deadline `removed` has left.
    pub(in crate::wheel) fn keep_up(
        &mut self,
        position: u32,
        removed: u64,
        tracker: &mut impl Tracker<V>,
        discarded: &mut Discarded<V>,
    ) {
        let values = self.values as usize;
        if values == 0 {
            return self.give_up(discarded);
        }
        self.compact(position as usize, tracker, discarded);
        if values == MAX_REREAD || (values < MAX_REREAD && removed == self.earliest) {
            self.earliest = self.iter().fold(u64::MAX, |min, (deadline, _)| min.min(deadline));
        }
    }

    /// Restores the bound on the memory after a removal at `position`. Reports the values that have
    /// a new position.
    fn compact<P: Tracker<V>>(&mut self, position: usize, tracker: &mut P, discarded: &mut Discarded<V>) {
        let number = position / CHUNK;
        let open = self.open_number();
        let capacity = if number == open { self.open.capacity() } else { CHUNK };
        let Some(len) = self.values_of(number).filter(|len| 4 * len < capacity) else { return };
        let mut chunk = if number == open && self.is_short() {
            self.shorten(len)
        } else if number != open && len > 0 && !self.open.is_sparse() {
            return self.open_chunk(number, discarded);
        } else {
            if number == open {
                let last = self.others.as_ref().and_then(|others| others.last_number());
                let Some(last) = last else { return self.trim(discarded) };
                self.open_chunk(last, discarded);
            }
            self.take_chunk(number, discarded)
        };
        chunk.iter().for_each(|(_, value)| P::prefetch(value));
        let name = self.name;
        for dated in chunk.drain() {
            self.place(dated, discarded, |value, position| tracker.moved(value, Location::new(name, position)));
        }
        discarded.push_slots(chunk.take_slots());
    }

    /// Exchanges the only chunk, with `len` values, for a shorter one without values, unless it is
    /// small. Returns the former one.
    fn shorten(&mut self, len: usize) -> Chunk<V> {
        if self.open.capacity() <= MIN_CAPACITY || 2 * len * size_of::<Slot<V>>() > MAX_REPLACEMENT {
            return Chunk::default();
        }
        let former = mem::take(&mut self.open);
        self.open.lengthen(2 * len);
        self.open.set_upkeep();
        former
    }
}
