//! The hashed wheel: scheme 6 of Varghese & Lauck (1987), as in Netty.
//!
//! The wheel is one ring of lists. A deadline belongs to the list of its low bits, whatever its
//! round. Values of later rounds stay in their list until their round comes, so nothing cascades.
//!
//! A list is visited only when its bound is due or may be too low. The original visits every list
//! at every tick and looks at all values in it. Here a tree of minima ([`bounds`]) finds the next
//! list, so a jump of any length costs only the values that are due. The cost that remains is that
//! of a list shared by many deadlines, because each visit reads all of the list.
//!
//! *The number of lists follows the number of values*, up to the number that was asked for. The
//! ring grows and shrinks by one list at a time (linear hashing). A list is an array, like a bucket
//! of the hierarchical wheel, so a visit reads it in sequence. A new list starts empty. Older
//! values stay in their lists, where their locations and the bounds of the lists still find them.
//! The values of a list that is given up move to another list.
//!
//! *Stale bounds.* A removal leaves the bound of a long list unchanged, so the bound may be too
//! low. When nothing is due, the wheel reads the first list again if its bound is stale, before the
//! owner goes to sleep. So the owner wakes up for a value that is gone at most once.
//!
//! This module knows no clocks, keys or locks, and does no work per tick.

use super::bucket::OVERDUE;
use super::chunks::Chunks;
use super::discarded::{Discarded, Memory};
use super::location::{Location, Tracker};
use super::raw::RawWheel;
use super::slots::{Entry, Slots};
use bounds::Bounds;
use std::mem;

mod bounds;

/// The largest number of lists.
const MAX_LISTS: usize = 1 << 30;

/// A ring has at least one list for this many values, unless it has all lists. It has at most one
/// list for each value. With more lists, their ends would not fit into the cache. With fewer, a
/// visit would read more values that are not due.
const VALUES_PER_LIST: usize = if cfg!(any(test, fuzzing)) { 32 } else { 256 };

/// The number of slots that are read at a time, which divides the length of a chunk. A step reads
/// less than twice as many, and may move a chunk.
const STEP: usize = if cfg!(any(test, fuzzing)) { 4 } else { 128 };

/// A list of at most this many slots is read again after its earliest value was removed.
const MAX_REREAD: usize = 64;

/// The hashed wheel without keys. It is aligned because a thread that uses one wheel must not delay
/// those that use the wheels next to it in memory.
#[repr(align(128))]
pub(crate) struct RawHashed<V, P> {
    now: u64,
    len: usize,
    /// The number of lists that was asked for, less one.
    mask: u32,
    lists: Chunks<List<V>>,
    bounds: Bounds,
    /// The next slot to read if a list is being read, and the bound that the list had before the
    /// visit. During the visit, its bound covers only values that were read or inserted meanwhile.
    /// A removal that moves some of its values starts the visit again.
    visit: Option<(Location, u64)>,
    /// Values that were due when they were inserted.
    overdue: List<V>,
    discarded: Discarded<V>,
    tracker: P,
}

/// The values whose deadlines share their low bits.
pub(super) struct List<V> {
    slots: Slots<V>,
    /// Whether the bound of this list may be too low although it is after `now`.
    is_stale: bool,
}

/// Returns the list with this number.
#[inline]
fn list_mut<'a, V>(lists: &'a mut Chunks<List<V>>, overdue: &'a mut List<V>, list: u32) -> Option<&'a mut List<V>> {
    if list == OVERDUE { Some(overdue) } else { lists.get_mut(list as usize) }
}

impl<V, P: Tracker<V>> RawHashed<V, P> {
    /// Creates a wheel of at most `ticks_per_wheel` lists, and of none at first. The number is
    /// clamped to 1..=2^30 and rounded up to a power of two.
    pub(crate) fn new(ticks_per_wheel: usize, tracker: P) -> Self {
        let mask = ticks_per_wheel.clamp(1, MAX_LISTS).next_power_of_two() as u32 - 1;
        let (lists, bounds) = (Chunks::default(), Bounds::default());
        let (overdue, discarded) = (List { slots: Slots::default(), is_stale: false }, Discarded::new());
        RawHashed { now: 0, len: 0, mask, lists, bounds, visit: None, overdue, discarded, tracker }
    }

    pub(crate) fn ticks_per_wheel(&self) -> usize {
        self.mask as usize + 1
    }

    /// Returns the list of a deadline. There must be a list.
    #[inline]
    fn list_of(&self, deadline: u64) -> u32 {
        let lists = self.lists.len();
        let mask = lists.next_power_of_two() as u32 - 1;
        let low = deadline as u32 & mask;
        if (low as usize) < lists { low } else { low & mask >> 1 }
    }

    /// Adds an empty list.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.lists.push(List { slots: Slots::default(), is_stale: false });
        self.bounds.set_len(self.lists.len(), |_| ());
    }

    /// Inserts a value that is not due into a list, without counting it.
    #[inline(always)]
    fn insert_into(&mut self, list: u32, deadline: u64, value: V) {
        let Some(List { slots, .. }) = self.lists.get_mut(list as usize) else { return };
        slots.insert(deadline, value, |value, position| self.tracker.moved(value, Location::new(list, position)));
        self.bounds.lower(list as usize, deadline);
    }

    /// Restores the bound on the memory of a list after a removal at `position`.
    fn keep_up(&mut self, list: u32, position: u32) {
        let Some(List { slots, .. }) = list_mut(&mut self.lists, &mut self.overdue, list) else { return };
        let moved = |value: &V, position| {
            self.tracker.moved(value, Location::new(list, position));
            // The value may not have been read yet.
            if let Some((visit, _)) = self.visit.as_mut().filter(|(visit, _)| visit.bucket == list) {
                visit.position = 0;
            }
        };
        slots.keep_up(position as usize, moved, &mut self.discarded);
    }

    /// Makes the bound of a list exact if the list is short, and marks it as stale if not.
    fn reread(&mut self, list: u32) {
        let Some(List { slots, is_stale }) = self.lists.get_mut(list as usize) else { return };
        *is_stale = !slots.is_short() || slots.open.slots.len() > MAX_REREAD;
        if !*is_stale {
            self.bounds.set(list as usize, slots.iter().fold(u64::MAX, |min, (deadline, _)| min.min(deadline)));
        }
    }

    /// Returns the list with the earliest bound if it has to be read, because the bound is due or
    /// may be too low.
    fn to_visit(&self) -> Option<u32> {
        let (first, earliest) = (self.bounds.first(), self.bounds.earliest());
        if earliest == u64::MAX && self.now == u64::MAX {
            // An empty list has the same bound as one whose values are all at the last tick.
            let has_values = |list: &usize| self.lists.get(*list).is_some_and(|list| !list.slots.is_empty());
            return (0..self.lists.len()).find(has_values).map(|list| list as u32);
        }
        let is_stale = self.lists.get(first).is_some_and(|list| list.is_stale);
        (earliest <= self.now || is_stale).then_some(first as u32)
    }

    /// Returns `true` if the ring should give up a list.
    #[inline]
    fn is_sparse(&self) -> bool {
        self.lists.len() > self.len.max(1) && self.visit.is_none()
    }

    /// Moves a chunk of the last list to the list whose number differs from its own in the highest
    /// bit, and removes the list if it is empty. Returns the cost, which is at least 1.
    #[cold]
    fn merge_last(&mut self) -> usize {
        let last = self.lists.len() - 1;
        let Some(List { slots, is_stale }) = self.lists.get_mut(last) else { return 1 };
        *is_stale = true;
        let mut chunk = slots.pop_chunk(&mut self.discarded);
        if slots.is_empty() {
            let list = self.lists.pop(|lists| self.discarded.push(Memory::Lists(lists)));
            list.into_iter().for_each(|list| self.discarded.push_bucket(list.slots));
            self.bounds.set(last, u64::MAX);
            self.bounds.set_len(last, |bounds| self.discarded.push(Memory::Bounds(bounds)));
        }
        let cost = 1 + chunk.len();
        for (deadline, value) in chunk.drain(..) {
            if let Some(value) = value {
                self.insert_into(last as u32 ^ 1 << last.ilog2(), deadline, value);
            }
        }
        self.discarded.push_slots(chunk);
        cost
    }

    /// Prepares a list to be read, and returns its first slot and its bound.
    fn begin_visit(&mut self) -> Option<(Location, u64)> {
        let (list, bound) = (self.to_visit()?, self.bounds.earliest());
        self.bounds.set(list as usize, u64::MAX);
        self.lists.get_mut(list as usize)?.is_stale = false;
        Some((Location::new(list, 0), bound))
    }

    /// Reads some slots of a list. The visit ends with the last slot. Returns the cost, which is at
    /// least 1.
    fn read(&mut self, visit: (Location, u64), due: &mut Slots<V>) -> usize {
        let (Location { bucket: list, position }, bound) = visit;
        let Some(List { slots, .. }) = self.lists.get_mut(list as usize) else { return 1 };
        let next = (position / STEP as u32 + 1) * STEP as u32;
        let next = ((next as usize) < slots.len()).then_some((Location::new(list, next), bound));
        self.visit = next;
        // There may be no chunk.
        let Some((chunk, from)) = slots.chunk_mut(position as usize) else { return 1 };
        let (before, to) = (chunk.len, chunk.slots.len().min(from + STEP));
        let earliest =
            chunk.take_due(from..to, self.now, |(deadline, value)| _ = due.insert(deadline, value, |_, _| ()));
        self.len -= (before - chunk.len) as usize;
        if to == chunk.slots.len() && chunk.len < chunk.upkeep_below {
            // The values that this moves were read, so the visit goes on.
            self.keep_up(list, position);
            self.visit = next;
        }
        self.bounds.lower(list as usize, earliest);
        1 + to.saturating_sub(from)
    }
}

impl<V, P: Tracker<V>> RawWheel<V> for RawHashed<V, P> {
    type Tracker = P;

    #[inline]
    fn insert(&mut self, deadline: u64, value: V) {
        if deadline <= self.now {
            self.len += 1;
            let placed = |value: &V, position| self.tracker.moved(value, Location::new(OVERDUE, position));
            self.overdue.slots.insert(deadline, value, placed);
            return;
        }
        let lists = self.lists.len();
        if lists <= self.len / VALUES_PER_LIST && lists <= self.mask as usize {
            self.grow();
        }
        self.len += 1;
        self.insert_into(self.list_of(deadline), deadline, value);
    }

    #[inline]
    fn remove(&mut self, location: Location, wanted: impl Fn(&V) -> bool) -> Option<V> {
        let (list, position) = (location.bucket, location.position);
        let List { slots, is_stale } = list_mut(&mut self.lists, &mut self.overdue, list)?;
        let (chunk, at) = slots.chunk_mut(position as usize)?;
        let (deadline, value) = chunk.remove(at, wanted)?;
        let needs_upkeep = chunk.len < chunk.upkeep_below;
        let needs_reread = if *is_stale { needs_upkeep } else { self.bounds.get(list as usize) == deadline };
        self.len -= 1;
        if needs_upkeep {
            self.keep_up(list, position);
        }
        if needs_reread {
            self.reread(list);
        }
        if self.is_sparse() {
            self.merge_last();
        }
        Some(value)
    }

    fn fast_forward(&mut self, now: u64) {
        debug_assert!(self.len == 0);
        self.now = self.now.max(now);
    }

    fn get(&self, location: Location) -> Option<(u64, &V)> {
        let list = location.bucket;
        let List { slots, .. } = if list == OVERDUE { &self.overdue } else { self.lists.get(list as usize)? };
        slots.value(location.position)
    }

    fn take_overdue(&mut self, due: &mut Slots<V>) {
        self.len -= self.overdue.slots.values();
        self.discarded.push_bucket(self.overdue.slots.take(due));
    }

    fn take_next(&mut self, now: u64, due: &mut Slots<V>) -> bool {
        // The clock moves at once, so that each list is read once, however many of its rounds are
        // due.
        self.now = self.now.max(now);
        let mut cost = 0;
        while cost < STEP {
            let Some(visit) = self.visit.or_else(|| self.begin_visit()) else { break };
            cost += self.read(visit, due);
        }
        while cost < STEP && self.is_sparse() {
            cost += self.merge_last();
        }
        cost > 0
    }

    fn has_upkeep(&self) -> bool {
        self.visit.is_some() || self.to_visit().is_some() || self.is_sparse()
    }

    #[inline]
    fn discarded(&mut self) -> &mut Discarded<V> {
        &mut self.discarded
    }

    fn earliest(&self) -> Option<u64> {
        let earliest = || match self.visit {
            Some((_, bound)) => bound.min(self.bounds.earliest()),
            None => self.bounds.earliest(),
        };
        (self.len > self.overdue.slots.values()).then(earliest)
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
        (self.bounds, self.visit, self.len) = (Bounds::default(), None, 0);
        let overdue = mem::take(&mut self.overdue.slots);
        let lists = mem::take(&mut self.lists).into_iter().map(|list| list.slots);
        [overdue].into_iter().chain(lists).flat_map(Slots::into_iter)
    }

    fn tracker(&self) -> &P {
        &self.tracker
    }

    fn tracker_mut(&mut self) -> &mut P {
        &mut self.tracker
    }
}

#[cfg(test)]
mod tests;
