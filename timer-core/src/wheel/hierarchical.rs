//! The hierarchical wheel: scheme 7 of Varghese & Lauck (1987), as in Kafka.
//!
//! The wheel reads a tick as a number of [`LEVELS`] digits of [`BITS`] bits. A deadline belongs to
//! the level of the highest digit in which it differs from `now`, and on that level to the bucket
//! of its digit. At any time, the following holds:
//!
//! - The buckets before the current one, in whose span `now` is, are empty on every level, so
//!   nothing ever wraps round. No value is inserted into the current bucket. The values that it had
//!   belong to finer levels, to which a [cascade] moves them step by step.
//! - All values of a level are due before those of the next level, and those of a bucket before
//!   those of the next bucket. So the first occupied bucket has the earliest deadline, and the
//!   cached minimum of that bucket is the next expiry.
//! - The levels cover all 64 bits, so there is no overflow list and no longest delay.
//!
//! `next_deadline` is the earliest deadline of a bucket and not the beginning of its span, so no
//! wake-up is needed only to cascade. When the clock jumps, only the bucket in whose span the jump
//! ends cascades. All values of earlier buckets are due.
//!
//! This module knows no clocks, keys or locks, and does no work per tick.

use super::bucket::{Bucket, Dated, OVERDUE};
use super::discarded::Discarded;
use super::location::{Location, Tracker};
use super::raw::{Base, BucketParts, BucketSpan, RawWheel};
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
    /// Each level is allocated when it is first needed.
    levels: [Option<Box<Level<V>>>; LEVELS],
    cascades: Cascades,
    /// The number of values that were moved and that the owner has not counted yet.
    cascaded: u32,
    base: Base<V, P>,
    /// Bit n: level n is occupied.
    occupied: u32,
}

struct Level<V> {
    /// Bit n: bucket n is occupied. The bucket in whose span `now` is never is.
    occupied: u64,
    buckets: [Bucket<V>; BUCKETS],
    /// The next chunk that the cascade of the current bucket scans.
    scanned: usize,
    /// The next chunk that the cascade empties.
    emptied: usize,
}

impl<V> Level<V> {
    // Not inlined, because a new level needs room on the stack of each caller.
    #[cold]
    #[inline(never)]
    fn new(at: usize) -> Box<Self> {
        let buckets = std::array::from_fn(|index| Bucket::new(number(at, index)));
        Box::new(Level { occupied: 0, buckets, scanned: 0, emptied: 0 })
    }
}

/// The levels whose current bucket has values, one bit each.
#[derive(Default)]
struct Cascades {
    /// Those that are being scanned.
    scanning: u32,
    /// Those that have been scanned.
    resting: u32,
}

impl Cascades {
    /// Returns the levels whose cascades have values.
    #[inline]
    fn all(&self) -> u32 {
        self.scanning | self.resting
    }

    /// Replaces the phase of the cascade of a level.
    fn set(&mut self, at: usize, is_scanning: bool, is_resting: bool) {
        self.scanning = self.scanning & !(1 << at) | u32::from(is_scanning) << at;
        self.resting = self.resting & !(1 << at) | u32::from(is_resting) << at;
    }
}

/// Iterates over the levels in a set.
fn levels(set: u32) -> impl Iterator<Item = usize> {
    (0..LEVELS).take_while(move |at| set >> at != 0).filter(move |at| set >> at & 1 == 1)
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
fn number(at: usize, index: usize) -> u32 {
    (at * BUCKETS + index) as u32
}

/// Inserts a value that is not due into the bucket where it belongs as seen from `now`, and marks
/// the bucket and its level in `occupied`.
// `always`, here and below, because calls would add about 35 instructions to a pair.
#[inline(always)]
fn insert_into<V>(
    levels: &mut [Option<Box<Level<V>>>],
    occupied: &mut u32,
    now: u64,
    dated: Dated<V>,
    tracker: &mut impl Tracker<V>,
    discarded: &mut Discarded<V>,
) {
    let (at, index) = locate(now, dated.0);
    let level = levels[at].get_or_insert_with(|| Level::new(at));
    if level.buckets[index].push(dated, tracker, discarded) {
        level.occupied |= 1 << index;
        *occupied |= 1 << at;
    }
}

impl<V, P: Tracker<V>> RawHierarchical<V, P> {
    /// The offsets of the fields that several CPUs write.
    #[cfg(all(test, not(timer_loom)))]
    #[allow(dead_code, reason = "for a test of the layout on 64 bits")]
    pub(crate) const WRITTEN_AT: [usize; 3] = [
        core::mem::offset_of!(Self, occupied),
        core::mem::offset_of!(Self, base) + core::mem::offset_of!(Base<V, P>, now),
        core::mem::offset_of!(Self, base) + core::mem::offset_of!(Base<V, P>, len),
    ];

    pub(crate) fn new(tracker: P) -> Self {
        RawHierarchical {
            levels: [const { None }; LEVELS],
            cascades: Cascades::default(),
            cascaded: 0,
            base: Base::new(tracker),
            occupied: 0,
        }
    }

    /// Returns the level and the index of the first occupied bucket. It has the earliest deadline
    /// of all buckets.
    #[inline]
    fn first(&self) -> Option<(usize, usize)> {
        let at = self.occupied.trailing_zeros() as usize;
        let level = self.levels.get(at)?.as_deref()?;
        Some((at, level.occupied.trailing_zeros() as usize % BUCKETS))
    }

    /// Calls `each` with the overdue values, those of the cascades and those of the first bucket,
    /// and then of each further bucket that may have a tick up to the one that `each` returned
    /// last.
    pub(crate) fn scan_first(&self, mut each: impl FnMut(&V) -> u64) {
        let last = Cell::new(u64::MAX);
        let levels_in_order = levels(self.occupied).filter_map(|at| self.levels[at].as_deref());
        let is_marked = |level: &Level<V>, index: usize| level.occupied >> index & 1 == 1;
        let buckets = levels_in_order.flat_map(|level| {
            level
                .buckets
                .iter()
                .enumerate()
                .filter_map(move |(index, bucket)| is_marked(level, index).then_some(bucket))
        });
        let first = buckets.take_while(|bucket| bucket.earliest <= last.get());
        let cascading = levels(self.cascades.all()).filter_map(|at| self.current_bucket(at));
        for (tick, value) in
            [&self.base.overdue].into_iter().chain(cascading).chain(first).flat_map(|bucket| bucket.iter())
        {
            if tick <= last.get() {
                last.set(each(value));
            }
        }
    }

    /// Removes the value that was last reported at `location`, if it is still in the wheel. Does
    /// not read the value, because it may not be in the cache. Returns `false` if it has left.
    ///
    /// The answer is right until the first step after the one in which the value has left. Until
    /// then no other value is at that location:
    ///
    /// - If the whole bucket was taken, its generation has changed.
    /// - If the value has left in a cascade, its slot is vacant. Nothing is inserted into the
    ///   bucket of a cascade. When the bucket is empty, its generation changes.
    #[inline]
    pub(crate) fn vacate(&mut self, location: Location) -> bool {
        self.vacate_if(location, || true)
    }

    /// As [`vacate`](Self::vacate), but only if `may`, which is called if the value is still in the
    /// wheel, returns `true`.
    #[inline]
    pub(crate) fn vacate_if(&mut self, location: Location, may: impl FnOnce() -> bool) -> bool {
        let Some((bucket, ..)) = self.bucket_mut(location.number()) else { return false };
        if bucket.name != location.bucket {
            return false;
        }
        let Some(needs_upkeep) = bucket.vacate(location.position, may) else { return false };
        // The deadline is not known, so it may have been the earliest one.
        let removed = bucket.earliest;
        self.base.len -= 1;
        if needs_upkeep {
            self.keep_up(location, removed);
        }
        true
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

impl<V, P: Tracker<V>> RawWheel for RawHierarchical<V, P> {
    type Value = V;
    type Tracker = P;

    #[inline(always)]
    fn insert(&mut self, deadline: u64, value: V) {
        self.base.len += 1;
        if deadline <= self.base.now {
            return self.base.insert_overdue((deadline, value));
        }
        let Base { tracker, discarded, now, .. } = &mut self.base;
        insert_into(&mut self.levels, &mut self.occupied, *now, (deadline, value), tracker, discarded);
    }

    #[inline]
    fn bucket(&self, number: u32) -> Option<&Bucket<V>> {
        match self.levels.get(number as usize / BUCKETS) {
            Some(level) => Some(&level.as_ref()?.buckets[number as usize % BUCKETS]),
            None => (number == OVERDUE).then_some(&self.base.overdue),
        }
    }

    fn spans(&self) -> impl Iterator<Item = BucketSpan> {
        let marks = |at: usize| self.levels[at].as_deref().map_or(0, |level| level.occupied);
        let indices = move |at| (0..BUCKETS).filter(move |index| marks(at) >> index & 1 == 1);
        let occupied = levels(self.occupied).flat_map(move |at| indices(at).map(move |index| (at, index)));
        let cascading = levels(self.cascades.all()).map(|at| (at, self.current(at)));
        let of_levels = cascading.chain(occupied).filter_map(|(at, index)| {
            let bucket = &self.levels[at].as_deref()?.buckets[index];
            BucketSpan::new(number(at, index), span(self.base.now, at, index), bucket)
        });
        BucketSpan::new(OVERDUE, (0, self.base.now), &self.base.overdue).into_iter().chain(of_levels)
    }

    #[inline(always)]
    fn bucket_mut(&mut self, number: u32) -> Option<BucketParts<'_, V, P>> {
        let Base { tracker, overdue, discarded, .. } = &mut self.base;
        let bucket = match self.levels.get_mut(number as usize / BUCKETS) {
            Some(level) => &mut level.as_mut()?.buckets[number as usize % BUCKETS],
            None => Some(overdue).filter(|_| number == OVERDUE)?,
        };
        Some((bucket, tracker, discarded))
    }

    #[cold]
    #[inline(never)]
    fn keep_up(&mut self, location: Location, removed: u64) {
        let number = location.number();
        if let Some(at) = self.cascade_of(number) {
            return self.keep_up_cascade(at, location.position);
        }
        let Some((bucket, tracker, discarded)) = self.bucket_mut(number) else { return };
        bucket.keep_up(location.position, removed, tracker, discarded);
        if bucket.is_empty() {
            self.unmark(number as usize / BUCKETS, number as usize % BUCKETS);
        }
    }

    fn take_next(&mut self, now: u64, due: &mut Bucket<V>) -> bool {
        let to = self.base.now.max(now);
        if self.cascades.all() != 0 && self.step_cascade(to, due) {
            return true;
        }
        let next = self.first().map(|(at, index)| (at, index, span(self.base.now, at, index)));
        let Some((at, index, (_, end))) = next.filter(|(_, _, (start, _))| *start <= to) else {
            self.base.now = to;
            return false;
        };
        // The clock moves with the bucket. So a value that is inserted later and belongs into the
        // bucket is overdue, or belongs into a finer one.
        self.base.now = end.min(to);
        self.unmark(at, index);
        // The values of a coarse bucket often have one deadline, at which the owner calls this.
        let bucket = self.levels[at].as_mut().map(|level| &mut level.buckets[index]);
        if let Some(bucket) = bucket.filter(|bucket| end <= to || bucket.is_due(to)) {
            self.base.len -= bucket.take(due, &mut self.base.discarded);
        } else {
            self.begin_cascade(at, due);
        }
        true
    }

    fn take_cascaded(&mut self) -> u64 {
        u64::from(std::mem::take(&mut self.cascaded))
    }

    fn earliest(&self) -> Option<u64> {
        let first = self.first().and_then(|(at, index)| Some(self.levels[at].as_ref()?.buckets[index].earliest));
        if self.cascades.all() == 0 { first } else { first.into_iter().chain(self.earliest_in_cascades()).min() }
    }

    fn drain(&mut self) -> impl Iterator<Item = Dated<V>> {
        self.base.len = 0;
        self.occupied = 0;
        self.cascades = Cascades::default();
        let overdue = self.base.overdue.take_all();
        let levels = std::mem::take(&mut self.levels).into_iter().flatten();
        let buckets = levels.flat_map(|level| level.buckets);
        overdue.chain(buckets.flat_map(|mut bucket| bucket.take_all()))
    }

    fn base(&self) -> &Base<V, P> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<V, P> {
        &mut self.base
    }
}

mod cascade;

#[cfg(all(test, not(timer_loom)))]
mod tests;
