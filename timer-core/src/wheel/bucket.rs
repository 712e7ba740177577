//! One slot's values: an array of (deadline, value) that is read in sequence.
//!
//! An array and not a list, because expiring and cascading read all of a bucket: neighbours share cache lines and the
//! hardware reads ahead. A removal leaves a gap, and the next insertion fills the latest one: nobody else is moved, so a
//! removal touches its own place and no other, and the place that is filled is one that is still in the cache. The order
//! within a bucket is that of insertion only as long as nothing is removed.
//!
//! A bucket caches the earliest of its deadlines. An insertion keeps it exact; a removal from a long bucket leaves it
//! as it is, a lower bound, since finding the new one means reading the bucket. Emptiness is the array's, never a
//! special deadline: all of `u64` may be scheduled.
//!
//! Memory follows the values: capacity stays within about four times their number, plus [`KEPT`].

use super::spot::{Places, Spot};

/// The number of the bucket of what is due already; both wheels have one.
pub(super) const OVERDUE: u32 = u32::MAX - 1;

/// An empty bucket keeps room for this many values, so that a lone timeout does not allocate each time.
const KEPT: usize = 4;

/// A bucket of at most this many values is read again after a removal, so its earliest deadline is exact.
const REREAD: usize = 8;

/// An array of so many places no longer doubles when it is full.
const LONG: usize = 1 << 9;

/// The end of the chain of gaps.
const END: u32 = u32::MAX;

/// A value and the tick at which it is due.
pub(crate) type Entry<V> = (u64, V);

/// One place of the array: a value and its tick, or a gap and the position of the next one.
pub(super) type Place<V> = (u64, Option<V>);

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
    /// How many places are gaps.
    gaps: u32,
    /// The latest gap, or [`END`].
    gap: u32,
}

impl<V> Bucket<V> {
    pub(super) const fn new() -> Self {
        Bucket { places: Vec::new(), earliest: u64::MAX, gaps: 0, gap: END }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len() - self.gaps as usize
    }

    /// The array of an empty bucket has no gaps.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Not later than any deadline in here; `u64::MAX` when empty, but that does not mean empty.
    pub(super) fn earliest(&self) -> u64 {
        self.earliest
    }

    pub(super) fn get(&self, position: u32) -> Option<(u64, &V)> {
        let (deadline, value) = self.places.get(position as usize)?;
        value.as_ref().map(|value| (*deadline, value))
    }

    /// Puts a value in; `id` is this bucket's number, for the report.
    pub(super) fn push(&mut self, id: u32, deadline: u64, value: V, places: &mut impl Places<V>) {
        self.earliest = self.earliest.min(deadline);
        let position = match self.places.get(self.gap as usize) {
            Some(place) => {
                self.gaps -= 1;
                let position = self.gap;
                self.gap = place.0 as u32;
                self.places[position as usize] = (deadline, Some(value));
                position
            }
            None => {
                append(&mut self.places, deadline, Some(value));
                self.places.len() as u32 - 1
            }
        };
        if let Some((_, Some(value))) = self.places.get(position as usize) {
            places.put(value, Spot::new(id, position));
        }
    }

    /// Takes out the value at `position`, if there is one and it is `wanted`.
    pub(super) fn remove(
        &mut self,
        id: u32,
        position: u32,
        wanted: impl FnOnce(&V) -> bool,
        places: &mut impl Places<V>,
    ) -> Option<V> {
        let is_last = position as usize + 1 == self.places.len();
        let place = self.places.get_mut(position as usize)?;
        let value = place.1.take_if(|value| wanted(value))?;
        if is_last {
            self.places.pop();
        } else {
            place.0 = u64::from(self.gap);
            self.gap = position;
            self.gaps += 1;
        }
        self.settle(id, places);
        if self.len() <= REREAD {
            let values = self.places.iter().filter(|place| place.1.is_some());
            self.earliest = values.fold(u64::MAX, |min, place| min.min(place.0));
        }
        Some(value)
    }

    /// Moves everything to the end of `out`.
    pub(super) fn take(&mut self, out: &mut Vec<Entry<V>>) {
        out.reserve(self.len());
        let mut places = self.take_places();
        for (deadline, value) in places.drain(..) {
            if let Some(value) = value {
                append(out, deadline, value);
            }
        }
        self.reuse(places);
    }

    /// Takes the array.
    pub(super) fn take_places(&mut self) -> Vec<Place<V>> {
        std::mem::replace(self, Bucket::new()).places
    }

    /// Gives an emptied array back to the empty bucket from which it came, if it is small enough to be kept.
    pub(super) fn reuse(&mut self, emptied: Vec<Place<V>>) {
        if emptied.capacity() <= KEPT {
            self.places = emptied;
        }
    }

    /// Moves what is due by `now` to the end of `due`. One walk, after which `earliest` is exact.
    pub(super) fn take_due(&mut self, id: u32, now: u64, due: &mut Vec<Entry<V>>, places: &mut impl Places<V>) {
        let mut earliest = u64::MAX;
        for (at, place) in self.places.iter_mut().enumerate() {
            let deadline = place.0;
            match &place.1 {
                None => {}
                Some(_) if deadline > now => earliest = earliest.min(deadline),
                Some(_) => {
                    if let Some(value) = place.1.take() {
                        append(due, deadline, value);
                    }
                    place.0 = u64::from(self.gap);
                    self.gap = at as u32;
                    self.gaps += 1;
                }
            }
        }
        self.earliest = earliest;
        self.settle(id, places);
    }

    /// After something has left: an array without values is empty, and once three quarters of it are idle, the values
    /// close up and it shrinks to twice their number. The removals in between pay for that.
    fn settle(&mut self, id: u32, places: &mut impl Places<V>) {
        let (len, capacity) = (self.len(), self.places.capacity());
        if len == 0 {
            self.places.clear();
            (self.gaps, self.gap) = (0, END);
        }
        if capacity > KEPT && len < capacity / 4 {
            self.close_up(id, places);
            self.places.shrink_to(2 * len);
        }
    }

    #[cold]
    fn close_up(&mut self, id: u32, places: &mut impl Places<V>) {
        let first = self.places.iter().position(|place| place.1.is_none()).unwrap_or(self.places.len());
        self.places.retain(|place| place.1.is_some());
        for (at, (_, value)) in self.places.iter().enumerate().skip(first) {
            value.iter().for_each(|value| places.put(value, Spot::new(id, at as u32)));
        }
        (self.gaps, self.gap) = (0, END);
    }
}

#[cfg(test)]
mod tests;
