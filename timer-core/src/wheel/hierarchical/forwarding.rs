//! Forwarding: finding the values that a cascade has moved.
//!
//! A cascade does not report the new location of a value, because that would fetch the value from
//! memory, and most values expire soon after without being asked for. Instead, the slot that a
//! value has left holds its new location ([`Cascade::forward`]). A value that is not at its
//! reported location is found by following these links ([`RawHierarchical::find`]). Each link leads
//! to a finer level, so there are at most ten.
//!
//! *Forgetting.* When `now` leaves the span of a bucket, none of its values is left, and the links
//! are dropped. If the links outnumber the values in the wheel by far, they are dropped earlier:
//! each removal takes a few slots off the end of a cascade and reports the locations of the values
//! to which they lead ([`RawHierarchical::forget`]). The chunks are freed one at a time.

use super::cascade::{Cascade, levels};
use super::{BUCKETS, LEVELS, RawHierarchical, bucket_of};
use crate::wheel::bucket::OVERDUE;
use crate::wheel::chunks::CHUNK;
use crate::wheel::location::{Location, Tracker};

/// The number of slots that one removal takes off a cascade that is to be forgotten: about 2 us.
const FORGOTTEN_PER_REMOVAL: usize = 64;

/// A cascade is forgotten early if it has this many times more slots than there are values in the
/// wheel.
const MAX_FORWARDS_RATIO: usize = 8;

/// This many slots are kept in any case.
const MIN_FORWARDS: usize = CHUNK;

impl<V, P: Tracker<V>> RawHierarchical<V, P> {
    /// Returns the location of the value that was last reported at `location`, if the value is
    /// still in the wheel.
    pub(super) fn find(&self, mut location: Location) -> Location {
        while let Some(to) = self.cascade_of(location).and_then(|cascade| cascade.forward(location.position())) {
            if to.bucket() >= location.bucket() {
                break;
            }
            location = to;
        }
        location
    }

    /// Returns the cascade that has the slots of this bucket.
    fn cascade_of(&self, location: Location) -> Option<&Cascade<V>> {
        let at = location.bucket() as usize / BUCKETS;
        let is_open = at < LEVELS && self.cascades.open >> at & 1 == 1 && self.current(at) == location.bucket();
        self.levels.get(at).filter(|_| is_open)?.as_deref().map(|level| &level.cascade)
    }

    /// Returns the value at this location and its deadline.
    pub(super) fn get_at(&self, location: Location) -> Option<(u64, &V)> {
        match self.cascade_of(location) {
            Some(cascade) => cascade.get(location.position()),
            None if location.bucket() == OVERDUE => self.overdue.get(location.position()),
            None => bucket_of(&self.levels, location.bucket())?.get(location.position()),
        }
    }

    /// Returns the value that was last reported at `location`, if it is still in the wheel.
    pub(in crate::wheel) fn get_mut(&mut self, location: Location) -> Option<&mut V> {
        let location = self.find(location);
        if location.bucket() == OVERDUE {
            return self.overdue.get_mut(location.position());
        }
        let is_cascading = self.cascade_of(location).is_some();
        let level = self.levels.get_mut(location.bucket() as usize / BUCKETS)?.as_mut()?;
        if is_cascading {
            return level.cascade.slots.get_mut(location.position() as usize)?.1.as_mut();
        }
        level.buckets[location.bucket() as usize % BUCKETS].get_mut(location.position())
    }

    /// Removes a value that is not in the bucket where it was last reported.
    #[cold]
    #[inline(never)]
    pub(super) fn remove_moved(&mut self, location: Location, wanted: impl FnOnce(&V) -> bool) -> Option<V> {
        let location = self.find(location);
        if location.bucket() == OVERDUE {
            let (deadline, value) = self.overdue.remove(location.position(), wanted)?;
            self.overdue.compact(OVERDUE, deadline, &mut self.tracker);
            self.len -= 1;
            return Some(value);
        }
        if self.cascade_of(location).is_none() {
            return self.remove_at(location, wanted);
        }
        let at = location.bucket() as usize / BUCKETS;
        let cascade = &mut self.levels[at].as_mut()?.cascade;
        let slot = cascade.slots.get_mut(location.position() as usize)?;
        let value = slot.1.take_if(|value| wanted(value))?;
        slot.0 = Location::NONE.to_bits();
        cascade.len -= 1;
        if cascade.len == 0 {
            self.cascades.end(at);
        }
        self.len -= 1;
        self.forget_if_many();
        Some(value)
    }

    /// Drops some links after a removal if they are far more than the values in the wheel.
    #[inline]
    pub(super) fn forget_if_many(&mut self) {
        if self.has_many_forwards() {
            self.forget(FORGOTTEN_PER_REMOVAL);
        }
    }

    #[inline]
    pub(super) fn has_many_forwards(&self) -> bool {
        self.cascades.slots > MAX_FORWARDS_RATIO * self.len + MIN_FORWARDS
    }

    /// Takes up to `many` slots off the cascades. Values to which they lead are reported, and
    /// values that are still in them are inserted anew.
    #[cold]
    #[inline(never)]
    pub(super) fn forget(&mut self, many: usize) {
        for _ in 0..many {
            let Some(at) = levels(self.cascades.open).next() else { return };
            let Some(level) = &mut self.levels[at] else { return };
            match level.cascade.slots.pop() {
                None => {
                    level.cascade.slots.shrink();
                    self.cascades.open &= !(1 << at);
                    continue;
                }
                Some((deadline, Some(value))) => {
                    level.cascade.len -= 1;
                    if level.cascade.len == 0 {
                        self.cascades.end(at);
                    }
                    self.insert_uncounted(deadline, value);
                }
                Some((bits, None)) => {
                    let location = Location::from_bits(bits);
                    if let Some((_, value)) =
                        bucket_of(&self.levels, location.bucket()).and_then(|bucket| bucket.get(location.position()))
                    {
                        self.tracker.moved(value, location);
                    }
                }
            }
            self.cascades.slots -= 1;
        }
    }
}
