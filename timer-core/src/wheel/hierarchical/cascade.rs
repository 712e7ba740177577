//! The cascade: moving the values of a bucket to finer levels once `now` is in the bucket's span.
//!
//! The values stay in the bucket, no longer marked as occupied, until the cascade moves
//! them. It fetches the values of a chunk into the cache before it reports their new locations,
//! because most of them were not used for a long time.
//!
//! *Short steps.* A bucket of few chunks is emptied at once. The cascade of a longer one works on
//! some chunks at a time:
//!
//! 1. It scans all chunks, one at each step. It takes out the values that are due and moves those
//!    that are due before the next bucket of the next finer level begins. It notes the earliest
//!    deadline of the values that remain. (On level 1 this pass is left out, because all values are
//!    due within the next 64 ticks.)
//! 2. It empties one chunk whenever the wheel takes a step. No step is taken for this alone. If a
//!    remaining value becomes due before all chunks are empty, the chunks that are left are scanned
//!    again, or, on level 1, emptied.
//!
//! A removal that leaves few values in a chunk empties it too.

use super::{BITS, BUCKETS, LEVELS, RawHierarchical, insert_into, levels, number, span};
use crate::wheel::bucket::{Bucket, CHUNK, CHUNKS_PER_STEP};
use crate::wheel::location::Tracker;
use crate::wheel::raw::{Base, RawWheel};

impl<V, P: Tracker<V>> RawHierarchical<V, P> {
    /// Returns the index of the bucket of a level in whose span `now` is.
    #[inline]
    pub(super) fn current(&self, at: usize) -> usize {
        (self.base.now >> (at as u32 * BITS)) as usize % BUCKETS
    }

    /// Returns the bucket of a level in whose span `now` is.
    pub(super) fn current_bucket(&self, at: usize) -> Option<&Bucket<V>> {
        Some(&self.levels[at].as_deref()?.buckets[self.current(at)])
    }

    /// Returns the level of a bucket whose values are cascading.
    pub(super) fn cascade_of(&self, bucket: u32) -> Option<usize> {
        let at = bucket as usize / BUCKETS;
        (at < LEVELS && self.cascades.all() >> at & 1 == 1 && bucket == number(at, self.current(at))).then_some(at)
    }

    /// Begins the cascade of a bucket in whose span `now` is and which is not marked as occupied.
    pub(super) fn begin_cascade(&mut self, at: usize, due: &mut Bucket<V>) {
        let index = self.current(at);
        let Some(level) = &mut self.levels[at] else { return };
        level.emptied = 0;
        if !level.buckets[index].is_one_step() {
            return self.scan_again(at);
        }
        self.cascades.set(at, false, true);
        self.empty_next_chunks(at, due);
    }

    /// Scans all chunks of a cascade, unless all of their values are due soon.
    fn scan_again(&mut self, at: usize) {
        let index = self.current(at);
        let is_scanning = at > 1;
        let Some(level) = &mut self.levels[at] else { return };
        if is_scanning {
            level.scanned = level.emptied;
            level.buckets[index].earliest = u64::MAX;
        }
        self.cascades.set(at, is_scanning, !is_scanning);
    }

    /// Takes a step of a cascade on the way to `to`. Returns `false` if there was nothing to do, or
    /// nothing that is due by then.
    #[cold]
    #[inline(never)]
    pub(super) fn step_cascade(&mut self, to: u64, due: &mut Bucket<V>) -> bool {
        if let Some(at) = levels(self.cascades.scanning).next() {
            self.scan_next_chunks(at, due);
            return true;
        }
        if let Some(at) = levels(self.cascades.resting).next() {
            self.empty_next_chunks(at, due);
        }
        if !due.is_empty() {
            return true;
        }
        // The finest level comes first, because the clock must not leave its bucket before.
        let is_due = |at: &usize| self.current_bucket(*at).is_some_and(|bucket| bucket.earliest <= to);
        let Some(at) = levels(self.cascades.resting).find(is_due) else { return false };
        let now = self.base.now;
        if self.first().is_some_and(|(finer, index)| finer < at && span(now, finer, index).0 <= to) {
            return false;
        }
        let (_, end) = span(now, at, self.current(at));
        self.base.now = end.min(to);
        self.scan_again(at);
        true
    }

    /// Performs step 1 of a cascade for the next chunks.
    fn scan_next_chunks(&mut self, at: usize, due: &mut Bucket<V>) {
        let is_scanning = |wheel: &Self| wheel.cascades.scanning >> at & 1 == 1;
        let mut chunks = 0..CHUNKS_PER_STEP;
        while is_scanning(self) && chunks.next().is_some() {
            self.scan_chunk(at, due);
        }
    }

    fn scan_chunk(&mut self, at: usize, due: &mut Bucket<V>) {
        let now = self.base.now;
        let index = self.current(at);
        let finer = (at as u32 - 1) * BITS;
        let Some(level) = &mut self.levels[at] else { return };
        let bucket = &level.buckets[index];
        let number = bucket.next_chunk(level.scanned);
        level.scanned = number + 1;
        if level.scanned >= bucket.chunks() {
            self.cascades.set(at, false, true);
        }
        self.move_chosen(at, number, due, |deadline| deadline <= now || (deadline ^ now) >> finer == 0);
    }

    /// Performs step 2 of a cascade for the next chunks.
    fn empty_next_chunks(&mut self, at: usize, due: &mut Bucket<V>) {
        let is_resting = |wheel: &Self| wheel.cascades.resting >> at & 1 == 1;
        let mut chunks = 0..CHUNKS_PER_STEP;
        while is_resting(self) && chunks.next().is_some() {
            self.empty_next_chunk(at, due);
        }
    }

    fn empty_next_chunk(&mut self, at: usize, due: &mut Bucket<V>) {
        let index = self.current(at);
        let Some(level) = &mut self.levels[at] else { return };
        let number = level.buckets[index].next_chunk(level.emptied);
        level.emptied = number + 1;
        self.empty_chunk(at, number, due);
    }

    /// Moves all values of a chunk, and gives up its memory.
    fn empty_chunk(&mut self, at: usize, number: usize, due: &mut Bucket<V>) {
        self.move_chosen(at, number, due, |_| true);
        let index = self.current(at);
        let is_empty = self.cascades.all() >> at & 1 == 0;
        let Some(level) = self.levels[at].as_mut().filter(|_| !is_empty) else { return };
        let mut chunk = level.buckets[index].take_chunk(number, &mut self.base.discarded);
        self.base.discarded.push_slots(chunk.take_slots());
    }

    /// Moves the values of a chunk whose deadlines are `chosen` to finer levels, or to `due`.
    fn move_chosen(&mut self, at: usize, number: usize, due: &mut Bucket<V>, chosen: impl Fn(u64) -> bool) {
        let index = self.current(at);
        let (finer, coarser) = self.levels.split_at_mut(at);
        let Some(Some(level)) = coarser.first_mut() else { return };
        let bucket = &mut level.buckets[index];
        let Base { tracker, discarded, now, .. } = &mut self.base;
        let now = *now;
        let mut occupied = self.occupied;
        let mut moved = 0;
        let mut expired = 0;
        bucket.extract(number, chosen, P::prefetch, |dated| {
            if dated.0 > now {
                insert_into(finer, &mut occupied, now, dated, tracker, discarded);
                moved += 1;
            } else {
                due.insert(dated, discarded, |_, _| ());
                expired += 1;
            }
        });
        if bucket.values == 0 {
            bucket.give_up(discarded);
            bucket.begin_generation();
            self.cascades.set(at, false, false);
        }
        self.occupied = occupied;
        // An owner who never asks may let it wrap round.
        self.cascaded = self.cascaded.wrapping_add(moved);
        self.base.len -= expired;
    }

    /// Empties a sparse chunk of a cascade after a removal. Values that are due become overdue.
    #[cold]
    pub(super) fn keep_up_cascade(&mut self, at: usize, position: u32) {
        let mut due = Bucket::default();
        self.empty_chunk(at, position as usize / CHUNK, &mut due);
        due.drain(|chunk| chunk.drain().for_each(|(deadline, value)| self.insert(deadline, value)));
        due.give_up(&mut self.base.discarded);
    }

    /// Returns a lower bound of the deadlines in all cascades.
    #[cold]
    pub(super) fn earliest_in_cascades(&self) -> Option<u64> {
        if self.cascades.scanning != 0 {
            return Some(self.base.now);
        }
        levels(self.cascades.resting).filter_map(|at| Some(self.current_bucket(at)?.earliest)).min()
    }
}
