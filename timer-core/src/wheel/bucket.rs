//! One slot's values: an array of (deadline, value) that is read in sequence.
//!
//! An array and not a list, because expiring and cascading read all of a bucket: neighbours share cache lines and the
//! hardware reads ahead. A removal leaves its place vacant, and the next insertion fills the latest one: no other value is
//! moved, so a removal touches its own place and no other, and the place that is filled is still in the cache. The order
//! within a bucket is that of insertion only as long as nothing is removed.
//!
//! A bucket caches the earliest of its deadlines. An insertion keeps it exact; a removal from a long bucket leaves it
//! as it is, a lower bound, since finding the new one means reading the bucket. Emptiness is the array's, never a
//! special deadline: all of `u64` may be scheduled.
//!
//! Memory follows the values: capacity stays within about four times their number, plus [`KEPT`]. Growing a long array and
//! compacting a sparse one cost O(its values), amortised O(1) each.

use super::location::{Location, Tracker};
use std::mem;
use std::ops::Range;

/// The number of the bucket of what is due already; both wheels have one.
pub(super) const OVERDUE: u32 = u32::MAX - 1;

/// An empty bucket keeps room for this many values, so that a lone timeout does not allocate each time.
pub(super) const KEPT: usize = 4;

/// A bucket of at most this many values is read again after a removal, so its earliest deadline is exact.
const REREAD: usize = 8;

/// An array of so many places no longer doubles when it is full.
const LONG: usize = 1 << 12;

/// The end of the chain of vacant places.
const END: u32 = u32::MAX;

/// A value and the tick at which it is due.
pub(crate) type Entry<V> = (u64, V);

/// One place of the array: a value and its tick; or vacant, with the position of the next vacant place, or with where its value was
/// carried.
pub(crate) type Place<V> = (u64, Option<V>);

/// Appends to an array. That there is room is plain to the compiler where it pushes, so it writes the pair from registers; on
/// the stack, where it would be kept for the case that growing panics, it would wait for the stores before it.
#[inline]
pub(super) fn append<V>(array: &mut Vec<(u64, V)>, deadline: u64, value: V) {
    if array.len() < array.capacity() {
        array.push((deadline, value));
    } else {
        append_to_more_room(array, deadline, value);
    }
}

/// A long array grows by a quarter at a time. The allocator moves it by its pages, so that costs no more than doubling
/// does, and far less memory lies idle.
#[cold]
#[inline(never)]
fn append_to_more_room<V>(array: &mut Vec<(u64, V)>, deadline: u64, value: V) {
    let len = array.len();
    if len >= LONG {
        array.reserve_exact(len / 4);
    }
    array.push((deadline, value));
}

/// The values of one slot.
pub(super) struct Bucket<V> {
    places: Vec<Place<V>>,
    /// `u64::MAX` when empty, so that a minimum needs no branch.
    earliest: u64,
    /// How many places are vacant.
    vacancies: u32,
    /// The latest vacant place, or [`END`].
    vacant: u32,
}

impl<V> Bucket<V> {
    pub(super) const fn new() -> Self {
        Bucket { places: Vec::new(), earliest: u64::MAX, vacancies: 0, vacant: END }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.vacancies as usize
    }

    /// Whether no place has a value. One whose values were carried away has places.
    pub(super) fn is_vacant(&self) -> bool {
        self.vacancies as usize == self.places.len()
    }

    /// The array of an empty bucket has no vacant places, unless its values were carried away.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Not later than any deadline in here; `u64::MAX` when empty, but that does not mean empty.
    #[inline]
    pub(super) fn earliest(&self) -> u64 {
        self.earliest
    }

    #[inline]
    pub(super) fn get(&self, position: u32) -> Option<(u64, &V)> {
        let (deadline, value) = self.places.get(position as usize)?;
        value.as_ref().map(|value| (*deadline, value))
    }

    #[inline]
    pub(super) fn get_mut(&mut self, position: u32) -> Option<&mut V> {
        self.places.get_mut(position as usize)?.1.as_mut()
    }

    /// Returns the values with their deadlines.
    pub(super) fn values(&self) -> impl Iterator<Item = (u64, &V)> {
        self.places.iter().filter_map(|(deadline, value)| Some((*deadline, value.as_ref()?)))
    }

    /// Puts a value in; `id` is this bucket's number, for the report.
    #[inline]
    pub(super) fn push(&mut self, id: u32, deadline: u64, value: V, tracker: &mut impl Tracker<V>) {
        self.earliest = self.earliest.min(deadline);
        match self.places.get_mut(self.vacant as usize) {
            Some(place) => {
                let position = self.vacant;
                self.vacancies -= 1;
                self.vacant = place.0 as u32;
                tracker.put(&value, Location::new(id, position));
                // It is vacant: nothing is to be dropped.
                mem::forget(mem::replace(place, (deadline, Some(value))));
            }
            None => {
                tracker.put(&value, Location::new(id, self.places.len() as u32));
                append(&mut self.places, deadline, Some(value));
            }
        }
    }

    /// Takes out the value at `position`, if there is one and it is `wanted`. The owner [`compact`](Self::compact)s the bucket if it
    /// [`is_sparse`](Self::is_sparse) then.
    #[inline]
    pub(super) fn remove(&mut self, position: u32, wanted: impl FnOnce(&V) -> bool) -> Option<Entry<V>> {
        let is_last = position as usize + 1 == self.places.len();
        let place = self.places.get_mut(position as usize)?;
        let deadline = place.0;
        let value = place.1.take_if(|value| wanted(value))?;
        if is_last {
            self.places.pop();
        } else {
            place.0 = u64::from(self.vacant);
            self.vacant = position;
            self.vacancies += 1;
        }
        Some((deadline, value))
    }

    /// Both: removes, and compacts if need be.
    pub(super) fn remove_and_compact(
        &mut self,
        id: u32,
        position: u32,
        wanted: impl FnOnce(&V) -> bool,
        tracker: &mut impl Tracker<V>,
    ) -> Option<V> {
        let (deadline, value) = self.remove(position, wanted)?;
        if self.is_sparse() {
            self.compact(id, deadline, tracker);
        }
        Some(value)
    }

    /// Whether few values are left, or none, or few for so large an array.
    #[inline]
    pub(super) fn is_sparse(&self) -> bool {
        let len = self.len();
        len <= REREAD || len < self.places.capacity() / 4
    }

    /// How many places there are, vacant ones included.
    pub(super) fn places(&self) -> usize {
        self.places.len()
    }

    /// Carries away what is in some places and is chosen by its deadline. `carry` says where each is now, and the vacant place says it
    /// from then on: until [`renew`](Self::renew) nothing may be put in, and the bucket not be compacted.
    pub(super) fn carry(
        &mut self,
        places: Range<usize>,
        mut chosen: impl FnMut(u64) -> bool,
        mut carry: impl FnMut(u64, V) -> Location,
    ) {
        let end = places.end.min(self.places.len());
        for place in self.places.get_mut(places.start..end).unwrap_or_default() {
            if place.1.is_some()
                && chosen(place.0)
                && let Some(value) = place.1.take()
            {
                place.0 = carry(place.0, value).to_bits();
                self.vacancies += 1;
            }
        }
    }

    /// To where the value was carried that was at this position. If it was removed instead, the answer has no meaning.
    pub(super) fn carried_to(&self, position: u32) -> Option<Location> {
        let (to, value) = self.places.get(position as usize)?;
        value.is_none().then(|| Location::from_bits(*to))
    }

    /// Takes the last place away. If it is vacant, where its value was carried stands in place of the deadline.
    pub(super) fn pop(&mut self) -> Option<Place<V>> {
        let place = self.places.pop()?;
        self.vacancies -= u32::from(place.1.is_none());
        Some(place)
    }

    /// As new, but for a little room that is kept; else the array is handed out, with its vacant places. No value is left.
    pub(super) fn renew(&mut self) -> Vec<Place<V>> {
        let mut places = mem::replace(self, Bucket::new()).places;
        if places.capacity() <= KEPT {
            places.clear();
            mem::swap(&mut self.places, &mut places);
        }
        places
    }

    /// Takes the whole array, in exchange for the empty one in `out` if that is small enough to be kept. O(1).
    pub(super) fn swap_out(&mut self, out: &mut Vec<Place<V>>) {
        debug_assert!(out.is_empty());
        let emptied = if out.capacity() <= KEPT { mem::take(out) } else { Vec::new() };
        let full = mem::replace(self, Bucket { places: emptied, ..Bucket::new() });
        *out = full.places;
    }

    /// Moves what is due by `now` to the end of `due`. One walk over the array, after which `earliest` is exact.
    pub(super) fn take_due(&mut self, id: u32, now: u64, due: &mut Vec<Place<V>>, tracker: &mut impl Tracker<V>) {
        let mut earliest = u64::MAX;
        for (at, place) in self.places.iter_mut().enumerate() {
            let deadline = place.0;
            match &place.1 {
                None => {}
                Some(_) if deadline > now => earliest = earliest.min(deadline),
                Some(_) => {
                    append(due, deadline, place.1.take());
                    place.0 = u64::from(self.vacant);
                    self.vacant = at as u32;
                    self.vacancies += 1;
                }
            }
        }
        self.earliest = earliest;
        self.compact(id, END.into(), tracker);
    }

    /// After something due at `left` has left: an array without values is empty, one that becomes short, or a short one whose
    /// earliest has left, is read again, and once three quarters of it are idle, the values close up and it shrinks to twice their number. The removals
    /// in between pay for that.
    #[inline]
    pub(super) fn compact(&mut self, id: u32, left: u64, tracker: &mut impl Tracker<V>) {
        let (len, capacity) = (self.len(), self.places.capacity());
        if len == 0 {
            self.places.clear();
            (self.vacancies, self.vacant, self.earliest) = (0, END, u64::MAX);
        } else if len == REREAD || (len < REREAD && left == self.earliest) {
            let values = self.places.iter().filter(|place| place.1.is_some());
            self.earliest = values.fold(u64::MAX, |min, place| min.min(place.0));
        }
        if capacity > KEPT && len < capacity / 4 {
            self.close_up(id, tracker);
            self.places.shrink_to(2 * len);
        }
    }

    #[cold]
    fn close_up(&mut self, id: u32, tracker: &mut impl Tracker<V>) {
        let first = self.places.iter().position(|place| place.1.is_none()).unwrap_or(self.places.len());
        self.places.retain(|place| place.1.is_some());
        for (at, (_, value)) in self.places.iter().enumerate().skip(first) {
            value.iter().for_each(|value| tracker.put(value, Location::new(id, at as u32)));
        }
        (self.vacancies, self.vacant) = (0, END);
    }
}

#[cfg(test)]
mod tests;
