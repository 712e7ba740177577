//! The cascade: moving the values of a bucket to finer levels once `now` is in the bucket's span.
//! The slots that the values leave hold their new locations (see [`super::forwarding`]).
//!
//! *Short steps.* A bucket of one chunk is emptied at once. A longer one is moved out of its level
//! into the [`Cascade`], which works on one chunk at a time:
//!
//! 1. It scans all chunks, one at each step. It takes out the values that are due and moves those
//!    that are due before the next bucket of the next finer level begins. It notes the earliest
//!    deadline of the values that remain. (On level 1 this pass is left out, because all values are
//!    due within the next 64 ticks.)
//! 2. It empties one chunk whenever the wheel takes a step. No step is taken for this alone. If a
//!    remaining value becomes due before all chunks are empty, the chunks that are left are scanned
//!    again, or, on level 1, emptied.

use super::{BITS, BUCKETS, LEVELS, RawHierarchical, id, insert_into, span};
use crate::wheel::location::{Location, Tracker};
use crate::wheel::slots::{CHUNK, Slots};

/// The values of one level's bucket while they move to finer levels, and the links to those that
/// have moved.
pub(super) struct Cascade<V> {
    /// A slot without a value holds the new [`Location`] of the value.
    pub(super) slots: Slots<V>,
    /// The number of values that have not left.
    pub(super) len: usize,
    /// The next chunk to scan.
    scanned: usize,
    /// The next chunk to empty.
    emptied: usize,
    /// A lower bound of the deadlines of the values that remain after the scan.
    earliest: u64,
}

/// The cascades of all levels in brief.
#[derive(Default)]
pub(super) struct Cascades {
    /// The levels whose cascades have slots, one bit each.
    pub(super) open: u32,
    /// The levels whose cascades have values and are being scanned.
    scanning: u32,
    /// The levels whose cascades have values and have been scanned.
    resting: u32,
    /// The number of values that were moved and that the owner has not counted yet.
    pub(super) moved: u32,
    /// The number of slots in all cascades.
    pub(super) slots: usize,
}

impl<V> Cascade<V> {
    pub(super) fn new() -> Self {
        Cascade { slots: Slots::default(), len: 0, scanned: 0, emptied: 0, earliest: u64::MAX }
    }

    /// Returns the new location of the value that was at this position. The answer has no meaning
    /// if the value was removed.
    pub(super) fn forward(&self, position: u32) -> Option<Location> {
        let (bits, value) = self.slots.get(position as usize)?;
        value.is_none().then(|| Location::from_bits(*bits))
    }
}

impl Cascades {
    /// Returns `true` if a cascade has values.
    #[inline]
    pub(super) fn has_values(&self) -> bool {
        self.scanning | self.resting != 0
    }
}

/// Iterates over the levels in a set.
pub(super) fn levels(set: u32) -> impl Iterator<Item = usize> {
    (0..LEVELS).take_while(move |at| set >> at != 0).filter(move |at| set >> at & 1 == 1)
}

impl<V, P: Tracker<V>> RawHierarchical<V, P> {
    /// Moves the clock, and drops the cascades of the buckets whose spans it leaves.
    #[inline]
    pub(super) fn set_now(&mut self, now: u64) {
        let changed = (now ^ self.now).checked_ilog2().map_or(0, |bit| (2 << (bit / BITS)) - 1);
        if self.cascades.open & changed != 0 {
            self.close(self.cascades.open & changed);
        }
        self.now = now;
    }

    /// Begins the cascade of a bucket in whose span `now` is. The bucket is not marked as occupied
    /// any more.
    pub(super) fn begin_cascade(&mut self, at: usize, index: usize, due: &mut Slots<V>) {
        let Some(level) = &mut self.levels[at] else { return };
        let (bucket, cascade) = (&mut level.buckets[index], &mut level.cascade);
        let (len, is_short) = (bucket.slots.values(), bucket.slots.is_short());
        let earliest = if at == 1 { bucket.earliest } else { u64::MAX };
        self.discarded.push_bucket(bucket.take(&mut cascade.slots));
        (cascade.len, cascade.scanned, cascade.emptied, cascade.earliest) = (len, 0, 0, earliest);
        self.cascades.open |= 1 << at;
        self.cascades.slots += cascade.slots.slots();
        if is_short {
            let only = cascade.slots.chunks() - 1;
            self.empty_chunk(at, only, due, |_| true);
        } else if at == 1 {
            self.cascades.resting |= 1 << at;
        } else {
            self.cascades.scanning |= 1 << at;
        }
    }

    /// Takes a step of a cascade on the way to `to`. Returns `false` if there was nothing to do, or
    /// nothing that is due by then.
    #[cold]
    #[inline(never)]
    pub(super) fn step_cascade(&mut self, to: u64, due: &mut Slots<V>) -> bool {
        if let Some(at) = levels(self.cascades.scanning).next() {
            self.scan_chunk(at, due);
            return true;
        }
        if let Some(at) = levels(self.cascades.resting).next() {
            if let Some(level) = &mut self.levels[at] {
                let nth = level.cascade.emptied;
                level.cascade.emptied += 1;
                self.empty_chunk(at, nth, due, |_| true);
            }
        }
        if !due.is_empty() {
            return true;
        }
        // The finest level comes first, because the clock must not leave its bucket before.
        let is_due = |at: &usize| self.earliest_resting(*at).is_some_and(|earliest| earliest <= to);
        let Some(at) = levels(self.cascades.resting).find(is_due) else { return false };
        if self.first().is_some_and(|(finer, index)| finer < at && span(self.now, finer, index).0 <= to) {
            return false;
        }
        let (_, end) = span(self.now, at, self.current(at) as usize % BUCKETS);
        self.set_now(end.min(to));
        if at > 1 {
            if let Some(level) = &mut self.levels[at] {
                level.cascade.scanned = level.cascade.emptied;
                level.cascade.earliest = u64::MAX;
                self.cascades.resting &= !(1 << at);
                self.cascades.scanning |= 1 << at;
            }
        }
        true
    }

    /// Performs step 1 of a cascade for the next chunk.
    fn scan_chunk(&mut self, at: usize, due: &mut Slots<V>) {
        let (now, finer) = (self.now, (at as u32 - 1) * BITS);
        let Some(level) = &mut self.levels[at] else { return };
        let (nth, mut earliest) = (level.cascade.scanned, level.cascade.earliest);
        level.cascade.scanned += 1;
        if level.cascade.scanned * CHUNK >= level.cascade.slots.len() {
            self.cascades.scanning &= !(1 << at);
            self.cascades.resting |= 1 << at;
        }
        self.empty_chunk(at, nth, due, |deadline| {
            let is_near = deadline <= now || (deadline ^ now) >> finer == 0;
            if !is_near {
                earliest = earliest.min(deadline);
            }
            is_near
        });
        if let Some(level) = &mut self.levels[at] {
            level.cascade.earliest = earliest;
        }
    }

    /// Moves the values of a chunk whose deadlines are `chosen` to finer levels, or to `due`.
    fn empty_chunk(&mut self, at: usize, nth: usize, due: &mut Slots<V>, mut chosen: impl FnMut(u64) -> bool) {
        let (finer, coarser) = self.levels.split_at_mut(at);
        let Some(Some(level)) = coarser.first_mut() else { return };
        let Some((chunk, _)) = level.cascade.slots.chunk_mut(nth * CHUNK) else { return };
        let (now, mut occupied, mut moved, mut expired) = (self.now, self.occupied, 0, 0);
        for slot in &mut chunk.slots {
            let deadline = slot.0;
            let Some(value) = slot.1.take_if(|_| chosen(deadline)) else { continue };
            let mut to = Location::NONE;
            if deadline > now {
                insert_into(finer, &mut occupied, now, (deadline, value), |_, location| to = location);
                moved += 1;
            } else {
                due.insert(deadline, value, |_, _| ());
                expired += 1;
            }
            slot.0 = to.to_bits();
        }
        self.occupied = occupied;
        // An owner who never asks may let it wrap round.
        self.cascades.moved = self.cascades.moved.wrapping_add(moved as u32);
        self.len -= expired;
        self.left_cascade(at, moved + expired);
    }

    /// Counts values that have left the cascade of a level.
    pub(super) fn left_cascade(&mut self, at: usize, values: usize) {
        let Some(level) = &mut self.levels[at] else { return };
        level.cascade.len -= values;
        if level.cascade.len == 0 {
            self.cascades.scanning &= !(1 << at);
            self.cascades.resting &= !(1 << at);
        }
    }

    /// Returns a lower bound of the deadlines in all cascades.
    #[cold]
    pub(super) fn earliest_in_cascades(&self) -> Option<u64> {
        if self.cascades.scanning != 0 {
            return Some(self.now);
        }
        levels(self.cascades.resting).filter_map(|at| self.earliest_resting(at)).min()
    }

    fn earliest_resting(&self, at: usize) -> Option<u64> {
        let is_resting = self.cascades.resting >> at & 1 == 1;
        self.levels[at].as_ref().filter(|_| is_resting).map(|level| level.cascade.earliest)
    }

    /// Iterates over the values in the cascades and their deadlines.
    pub(super) fn cascading_values(&self) -> impl Iterator<Item = (u64, &V)> {
        let cascades = levels(self.cascades.scanning | self.cascades.resting).filter_map(|at| self.levels[at].as_ref());
        cascades.flat_map(|level| level.cascade.slots.iter())
    }

    /// Returns the number of the bucket of a level in whose span `now` is.
    pub(super) fn current(&self, at: usize) -> u32 {
        id(at, (self.now >> (at as u32 * BITS)) as usize % BUCKETS)
    }

    /// Closes the cascades of some levels, in which no value is left.
    #[cold]
    #[inline(never)]
    fn close(&mut self, set: u32) {
        for at in levels(set) {
            let Some(level) = &mut self.levels[at] else { continue };
            debug_assert!(level.cascade.len == 0);
            self.cascades.slots -= level.cascade.slots.slots();
            self.discarded.push_bucket(level.cascade.slots.empty());
        }
        self.cascades.open &= !set;
    }
}

#[cfg(test)]
impl Cascades {
    /// Asserts that exactly the cascades of these levels have values.
    pub(super) fn check(&self, levels: u32) {
        assert_eq!((self.scanning | self.resting, self.scanning & self.resting), (levels, 0));
    }
}

#[cfg(test)]
impl Cascade<u32> {
    /// Returns the number of slots, and the positions, deadlines and values of those that have not
    /// left.
    pub(super) fn check(&self) -> (usize, Vec<(u32, u64, u32)>) {
        let at = |position| Some((position as u32, self.slots.get(position)?));
        let slots = (0..self.slots.len()).filter_map(at);
        let values: Vec<_> = slots.filter_map(|(position, slot)| Some((position, slot.0, slot.1?))).collect();
        assert_eq!(self.len, values.len());
        (self.slots.slots(), values)
    }

    pub(super) fn capacity(&self) -> usize {
        self.slots.capacity()
    }
}
