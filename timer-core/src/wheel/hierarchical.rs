//! The hierarchical wheel: scheme 7 of Varghese & Lauck (1987), as in Kafka.
//!
//! A tick is read as a number of [`LEVELS`] digits of [`BITS`] bits. A deadline belongs to the level of the highest
//! digit in which it differs from `now`, and there to the slot of its own digit. From this follows, at any time:
//!
//! - the slots before the one `now` is in are empty, on every level: nothing ever wraps round; the one it is in takes nothing in, and
//!   has only what is still to be carried down;
//! - everything on a level is due before everything on the next one, and likewise slot by slot within a level: the
//!   first occupied bucket holds the earliest deadline, and its cached minimum is the next expiry;
//! - all 64 bits are covered: there is no overflow list and no longest delay.
//!
//! When `now` enters a slot of an upper level, what is in there and not due yet belongs to a finer level: it is carried down ([`carry`]).
//! Since `next_expiry` names a bucket's earliest deadline and not the slot's beginning, no wake-up is needed merely for that: a jump
//! does it for the one slot in which it ends, and hands out what lies before that slot without sorting it first.
//!
//! Absent here: clocks, keys, locks, and any work per tick.

use super::bucket::{Bucket, Entry, OVERDUE, Place};
use super::location::{Location, Tracker};
use super::raw::RawWheel;
use carry::{Carrying, EMPTIED, Entered, TIDIED};

/// Bits of a tick that one level resolves. The 64 slots of a level are marked in one word.
const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = u64::BITS.div_ceil(BITS) as usize;

/// The hierarchical wheel below its keys. What an insertion, a removal and the clock all write comes last, and next to each other:
/// between CPUs, that is one cache line.
#[repr(C)]
pub(crate) struct RawHierarchical<V, P> {
    tracker: P,
    /// What was due when it came in: all deadlines are <= now.
    overdue: Bucket<V>,
    carrying: Carrying,
    /// Arrays to be freed, which takes time, by the owner.
    emptied: Vec<Vec<Place<V>>>,
    /// Each is allocated when it is first needed.
    levels: Levels<V>,
    /// Bit n: level n is not empty.
    occupied: u32,
    now: u64,
    len: usize,
}

type Levels<V> = [Option<Box<Level<V>>>; LEVELS];

struct Level<V> {
    /// Bit n: bucket n is not empty.
    occupied: u64,
    buckets: [Bucket<V>; SLOTS],
    entered: Entered,
}

impl<V> Level<V> {
    /// Not inlined: it needs room on the stack that each caller that links would have to make.
    #[cold]
    #[inline(never)]
    fn new() -> Box<Self> {
        Box::new(Level { occupied: 0, buckets: std::array::from_fn(|_| Bucket::new()), entered: Entered::default() })
    }
}

/// The level and slot of a deadline that is beyond `now`.
#[inline]
fn place(now: u64, deadline: u64) -> (usize, usize) {
    // The highest bit in which they differ, in a form by which the compiler sees that there is such a level.
    let level = ((u64::BITS - 1) ^ ((deadline ^ now) | 1).leading_zeros()) / BITS;
    (level as usize, (deadline >> (level * BITS)) as usize % SLOTS)
}

/// First and last tick of a slot, seen from `now`.
#[inline]
fn span(now: u64, level: usize, slot: usize) -> (u64, u64) {
    let shift = level as u32 * BITS;
    let lap = u64::MAX.checked_shl(shift + BITS).unwrap_or(0);
    let start = now & lap | (slot as u64) << shift;
    (start, start | !(u64::MAX << shift))
}

/// Puts a value that is not due into the bucket where it belongs as seen from `now`, on the level that is returned.
#[inline(always)]
fn link_in<V>(
    levels: &mut [Option<Box<Level<V>>>],
    now: u64,
    deadline: u64,
    value: V,
    tracker: &mut impl Tracker<V>,
) -> usize {
    let (at, slot) = place(now, deadline);
    let level = levels[at].get_or_insert_with(Level::new);
    level.buckets[slot].push(id(at, slot), deadline, value, tracker);
    level.occupied |= 1 << slot;
    at
}

/// A bucket of a level, by its number.
fn bucket_of<V>(levels: &Levels<V>, id: u32) -> Option<&Bucket<V>> {
    let level = levels.get(id as usize / SLOTS)?.as_deref()?;
    Some(&level.buckets[id as usize % SLOTS])
}

/// The number of a bucket.
#[inline]
fn id(level: usize, slot: usize) -> u32 {
    (level * SLOTS + slot) as u32
}

impl<V, P: Tracker<V>> RawHierarchical<V, P> {
    /// Where the fields are that are written by turns.
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
            carrying: Carrying::default(),
            emptied: Vec::new(),
            tracker,
        }
    }

    /// Puts a value where it belongs as seen from `now`. Does not count it.
    // `always`, here and below: as calls they take 35 of a pair's 650 instructions.
    #[inline(always)]
    fn link(&mut self, deadline: u64, value: V) {
        if deadline <= self.now {
            self.overdue.push(OVERDUE, deadline, value, &mut self.tracker);
            return;
        }
        self.occupied |= 1 << link_in(&mut self.levels, self.now, deadline, value, &mut self.tracker);
    }

    /// Level and slot of the first occupied bucket, which holds the earliest deadline that is not overdue.
    #[inline]
    fn first(&self) -> Option<(usize, usize)> {
        let at = self.occupied.trailing_zeros() as usize;
        let level = self.levels.get(at)?.as_deref()?;
        Some((at, level.occupied.trailing_zeros() as usize % SLOTS))
    }

    /// Returns the value that was last reported at `location`, if it is still linked, for changing it.
    pub(super) fn get_mut(&mut self, location: Location) -> Option<&mut V> {
        let location = self.resolve(location);
        let id = location.bucket();
        let bucket = if id == OVERDUE {
            &mut self.overdue
        } else {
            &mut self.levels.get_mut(id as usize / SLOTS)?.as_mut()?.buckets[id as usize % SLOTS]
        };
        bucket.get_mut(location.position())
    }

    /// Returns the value of the lowest rank among those with the earliest deadline. What is overdue comes
    /// first. Reads all values of the first bucket, and of the buckets that are being carried down.
    pub(super) fn first_value(&self, rank: impl Fn(&V) -> u64) -> Option<&V> {
        if self.has_overdue() {
            return self.overdue.values().map(|(_, value)| value).min_by_key(|value| rank(value));
        }
        let first = self.first().map(|(at, slot)| id(at, slot));
        let buckets = first.into_iter().chain(self.entered_buckets()).filter_map(|id| self.bucket(id));
        let earliest = buckets.flat_map(Bucket::values).min_by_key(|(deadline, value)| (*deadline, rank(value)));
        earliest.map(|(_, value)| value)
    }

    fn bucket(&self, id: u32) -> Option<&Bucket<V>> {
        if id == OVERDUE { Some(&self.overdue) } else { bucket_of(&self.levels, id) }
    }

    /// Removes from a bucket of a level.
    #[inline(always)]
    fn remove_at(&mut self, location: Location, wanted: impl FnOnce(&V) -> bool) -> Option<V> {
        let id = location.bucket();
        let (at, slot) = (id as usize / SLOTS, id as usize % SLOTS);
        let bucket = &mut self.levels.get_mut(at)?.as_mut()?.buckets[slot];
        let (deadline, value) = bucket.remove(location.position(), wanted)?;
        self.len -= 1;
        if bucket.is_sparse() {
            self.compact(id, deadline);
        }
        Some(value)
    }

    /// Something due at `left` was removed from a bucket, in which few are left.
    #[inline(never)]
    fn compact(&mut self, id: u32, left: u64) {
        let (at, slot, was_entered) = (id as usize / SLOTS, id as usize % SLOTS, self.was_entered(id));
        let Some(level) = &mut self.levels[at] else { return };
        let bucket = &mut level.buckets[slot];
        if !was_entered {
            bucket.compact(id, left, &mut self.tracker);
            if !bucket.is_empty() {
                return;
            }
            self.unmark(at, slot);
        } else if bucket.is_vacant() {
            self.carrying.none_rests(at);
        }
        if self.leaves_much() {
            self.tidy(TIDIED);
            self.emptied.clear();
        }
    }

    /// The bucket was emptied.
    fn unmark(&mut self, at: usize, slot: usize) {
        if let Some(level) = &mut self.levels[at] {
            level.occupied &= !(1 << slot);
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
        self.link(deadline, value);
        self.len += 1;
    }

    #[inline(always)]
    fn remove(&mut self, location: Location, wanted: impl Fn(&V) -> bool) -> Option<V> {
        match self.remove_at(location, &wanted) {
            None => self.remove_elsewhere(location, wanted),
            removed => removed,
        }
    }

    fn wind(&mut self, now: u64) {
        debug_assert!(self.len == 0);
        self.set_now(self.now.max(now));
        self.emptied.clear();
    }

    fn get(&self, location: Location) -> Option<(u64, &V)> {
        let location = self.resolve(location);
        self.bucket(location.bucket())?.get(location.position())
    }

    fn take_overdue(&mut self, out: &mut Vec<Place<V>>) {
        self.len -= self.overdue.len();
        self.overdue.swap_out(out);
    }

    fn take_next(&mut self, now: u64, out: &mut Vec<Place<V>>) -> bool {
        let to = self.now.max(now);
        if self.carrying.is_on() && self.carry_on(to, out) {
            return true;
        }
        let next = self.first().map(|(at, slot)| (at, slot, span(self.now, at, slot)));
        let Some((at, slot, (_, end))) = next.filter(|(_, _, (start, _))| *start <= to) else {
            self.set_now(to);
            let untidy = self.is_untidy();
            if untidy {
                self.tidy(EMPTIED);
            }
            return untidy;
        };
        // The clock goes with it, so that what is inserted meanwhile and belongs into this bucket is overdue, or is put into a finer one.
        self.set_now(end.min(to));
        self.unmark(at, slot);
        if end > to {
            self.enter(at, slot, out);
        } else if let Some(level) = &mut self.levels[at] {
            self.len -= level.buckets[slot].len();
            level.buckets[slot].swap_out(out);
        }
        true
    }

    fn is_untidy(&self) -> bool {
        // What is due soon goes first; and soon the clock leaves the slot.
        self.leaves_much() && self.earliest().is_none_or(|earliest| earliest > self.now.saturating_add(SLOTS as u64))
    }

    fn take_emptied(&mut self) -> Vec<Vec<Place<V>>> {
        std::mem::take(&mut self.emptied)
    }

    fn take_carried(&mut self) -> u64 {
        std::mem::take(&mut self.carrying.carried)
    }

    fn earliest(&self) -> Option<u64> {
        let first = self.first().and_then(|(at, slot)| Some(self.levels[at].as_ref()?.buckets[slot].earliest()));
        if self.carrying.is_on() { first.into_iter().chain(self.earliest_of_the_rest()).min() } else { first }
    }

    fn has_overdue(&self) -> bool {
        !self.overdue.is_empty()
    }

    fn now(&self) -> u64 {
        self.now
    }

    fn len(&self) -> usize {
        self.len
    }

    fn drain(&mut self, out: &mut Vec<Entry<V>>) {
        out.reserve(self.len);
        let mut keep = |places: Vec<Place<V>>| {
            places
                .into_iter()
                .filter_map(|(deadline, value)| Some((deadline, value?)))
                .for_each(|entry| out.push(entry));
        };
        let mut taken = Vec::new();
        self.overdue.swap_out(&mut taken);
        keep(taken);
        for level in std::mem::replace(&mut self.levels, [const { None }; LEVELS]).into_iter().flatten() {
            for mut bucket in level.buckets {
                let mut taken = Vec::new();
                bucket.swap_out(&mut taken);
                keep(taken);
            }
        }
        (self.len, self.occupied, self.carrying) = (0, 0, Carrying::default());
    }

    fn tracker(&self) -> &P {
        &self.tracker
    }

    fn tracker_mut(&mut self) -> &mut P {
        &mut self.tracker
    }
}

mod carry;

#[cfg(test)]
mod tests;
