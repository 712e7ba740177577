//! Carrying down (cascading): what happens to a bucket of an upper level when `now` enters its slot.
//!
//! *No value is told.* To tell a value its new location is to fetch it from the memory, though most leave by the clock soon after, for
//! which no location is asked. Instead, the place it has left says where it went. A value that is looked for where it was last
//! told to be, and is not there, is where that place says, or where the place on a finer level says that is named there.
//!
//! *No step is long.* A short bucket is emptied at once. A long one is
//!
//! 1. read, [`READ`] places at a step. What is due leaves; what is due before the next slot of the next finer level begins is carried
//!    down; the earliest of the rest is noted. (Not on level 1, where all is due within the next ticks.)
//! 2. emptied from then on, [`EMPTIED`] places with each step that the wheel does anyway. If the earliest of the rest is due before that
//!    is done, the rest is read again; on level 1, it is emptied.
//!
//! From the moment `now` enters, nothing is put into the bucket, and no value is moved within it. When the clock leaves the slot, nothing
//! that was in the bucket is in the wheel any more, and its array is freed: at most one per level says where its values went. If few of
//! them are left before that, these are told where they are, and the array goes place by place ([`tidy`](RawHierarchical::tidy)).

use super::{BITS, LEVELS, RawHierarchical, SLOTS, bucket_of, id, link_in, span};
use crate::wheel::bucket::{OVERDUE, Place};
use crate::wheel::location::{Location, Tracker};
use std::ops::Range;

/// So many places are read at a step: some 30 us.
pub(super) const READ: usize = pick(8, 1 << 14);

/// So many places are emptied at a step: some 40 us.
pub(super) const EMPTIED: usize = pick(4, 1 << 11);

/// So many places are given up by a removal: some 2 us.
pub(super) const TIDIED: usize = 64;

/// Places that say where a value went are kept up to so many times the values in the wheel.
const KEPT: usize = 8;

/// So many are kept in any case.
const FEW: usize = pick(8, 1 << 10);

/// What ships, or so little that tests come to the steps that only a crowd needs. The fuzzer's model of a timer knows no batch that comes in
/// two parts, and has fewer timeouts.
const fn pick(tested: usize, shipped: usize) -> usize {
    if cfg!(test) {
        tested
    } else if cfg!(fuzzing) {
        256
    } else {
        shipped
    }
}

/// What is being carried down.
#[derive(Default)]
pub(super) struct Carrying {
    /// Bit n: the bucket of level n that `now` is in was entered.
    pub(super) entered: u32,
    /// Bit n: of these, it has values and is being read.
    reading: u32,
    /// Bit n: of these, it has values and was read.
    resting: u32,
    /// How many places the entered buckets had.
    pub(super) places: usize,
    /// How many values were carried down and not yet counted by the owner.
    pub(super) carried: u64,
}

/// How far a level's entered bucket has come.
#[derive(Default)]
pub(super) struct Entered {
    pub(super) places: usize,
    read: usize,
    emptied: usize,
    /// Of what rests, or earlier.
    earliest: u64,
}

impl Carrying {
    /// Whether there are values in an entered bucket.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.reading | self.resting != 0
    }

    /// The bucket of this level has no values any more.
    pub(super) fn none_rests(&mut self, at: usize) {
        self.reading &= !(1 << at);
        self.resting &= !(1 << at);
    }
}

#[cfg(test)]
impl Carrying {
    /// Of which levels the entered buckets have values.
    pub(super) fn check(&self, occupied: u32) {
        assert_eq!((self.reading | self.resting, self.reading & self.resting), (occupied, 0));
    }
}

/// The levels of a set.
fn levels(set: u32) -> impl Iterator<Item = usize> {
    (0..LEVELS).filter(move |at| set >> at & 1 == 1)
}

impl<V, P: Tracker<V>> RawHierarchical<V, P> {
    /// Moves the clock. In the entered buckets that it leaves, there is no value any more.
    #[inline]
    pub(super) fn set_now(&mut self, now: u64) {
        let changed = (now ^ self.now).checked_ilog2().map_or(0, |bit| (2 << (bit / BITS)) - 1);
        if self.carrying.entered & changed != 0 {
            self.renew(self.carrying.entered & changed);
        }
        self.now = now;
    }

    /// `now` has come into the slot of this bucket, in which not all is due. It is not marked any more.
    pub(super) fn enter(&mut self, at: usize, slot: usize, out: &mut Vec<Place<V>>) {
        let Some(level) = &mut self.levels[at] else { return };
        let places = level.buckets[slot].places();
        let earliest = if at == 1 { level.buckets[slot].earliest() } else { u64::MAX };
        level.entered = Entered { places, earliest, ..Entered::default() };
        self.carrying.entered |= 1 << at;
        self.carrying.places += places;
        if places <= EMPTIED {
            self.carry(at, 0..places, out, |_| true);
        } else if at == 1 {
            self.carrying.resting |= 1 << at;
        } else {
            self.carrying.reading |= 1 << at;
        }
    }

    /// A step on the way to `to`. `false`: there was nothing to do, or nothing that is due by then.
    #[cold]
    #[inline(never)]
    pub(super) fn carry_on(&mut self, to: u64, out: &mut Vec<Place<V>>) -> bool {
        if let Some(at) = levels(self.carrying.reading).next() {
            self.read(at, out);
            return true;
        }
        levels(self.carrying.resting).take(1).for_each(|at| self.empty(at, out));
        if !out.is_empty() {
            return true;
        }
        // The finest first: the clock must not leave its slot before.
        let due = levels(self.carrying.resting).find(|at| self.rest(*at).is_some_and(|earliest| earliest <= to));
        let Some(at) = due else { return false };
        if self.first().is_some_and(|(finer, slot)| finer < at && span(self.now, finer, slot).0 <= to) {
            return false;
        }
        let (_, end) = span(self.now, at, self.entered_bucket(at) as usize % SLOTS);
        self.set_now(end.min(to));
        if at > 1
            && let Some(level) = &mut self.levels[at]
        {
            level.entered.read = level.entered.emptied;
            level.entered.earliest = u64::MAX;
            self.carrying.resting &= !(1 << at);
            self.carrying.reading |= 1 << at;
        }
        true
    }

    /// Step 1.
    fn read(&mut self, at: usize, out: &mut Vec<Place<V>>) {
        let (now, finer) = (self.now, (at as u32 - 1) * BITS);
        let Some(level) = &mut self.levels[at] else { return };
        let (from, mut earliest) = (level.entered.read, level.entered.earliest);
        let end = from + READ;
        level.entered.read = end;
        if end >= level.entered.places {
            self.carrying.reading &= !(1 << at);
            self.carrying.resting |= 1 << at;
        }
        self.carry(at, from..end, out, |deadline| {
            let is_near = deadline <= now || (deadline ^ now) >> finer == 0;
            if !is_near {
                earliest = earliest.min(deadline);
            }
            is_near
        });
        if let Some(level) = &mut self.levels[at] {
            level.entered.earliest = earliest;
        }
    }

    /// Step 2.
    fn empty(&mut self, at: usize, out: &mut Vec<Place<V>>) {
        let Some(level) = &mut self.levels[at] else { return };
        let from = level.entered.emptied;
        level.entered.emptied += EMPTIED;
        self.carry(at, from..from + EMPTIED, out, |_| true);
    }

    /// Empties those of some places whose deadlines are chosen: what is due is put into `out`, and into finer buckets what is not.
    fn carry(&mut self, at: usize, places: Range<usize>, out: &mut Vec<Place<V>>, chosen: impl FnMut(u64) -> bool) {
        let slot = self.entered_bucket(at) as usize % SLOTS;
        let (finer, coarser) = self.levels.split_at_mut(at);
        let Some(Some(level)) = coarser.first_mut() else { return };
        let (now, due, mut last) = (self.now, out.len(), Last(Location::NONE));
        level.buckets[slot].carry(places, chosen, |deadline, value| {
            if deadline > now {
                self.occupied |= 1 << link_in(finer, now, deadline, value, &mut last);
                self.carrying.carried += 1;
                return last.0;
            }
            out.push((deadline, Some(value)));
            Location::NONE
        });
        if level.buckets[slot].is_vacant() {
            self.carrying.none_rests(at);
        }
        self.len -= out.len() - due;
    }

    /// When what rests in entered buckets may be due.
    #[cold]
    pub(super) fn earliest_of_the_rest(&self) -> Option<u64> {
        if self.carrying.reading != 0 {
            return Some(self.now);
        }
        levels(self.carrying.resting).filter_map(|at| self.rest(at)).min()
    }

    fn rest(&self, at: usize) -> Option<u64> {
        let rests = self.carrying.resting >> at & 1 == 1;
        self.levels[at].as_ref().filter(|_| rests).map(|level| level.entered.earliest)
    }

    /// Where a value is, if it is linked, that was last told to be at `location`.
    pub(super) fn resolve(&self, mut location: Location) -> Location {
        while let Some(to) = self.carried_to(location) {
            location = to;
        }
        location
    }

    fn carried_to(&self, location: Location) -> Option<Location> {
        let left = Some(location.bucket()).filter(|id| self.was_entered(*id))?;
        bucket_of(&self.levels, left)?.carried_to(location.position())
    }

    /// Whether `now` has come into the slot of this bucket, and what was in there was or will be carried down.
    pub(super) fn was_entered(&self, bucket: u32) -> bool {
        let at = bucket as usize / SLOTS;
        at < LEVELS && self.carrying.entered >> at & 1 == 1 && self.entered_bucket(at) == bucket
    }

    /// The bucket of a level that `now` is in.
    fn entered_bucket(&self, at: usize) -> u32 {
        id(at, (self.now >> (at as u32 * BITS)) as usize % SLOTS)
    }

    /// Returns the numbers of the buckets that `now` is in and that may have values.
    pub(super) fn entered_buckets(&self) -> impl Iterator<Item = u32> {
        levels(self.carrying.reading | self.carrying.resting).map(|at| self.entered_bucket(at))
    }

    /// Removes what is not where it was last told to be.
    #[cold]
    #[inline(never)]
    pub(super) fn remove_elsewhere(&mut self, location: Location, wanted: impl FnOnce(&V) -> bool) -> Option<V> {
        let to = self.resolve(location);
        if to.bucket() == OVERDUE {
            let value = self.overdue.remove_and_compact(OVERDUE, to.position(), wanted, &mut self.tracker)?;
            self.len -= 1;
            return Some(value);
        }
        if to == location { None } else { self.remove_at(to, wanted) }
    }

    /// Whether far fewer values are left than places that say where a value went.
    #[inline]
    pub(super) fn leaves_much(&self) -> bool {
        self.carrying.places > KEPT * self.len + FEW
    }

    /// Memory follows the values: gives up so many of those places, after telling the values which they name. What rested there is linked
    /// anew: it is overdue if it is due.
    #[cold]
    #[inline(never)]
    pub(super) fn tidy(&mut self, many: usize) {
        if self.len == self.overdue.len() {
            self.renew(self.carrying.entered);
        }
        let mut left = many;
        for at in levels(self.carrying.entered) {
            let slot = self.entered_bucket(at) as usize % SLOTS;
            while left > 0
                && let Some(level) = &mut self.levels[at]
            {
                let Some((deadline, value)) = level.buckets[slot].pop() else {
                    self.renew(1 << at);
                    break;
                };
                left -= 1;
                if level.buckets[slot].is_vacant() {
                    self.carrying.none_rests(at);
                }
                match value {
                    Some(value) => self.link(deadline, value),
                    None => self.tell(Location::from_bits(deadline)),
                }
            }
        }
    }

    /// Tells the value that is at this location, if there is one. One that has been carried on is named by another place, too.
    fn tell(&mut self, at: Location) {
        if let Some((_, value)) = bucket_of(&self.levels, at.bucket()).and_then(|bucket| bucket.get(at.position())) {
            self.tracker.put(value, at);
        }
    }

    /// Renews the entered buckets of some levels, in which no value is left.
    #[cold]
    #[inline(never)]
    fn renew(&mut self, set: u32) {
        for at in levels(set) {
            let slot = self.entered_bucket(at) as usize % SLOTS;
            if let Some(level) = &mut self.levels[at] {
                debug_assert!(level.buckets[slot].is_vacant());
                self.carrying.places -= level.entered.places;
                let places = level.buckets[slot].renew();
                if places.capacity() > FEW {
                    self.emptied.push(places);
                }
            }
        }
        self.carrying.entered &= !set;
        self.carrying.reading &= !set;
        self.carrying.resting &= !set;
    }
}

/// Remembers where the last value was put, and tells none.
struct Last(Location);

impl<V> Tracker<V> for Last {
    #[inline]
    fn put(&mut self, _: &V, location: Location) {
        self.0 = location;
    }
}
