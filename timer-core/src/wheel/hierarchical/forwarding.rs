//! Forwarding: finding the values that a cascade has moved.
//!
//! A cascade does not report the new location of a value, because that would fetch the value from
//! memory, and most values expire soon after without being asked for. Instead, the slot that a
//! value has left holds its new location ([`Cascade::forward`]). A value that is not at its
//! reported location is found by following these links ([`RawHierarchical::find`]). Each link leads
//! to a finer level, so there are at most ten.
//!
//! *Forgetting.* When `now` leaves the span of a bucket, none of its values is left, and the links
//! are dropped. Some are dropped earlier, a chunk at a time ([`RawHierarchical::forget`]). The
//! locations of the values to which they lead are reported then. A removal does this when most of
//! the values to which the links of a chunk lead are gone. The wheel also does it before its owner
//! goes to sleep, if it has many more links than values.

use super::cascade::{Cascade, levels};
use super::{BUCKETS, LEVELS, Levels, RawHierarchical};
use crate::wheel::bucket::{Bucket, OVERDUE};
use crate::wheel::location::{Location, Tracker};
use crate::wheel::slots::{CHUNK, Slot};

/// Cascades are forgotten early if they have this many times more slots than there are values in
/// the wheel.
const MAX_FORWARDS_RATIO: usize = 8;

/// Returns the value at this location, which is in a cascade or not, and its deadline.
pub(super) fn value_at<'a, V>(
    levels: &'a Levels<V>,
    overdue: &'a Bucket<V>,
    is_cascading: bool,
    location: Location,
) -> Option<(u64, &'a V)> {
    let id = location.bucket as usize;
    let slots = if location.bucket == OVERDUE {
        &overdue.slots
    } else {
        let level = levels.get(id / BUCKETS)?.as_deref()?;
        if is_cascading { &level.cascade.slots } else { &level.buckets[id % BUCKETS].slots }
    };
    slots.value(location.position)
}

impl<V, P: Tracker<V>> RawHierarchical<V, P> {
    /// Returns the present location of the value that was last reported at `location`. If the value
    /// has left the wheel, the result has no meaning.
    pub(super) fn find(&self, mut location: Location) -> Location {
        while let Some(to) = self.cascade_of(location).and_then(|cascade| cascade.forward(location.position)) {
            if to.bucket >= location.bucket {
                break;
            }
            location = to;
        }
        location
    }

    /// Returns the cascade that has the slots of this bucket.
    pub(super) fn cascade_of(&self, location: Location) -> Option<&Cascade<V>> {
        let at = location.bucket as usize / BUCKETS;
        let is_open = at < LEVELS && self.cascades.open >> at & 1 == 1 && self.current(at) == location.bucket;
        self.levels.get(at).filter(|_| is_open)?.as_deref().map(|level| &level.cascade)
    }

    /// Removes a value that is not in the bucket where it was last reported.
    #[cold]
    #[inline(never)]
    pub(super) fn remove_moved(&mut self, reported: Location, wanted: impl FnOnce(&V) -> bool) -> Option<V> {
        let location = self.find(reported);
        let value = if self.cascade_of(location).is_some() {
            let at = location.bucket as usize / BUCKETS;
            let slot = self.levels[at].as_mut()?.cascade.slots.get_mut(location.position as usize)?;
            let value = slot.1.take_if(|value| wanted(value))?;
            slot.0 = Location::NONE.to_bits();
            self.left_cascade(at, 1);
            self.len -= 1;
            value
        } else {
            self.remove_at(location, wanted)?
        };
        self.unlink(reported);
        Some(value)
    }

    /// Follows the links from `location` to a value that was removed, and lowers the count of each
    /// chunk on the way.
    fn unlink(&mut self, mut location: Location) {
        while self.cascade_of(location).is_some() {
            let (at, position) = (location.bucket as usize / BUCKETS, location.position);
            let Some(level) = &mut self.levels[at] else { return };
            let next = level.cascade.forward(position);
            let Some((chunk, _)) = level.cascade.slots.chunk_mut(position as usize) else { return };
            chunk.len -= 1;
            if chunk.is_sparse() {
                let slots = level.cascade.slots.take_chunk(position as usize, &mut self.discarded);
                self.forget(at, slots);
            }
            match next {
                Some(next) if next.bucket < location.bucket => location = next,
                _ => return,
            }
        }
    }

    #[inline]
    pub(super) fn has_many_forwards(&self) -> bool {
        self.cascades.slots > MAX_FORWARDS_RATIO * self.len + CHUNK
    }

    /// Forgets a chunk of a cascade.
    pub(super) fn forget_chunk(&mut self) {
        let Some(at) = levels(self.cascades.open).next() else { return };
        let Some(level) = &mut self.levels[at] else { return };
        let slots = level.cascade.slots.pop_chunk(&mut self.discarded);
        if level.cascade.slots.is_empty() {
            self.cascades.open &= !(1 << at);
        }
        self.forget(at, slots);
    }

    /// Discards the slots of a chunk of a cascade. Values to which their links lead are reported,
    /// and values that are still in them are inserted anew.
    #[cold]
    #[inline(never)]
    fn forget(&mut self, at: usize, mut slots: Vec<Slot<V>>) {
        self.cascades.slots -= slots.len();
        if self.len == 0 {
            // No link leads to a value.
            slots.clear();
        }
        for (bits, value) in slots.drain(..) {
            if let Some(value) = value {
                self.left_cascade(at, 1);
                self.insert_uncounted(bits, value);
                continue;
            }
            let location = self.find(Location::from_bits(bits));
            let is_cascading = self.cascade_of(location).is_some();
            if let Some((_, value)) = value_at(&self.levels, &self.overdue, is_cascading, location) {
                self.tracker.moved(value, location);
            }
        }
        self.discarded.push_slots(slots);
    }
}
