//! The hierarchical wheel: scheme 7 of Varghese & Lauck (1987), as in Kafka.
//!
//! The wheel reads a tick as a number of [`LEVELS`] digits of [`BITS`] bits. A deadline belongs to
//! the level of the highest digit in which it differs from `now`, and on that level to the bucket
//! of its own digit. At any time, the following holds:
//!
//! - The buckets before the current one, in whose span `now` is, are empty on every level, so
//!   nothing ever wraps round. No value is inserted into the current bucket. The values that it had
//!   belong to finer levels, to which a [cascade] moves them.
//! - All values of a level are due before those of the next level, and those of a bucket before
//!   those of the next bucket. So the first occupied bucket has the earliest deadline, and the
//!   cached minimum of that bucket is the next expiry.
//! - The levels cover all 64 bits, so there is no overflow list and no longest delay.
//!
//! `next_expiry` is the earliest deadline of a bucket and not the beginning of its span, so no
//! wake-up is needed only to cascade. When the clock jumps, only the bucket in whose span the jump
//! ends cascades. All values of earlier buckets are due.
//!
//! This module knows no clocks, keys or locks, and does no work per tick.

use super::bucket::{Bucket, OVERDUE};
use super::discarded::Discarded;
use super::location::{Location, Tracker};
use super::raw::RawWheel;
use super::slots::{Entry, Slots};
use cascade::{Cascade, Cascades, levels};
use forwarding::value_at;
use std::cell::Cell;

/// The number of bits of a tick that one level resolves. One word marks which of the 64 buckets of
/// a level are occupied.
const BITS: u32 = 6;
const BUCKETS: usize = 1 << BITS;
const LEVELS: usize = u64::BITS.div_ceil(BITS) as usize;

/// The hierarchical wheel without keys. The fields that insertions, removals and the clock write
/// come last and next to each other, so that only one cache line moves between CPUs.
#[repr(C)]
pub(crate) struct RawHierarchical<V, P> {
    tracker: P,
    /// Values that were due when they were inserted.
    overdue: Bucket<V>,
    discarded: Discarded<V>,
    cascades: Cascades,
    /// Each level is allocated when it is first needed.
    levels: Levels<V>,
    /// Bit n: level n is occupied.
    occupied: u32,
    now: u64,
    len: usize,
}

type Levels<V> = [Option<Box<Level<V>>>; LEVELS];

struct Level<V> {
    /// Bit n: bucket n is occupied.
    occupied: u64,
    buckets: [Bucket<V>; BUCKETS],
    /// The cascade of the current bucket.
    cascade: Cascade<V>,
}

impl<V> Level<V> {
    // Not inlined, because a new level needs room on the stack of each caller.
    #[cold]
    #[inline(never)]
    fn new() -> Box<Self> {
        let buckets = std::array::from_fn(|_| Bucket::new());
        Box::new(Level { occupied: 0, buckets, cascade: Cascade::new() })
    }
}

/// Returns the level of a deadline that is after `now`, and the index of its bucket.
#[inline]
fn locate(now: u64, deadline: u64) -> (usize, usize) {
    // The highest differing bit, in a form from which the compiler sees that the level exists.
    let level = ((u64::BITS - 1) ^ ((deadline ^ now) | 1).leading_zeros()) / BITS;
    (level as usize, (deadline >> (level * BITS)) as usize % BUCKETS)
}

/// Returns the first and the last tick of a bucket, seen from `now`.
#[inline]
fn span(now: u64, at: usize, index: usize) -> (u64, u64) {
    let shift = at as u32 * BITS;
    let lap = u64::MAX.checked_shl(shift + BITS).unwrap_or(0);
    let start = now & lap | (index as u64) << shift;
    (start, start | !(u64::MAX << shift))
}

/// Returns the number of a bucket.
#[inline]
fn id(at: usize, index: usize) -> u32 {
    (at * BUCKETS + index) as u32
}

/// Returns the bucket with this number.
#[inline(always)]
fn bucket_mut<'a, V>(levels: &'a mut Levels<V>, overdue: &'a mut Bucket<V>, id: u32) -> Option<&'a mut Bucket<V>> {
    match levels.get_mut(id as usize / BUCKETS) {
        Some(level) => Some(&mut level.as_mut()?.buckets[id as usize % BUCKETS]),
        None => (id == OVERDUE).then_some(overdue),
    }
}

/// Inserts a value that is not due into the bucket where it belongs as seen from `now`, and marks
/// the bucket and its level in `occupied`. Calls `placed` with the location.
#[inline(always)]
fn insert_into<V>(
    levels: &mut [Option<Box<Level<V>>>],
    occupied: &mut u32,
    now: u64,
    (deadline, value): Entry<V>,
    placed: impl FnOnce(&V, Location),
) {
    let (at, index) = locate(now, deadline);
    let level = levels[at].get_or_insert_with(Level::new);
    if level.buckets[index].push(id(at, index), deadline, value, placed) {
        level.occupied |= 1 << index;
        *occupied |= 1 << at;
    }
}

impl<V, P: Tracker<V>> RawHierarchical<V, P> {
    /// The offsets of the fields that several CPUs write.
    #[cfg(test)]
    #[allow(dead_code, reason = "for a test of the layout on 64 bits")]
    pub(crate) const WRITTEN_AT: [usize; 3] =
        [core::mem::offset_of!(Self, occupied), core::mem::offset_of!(Self, now), core::mem::offset_of!(Self, len)];

    pub(crate) fn new(tracker: P) -> Self {
        RawHierarchical {
            now: 0,
            len: 0,
            occupied: 0,
            levels: [const { None }; LEVELS],
            overdue: Bucket::new(),
            discarded: Discarded::new(),
            cascades: Cascades::default(),
            tracker,
        }
    }

    /// Inserts a value where it belongs as seen from `now`, without counting it.
    // `always`, here and below, because calls would add about 35 instructions to a pair.
    #[inline(always)]
    fn insert_uncounted(&mut self, deadline: u64, value: V) {
        if deadline <= self.now {
            self.overdue.push(OVERDUE, deadline, value, |value, location| self.tracker.moved(value, location));
            return;
        }
        let placed = |value: &V, location| self.tracker.moved(value, location);
        insert_into(&mut self.levels, &mut self.occupied, self.now, (deadline, value), placed);
    }

    /// Returns the level and the index of the first occupied bucket. It has the earliest deadline
    /// of all buckets.
    #[inline]
    fn first(&self) -> Option<(usize, usize)> {
        let at = self.occupied.trailing_zeros() as usize;
        let level = self.levels.get(at)?.as_deref()?;
        Some((at, level.occupied.trailing_zeros() as usize % BUCKETS))
    }

    /// Calls `visit` with the overdue values, those of the cascades and those of the first bucket,
    /// and then of each further bucket that may have a tick up to the one that `visit` returned
    /// last.
    pub(crate) fn visit_first(&self, mut visit: impl FnMut(&V) -> u64) {
        let last = Cell::new(u64::MAX);
        let levels = levels(self.occupied).filter_map(|at| self.levels[at].as_ref());
        let buckets = levels.flat_map(|level| &level.buckets).filter(|bucket| !bucket.slots.is_empty());
        let first = buckets.take_while(|bucket| bucket.earliest <= last.get());
        let overdue = self.overdue.slots.iter();
        for (tick, value) in overdue.chain(self.cascading_values()).chain(first.flat_map(|bucket| bucket.slots.iter()))
        {
            if tick <= last.get() {
                last.set(visit(value));
            }
        }
    }

    /// Removes a value from a bucket.
    #[inline(always)]
    fn remove_at(&mut self, location: Location, wanted: impl FnOnce(&V) -> bool) -> Option<V> {
        let bucket = bucket_mut(&mut self.levels, &mut self.overdue, location.bucket)?;
        let ((deadline, value), needs_upkeep) = bucket.remove(location.position, wanted)?;
        self.len -= 1;
        if needs_upkeep {
            self.keep_up(location, deadline);
        }
        Some(value)
    }

    /// Removes the value that was last reported at `location`, which is in the wheel. Does not read
    /// a value that needs no drop, because it may not be in the cache.
    #[inline]
    pub(crate) fn vacate(&mut self, location: Location) {
        let may_have_moved = self.cascade_of(location).is_some();
        let bucket = bucket_mut(&mut self.levels, &mut self.overdue, location.bucket);
        let Some(bucket) = bucket.filter(|_| !may_have_moved) else {
            self.remove(location, |_| true);
            return;
        };
        self.len -= 1;
        let chunk = bucket.slots.chunk_mut(location.position as usize);
        if chunk.is_some_and(|(chunk, position)| chunk.vacate(position)) {
            // The deadline is not known, so it may have been the earliest one.
            let removed = bucket.earliest;
            self.keep_up(location, removed);
        }
    }

    /// Keeps up a bucket after the removal of a value with the deadline `removed`.
    #[cold]
    #[inline(never)]
    fn keep_up(&mut self, location: Location, removed: u64) {
        let id = location.bucket;
        let Some(bucket) = bucket_mut(&mut self.levels, &mut self.overdue, id) else { return };
        bucket.keep_up(id, location.position, removed, &mut self.tracker, &mut self.discarded);
        if bucket.slots.is_empty() {
            self.unmark(id as usize / BUCKETS, id as usize % BUCKETS);
        }
    }

    /// Clears the mark of a bucket of a level that has become empty.
    fn unmark(&mut self, at: usize, index: usize) {
        if let Some(Some(level)) = self.levels.get_mut(at) {
            level.occupied &= !(1 << index);
            if level.occupied == 0 {
                self.occupied &= !(1 << at);
            }
        }
    }
}

impl<V, P: Tracker<V>> RawWheel<V> for RawHierarchical<V, P> {
    type Tracker = P;

    #[inline(always)]
    fn insert(&mut self, deadline: u64, value: V) {
        self.insert_uncounted(deadline, value);
        self.len += 1;
    }

    #[inline(always)]
    fn remove(&mut self, location: Location, wanted: impl Fn(&V) -> bool) -> Option<V> {
        match self.remove_at(location, &wanted) {
            None => self.remove_moved(location, wanted),
            removed => removed,
        }
    }

    fn fast_forward(&mut self, now: u64) {
        debug_assert!(self.len == 0);
        // Dropping many links at once would hold up the caller for several milliseconds.
        if self.has_many_forwards() {
            return self.forget_chunk();
        }
        self.set_now(self.now.max(now));
    }

    fn get(&self, location: Location) -> Option<(u64, &V)> {
        let location = self.find(location);
        value_at(&self.levels, &self.overdue, self.cascade_of(location).is_some(), location)
    }

    fn take_overdue(&mut self, due: &mut Slots<V>) {
        self.len -= self.overdue.slots.values();
        self.discarded.push_bucket(self.overdue.take(due));
    }

    fn take_next(&mut self, now: u64, due: &mut Slots<V>) -> bool {
        let to = self.now.max(now);
        if self.cascades.has_values() && self.step_cascade(to, due) {
            return true;
        }
        let next = self.first().map(|(at, index)| (at, index, span(self.now, at, index)));
        let Some((at, index, (_, end))) = next.filter(|(_, _, (start, _))| *start <= to) else {
            self.set_now(to);
            let has_upkeep = self.has_upkeep();
            if has_upkeep {
                self.forget_chunk();
            }
            return has_upkeep;
        };
        // The clock moves with the bucket. So a value that is inserted later and belongs into the
        // bucket is overdue, or belongs into a finer one.
        self.set_now(end.min(to));
        self.unmark(at, index);
        if end > to {
            self.begin_cascade(at, index, due);
        } else if let Some(level) = &mut self.levels[at] {
            self.len -= level.buckets[index].slots.values();
            self.discarded.push_bucket(level.buckets[index].take(due));
        }
        true
    }

    fn has_upkeep(&self) -> bool {
        // Values that are due soon go first. Their links are dropped anyway when the clock leaves
        // the bucket.
        let is_quiet = || self.earliest().is_none_or(|earliest| earliest > self.now.saturating_add(BUCKETS as u64));
        self.has_many_forwards() && is_quiet()
    }

    #[inline]
    fn discarded(&mut self) -> &mut Discarded<V> {
        &mut self.discarded
    }

    fn take_cascaded(&mut self) -> u64 {
        u64::from(std::mem::take(&mut self.cascades.moved))
    }

    fn earliest(&self) -> Option<u64> {
        let first = self.first().and_then(|(at, index)| Some(self.levels[at].as_ref()?.buckets[index].earliest));
        if self.cascades.has_values() { first.into_iter().chain(self.earliest_in_cascades()).min() } else { first }
    }

    fn has_overdue(&self) -> bool {
        !self.overdue.slots.is_empty()
    }

    fn now(&self) -> u64 {
        self.now
    }

    fn len(&self) -> usize {
        self.len
    }

    fn drain(&mut self) -> impl Iterator<Item = Entry<V>> {
        (self.len, self.occupied, self.cascades) = (0, 0, Cascades::default());
        let overdue = std::mem::replace(&mut self.overdue, Bucket::new()).slots;
        let levels = std::mem::take(&mut self.levels).into_iter().flatten();
        let slots = levels.flat_map(|level| {
            let Level { buckets, cascade, .. } = *level;
            [cascade.slots].into_iter().chain(buckets.into_iter().map(|bucket| bucket.slots))
        });
        [overdue].into_iter().chain(slots).flat_map(Slots::into_iter)
    }

    fn tracker(&self) -> &P {
        &self.tracker
    }

    fn tracker_mut(&mut self) -> &mut P {
        &mut self.tracker
    }
}

mod cascade;
mod forwarding;

#[cfg(test)]
mod tests;
