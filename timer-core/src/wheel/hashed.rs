//! The hashed wheel: scheme 6 of Varghese & Lauck (1987), as in Netty.
//!
//! The wheel is one ring of lists. A deadline belongs to the list of its low bits, whatever its
//! round. Values of later rounds stay in their list until their round comes, so nothing cascades.
//!
//! A list is visited only when the earliest of its deadlines is due, and then it is read once. The
//! original visits every list at every tick and looks at all values in it. Here a tree of minima
//! ([`bounds`]) finds the next list, so a jump of any length costs only the values that are due.
//! The cost that remains is that of a list shared by many deadlines, because each visit reads all
//! of the list.
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

use super::bucket::{Bucket, OVERDUE};
use super::chunks::Chunks;
use super::discarded::{Discarded, Memory};
use super::location::{Location, Tracker};
use super::raw::RawWheel;
use super::slots::{CHUNK, Entry, Slots};
use bounds::Bounds;

mod bounds;

/// The largest number of lists.
const MAX_LISTS: usize = 1 << 30;

/// A ring has at least one list for this many values, unless it has all lists. It has at most one
/// list for each value.
const VALUES_PER_LIST: usize = 32;

/// The number of slots that a step reads.
const STEP: usize = if cfg!(test) { 4 } else { 128 };

/// The number of slots that a removal moves to another list.
const MAX_MERGED: usize = if cfg!(test) { 2 } else { 64 };

/// A list of at most this many slots is read again after its earliest value was removed.
const MAX_REREAD: usize = 64;

/// The hashed wheel without keys.
pub(crate) struct RawHashed<V, P> {
    now: u64,
    len: usize,
    /// The number of lists that was asked for, less one.
    mask: u32,
    lists: Chunks<List<V>>,
    bounds: Bounds,
    visit: Option<Visit>,
    /// Values that were due when they were inserted.
    overdue: Bucket<V>,
    discarded: Discarded<V>,
    tracker: P,
}

/// The values whose deadlines share their low bits.
pub(super) struct List<V> {
    slots: Slots<V>,
    /// Whether the bound may be too low.
    is_stale: bool,
}

/// The reading of a list, which may take several steps.
struct Visit {
    list: u32,
    /// The next slot to read.
    position: usize,
    /// The earliest deadline of the values that were read and remain.
    earliest: u64,
    /// The value with that deadline was removed since.
    is_stale: bool,
}

impl<V, P: Tracker<V>> RawHashed<V, P> {
    /// Creates a wheel of `ticks_per_wheel` lists, which is clamped to 1..=2^30 and rounded up to a
    /// power of two.
    pub(crate) fn new(ticks_per_wheel: usize, tracker: P) -> Self {
        let mask = ticks_per_wheel.clamp(1, MAX_LISTS).next_power_of_two() as u32 - 1;
        let (lists, bounds) = (Chunks::default(), Bounds::default());
        let (overdue, discarded) = (Bucket::new(), Discarded::new());
        RawHashed { now: 0, len: 0, mask, lists, bounds, visit: None, overdue, discarded, tracker }
    }

    pub(crate) fn ticks_per_wheel(&self) -> usize {
        self.mask as usize + 1
    }

    /// Returns the list of a deadline. There must be a list.
    #[inline]
    fn list_of(&self, deadline: u64) -> u32 {
        let lists = self.lists.len();
        let low = deadline as u32 & (lists.next_power_of_two() as u32 - 1);
        if (low as usize) < lists { low } else { low ^ 1 << low.ilog2() }
    }

    /// Adds an empty list.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.lists.push(List { slots: Slots::default(), is_stale: false });
        self.bounds.push();
    }

    /// Inserts a value that is not due into a list, without counting it.
    #[inline(always)]
    fn insert_into(&mut self, list: u32, deadline: u64, value: V) {
        let Some(List { slots, .. }) = self.lists.get_mut(list as usize) else { return };
        slots.insert(deadline, value, |value, position| self.tracker.moved(value, Location::new(list, position)));
        self.bounds.lower(list as usize, deadline);
        if let Some(visit) = self.visit.as_mut().filter(|visit| visit.list == list) {
            visit.earliest = visit.earliest.min(deadline);
        }
    }

    /// Restores the bound on the memory of a list after a removal at `position`. Returns `true` if
    /// values were moved.
    fn keep_up(&mut self, list: u32, position: usize) -> bool {
        let Some(List { slots, .. }) = self.lists.get_mut(list as usize) else { return false };
        let mut has_moved = false;
        let memory = slots.keep_up(position, |value, position| {
            has_moved = true;
            self.tracker.moved(value, Location::new(list, position));
        });
        self.discarded.push_slots(memory);
        if slots.is_short() && slots.open.len == 0 {
            slots.clear();
        }
        has_moved
    }

    /// Makes the bound of a list exact if the list is short, and marks it as stale if not.
    fn reread(&mut self, list: u32) {
        let Some(List { slots, is_stale }) = self.lists.get_mut(list as usize) else { return };
        *is_stale = !slots.is_short() || slots.open.slots.len() > MAX_REREAD;
        if !*is_stale {
            self.bounds.set(list as usize, slots.iter().fold(u64::MAX, |min, (deadline, _)| min.min(deadline)));
        }
    }

    /// Returns the list with the earliest bound.
    fn first(&self) -> u32 {
        if self.bounds.earliest() < u64::MAX {
            return self.bounds.first() as u32;
        }
        // Empty lists have the same bound as those whose values are all at the last tick.
        let has_values = |list: &u32| self.lists.get(*list as usize).is_some_and(|list| !list.slots.is_empty());
        (0..self.lists.len() as u32).find(has_values).unwrap_or(0)
    }

    /// Returns `true` if a visit is unfinished, or if the bound of the first list may be too low.
    fn has_stale_first(&self) -> bool {
        self.visit.is_some() || self.lists.get(self.bounds.first()).is_some_and(|list| list.is_stale)
    }

    /// Returns `true` if the ring should give up a list.
    #[inline]
    fn is_sparse(&self) -> bool {
        self.lists.len() > self.len.max(1) && self.visit.is_none()
    }

    /// Moves some values of the last list to the list whose number differs from its own in the
    /// highest bit, and removes the list if it is empty. Returns the cost, which is at least 1.
    #[cold]
    #[inline(never)]
    fn merge_last(&mut self) -> usize {
        let (last, mut cost) = (self.lists.len() - 1, 1);
        while cost <= MAX_MERGED {
            let Some(List { slots, is_stale }) = self.lists.get_mut(last) else { break };
            *is_stale = true;
            match slots.pop(|memory| self.discarded.push_slots(memory)) {
                Some((deadline, Some(value))) => {
                    self.insert_into(last as u32 ^ 1 << last.ilog2(), deadline, value);
                }
                Some(_) => {}
                None => break,
            }
            cost += 1;
        }
        if self.lists.get(last).is_some_and(|list| list.slots.is_empty()) {
            self.bounds.set(last, u64::MAX);
            self.bounds.pop(|bounds| self.discarded.push(Memory::Bounds(bounds)));
            let list = self.lists.pop(|lists| self.discarded.push(Memory::Lists(lists)));
            list.into_iter().for_each(|list| self.discarded.push_bucket(list.slots));
        }
        cost
    }

    /// Reads at most `budget` slots of the visited list, or ends the visit if all were read.
    /// Returns the cost, which is at least 1.
    fn read(&mut self, budget: usize, due: &mut Slots<V>) -> usize {
        let Some(visit) = &mut self.visit else { return 1 };
        let (list, position) = (visit.list, visit.position);
        let Some(List { slots, is_stale }) = self.lists.get_mut(list as usize) else { return 1 };
        if position >= slots.len() {
            *is_stale = visit.is_stale && !slots.is_empty();
            self.bounds.set(list as usize, if slots.is_empty() { u64::MAX } else { visit.earliest });
            self.visit = None;
            return 1;
        }
        visit.position = (position / CHUNK + 1) * CHUNK;
        // The chunk is a gap, or it has slots.
        let Some((chunk, from)) = slots.chunk_mut(position) else { return 1 };
        let (len, removed_from) = (chunk.slots.len(), chunk.len);
        let to = len.min(from + budget);
        for at in from..to {
            let (deadline, value) = &chunk.slots[at];
            if value.is_none() {
                continue;
            }
            if *deadline > self.now {
                visit.earliest = visit.earliest.min(*deadline);
            } else if let Some((deadline, value)) = chunk.remove(at, |_| true) {
                due.insert(deadline, value, |_, _| ());
            }
        }
        self.len -= (removed_from - chunk.len) as usize;
        if to < len {
            visit.position = position + budget;
        } else if chunk.len < chunk.upkeep_below {
            // The values that this moves were read.
            self.keep_up(list, position);
        }
        1 + to.saturating_sub(from)
    }
}

impl<V, P: Tracker<V>> RawWheel<V> for RawHashed<V, P> {
    type Tracker = P;

    #[inline]
    fn insert(&mut self, deadline: u64, value: V) {
        if deadline <= self.now {
            self.len += 1;
            self.overdue.push(OVERDUE, deadline, value, |value, location| self.tracker.moved(value, location));
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
        if list == OVERDUE {
            let (value, memory) = self.overdue.remove_and_keep_up(list, position, wanted, &mut self.tracker)?;
            self.discarded.push_slots(memory);
            self.len -= 1;
            return Some(value);
        }
        let List { slots, is_stale } = self.lists.get_mut(list as usize)?;
        let (chunk, at) = slots.chunk_mut(position as usize)?;
        let (deadline, value) = chunk.remove(at, wanted)?;
        let (needs_upkeep, is_stale) = (chunk.len < chunk.upkeep_below, *is_stale);
        self.len -= 1;
        let has_moved = needs_upkeep && self.keep_up(list, position as usize);
        if let Some(visit) = self.visit.as_mut().filter(|visit| visit.list == list) {
            visit.is_stale |= visit.earliest == deadline;
            if has_moved {
                visit.position = 0;
            }
        }
        if if is_stale { needs_upkeep } else { self.bounds.get(list as usize) == deadline } {
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
        let slots = if list == OVERDUE { &self.overdue.slots } else { &self.lists.get(list as usize)?.slots };
        slots.value(location.position)
    }

    fn take_overdue(&mut self, due: &mut Slots<V>) {
        self.len -= self.overdue.len();
        self.discarded.push_bucket(self.overdue.take(due));
    }

    fn take_next(&mut self, now: u64, due: &mut Slots<V>) -> bool {
        // The clock moves at once, so that each list is read once, however many of its rounds are
        // due.
        self.now = self.now.max(now);
        let mut cost = 0;
        while cost < STEP {
            if self.visit.is_none() {
                let is_due = self.earliest().is_some_and(|earliest| earliest <= self.now);
                if !is_due && !self.has_stale_first() {
                    break;
                }
                self.visit = Some(Visit { list: self.first(), position: 0, earliest: u64::MAX, is_stale: false });
            }
            cost += self.read(STEP - cost, due);
        }
        while cost < STEP && self.is_sparse() {
            cost += self.merge_last();
        }
        cost > 0
    }

    fn has_upkeep(&self) -> bool {
        self.has_stale_first() || self.is_sparse()
    }

    #[inline]
    fn discarded(&mut self) -> &mut Discarded<V> {
        &mut self.discarded
    }

    fn earliest(&self) -> Option<u64> {
        (self.len > self.overdue.len()).then(|| self.bounds.earliest())
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

    fn drain(&mut self) -> impl Iterator<Item = Entry<V>> {
        (self.bounds, self.visit, self.len) = (Bounds::default(), None, 0);
        let overdue = std::mem::replace(&mut self.overdue, Bucket::new()).slots;
        let lists = std::mem::take(&mut self.lists).into_iter().map(|list| list.slots);
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
