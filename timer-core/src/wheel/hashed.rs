//! The hashed wheel: scheme 6 of Varghese & Lauck (1987), as in Netty.
//!
//! The wheel is one ring of lists. A deadline belongs to the list of its low bits, whatever its
//! round. Values of later rounds stay in their list until their round comes, so nothing cascades.
//!
//! A list is visited only when the earliest of its deadlines is due, and then it is read once. The
//! original visits every list at every tick and looks at all values in it. Here a tree of minima
//! ([`bounds`]) finds the next list, so a jump of any length costs only the values that are due.
//! The cost that remains is that of a list shared by many rounds, because each visit reads all of
//! the list.
//!
//! *The ring has as many lists as there are values for them*, up to the number that was asked for.
//! It grows and shrinks by one list at a time (linear hashing), with one or a few operations. A
//! list is split or merged by moving its nodes. The nodes of a long list stay where they are. That
//! is harmless, because no operation depends on the list in which a value is. A removal needs only
//! the node, and the bound of a list covers all its values.
//!
//! *Stale bounds.* A removal leaves the bound of a long list unchanged, so the bound may be too
//! low. When nothing is due, the wheel reads the first list again if its bound is stale, before the
//! owner goes to sleep. So the owner wakes up for a value that is gone at most once.
//!
//! This module knows no clocks, keys or locks, and does no work per tick.

use super::bucket::{Bucket, OVERDUE};
use super::chunks::Chunks;
use super::location::{Location, Tracker};
use super::raw::RawWheel;
use super::slots::{Entry, Slots};
use bounds::Bounds;
use lists::{Lists, Node};

mod bounds;
mod lists;

/// The largest number of lists.
const MAX_LISTS: usize = 1 << 30;

/// A ring has at least one list for so many values, unless it has all lists.
const VALUES_PER_LIST: usize = 2;

/// The number of values that a step reads.
const STEP: usize = if cfg!(test) { 4 } else { 128 };

/// A list of at most this many values is read again after a removal or split.
const MAX_REREAD: usize = 16;

/// The hashed wheel without keys.
pub(crate) struct RawHashed<V, P> {
    now: u64,
    len: usize,
    /// The number of lists that was asked for, less one.
    mask: u32,
    lists: Lists<V>,
    bounds: Bounds,
    /// Whether the bound of a list may be too low.
    stale: Chunks<bool>,
    visit: Option<Visit>,
    /// Values that were due when they were inserted.
    overdue: Bucket<V>,
    tracker: P,
}

/// The reading of a list, which may take several steps.
struct Visit {
    list: u32,
    /// The next node to read.
    node: u32,
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
        let (lists, bounds, stale) = (Lists::new(), Bounds::new(), Chunks::new());
        RawHashed { now: 0, len: 0, mask, lists, bounds, stale, visit: None, overdue: Bucket::new(), tracker }
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

    /// Returns the list that a list was split from.
    fn sibling(list: u32) -> u32 {
        list.checked_ilog2().map_or(0, |bit| list ^ 1 << bit)
    }

    /// Adds a list, and splits another one if it is short. The values of a long list stay in order
    /// where they are.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let new = self.lists.len() as u32;
        self.lists.push_list();
        self.bounds.push();
        self.stale.push(false);
        let from = Self::sibling(new);
        if new == 0 || !self.reread(from) {
            return;
        }
        let mut at = self.lists.first(from);
        while let Some(&Node { deadline, next, .. }) = self.lists.node(at) {
            if self.list_of(deadline) == new {
                self.lists.move_to(new, at);
                self.bounds.lower(new as usize, deadline);
            }
            at = next;
        }
        self.reread(from);
    }

    /// Makes the bound of a list exact if the list is short, and marks it as stale if not. Returns
    /// `true` if the list is short.
    fn reread(&mut self, list: u32) -> bool {
        let (mut earliest, mut at) = (u64::MAX, self.lists.first(list));
        for _ in 0..MAX_REREAD {
            let Some(node) = self.lists.node(at) else { break };
            earliest = earliest.min(node.deadline);
            at = node.next;
        }
        let is_short = self.lists.node(at).is_none();
        if is_short {
            self.bounds.set(list as usize, earliest);
        }
        self.set_stale(list, !is_short);
        is_short
    }

    fn set_stale(&mut self, list: u32, is_stale: bool) {
        if let Some(stale) = self.stale.get_mut(list as usize) {
            *stale = is_stale;
        }
    }

    fn is_stale(&self, list: usize) -> bool {
        self.stale.get(list) == Some(&true)
    }

    /// Returns the list with the earliest bound.
    fn first(&self) -> u32 {
        if self.bounds.earliest() < u64::MAX {
            return self.bounds.first() as u32;
        }
        // Empty lists have the same bound as those whose values are all at the last tick.
        (0..self.lists.len() as u32).find(|list| !self.lists.is_empty(*list)).unwrap_or(0)
    }

    /// Gives back memory after some values have left.
    fn shrink(&mut self, removed: usize) {
        for _ in 0..4 * removed {
            let Some((from, to)) = self.lists.compact() else { continue };
            if let Some(value) = self.lists.node(to).and_then(|node| node.value.as_ref()) {
                self.tracker.moved(value, Location::new(0, to));
            }
            if let Some(visit) = self.visit.as_mut().filter(|visit| visit.node == from) {
                visit.node = to;
            }
        }
        for _ in 0..4 * removed {
            if self.visit.is_some() || self.lists.len() <= self.lists.values().max(1) {
                return;
            }
            self.merge_last();
        }
    }

    /// Moves values of the last list to the list that it was split from, and removes the list if it
    /// is empty.
    fn merge_last(&mut self) {
        let last = self.lists.len() as u32 - 1;
        for _ in 0..MAX_REREAD {
            let node = self.lists.first(last);
            let Some(deadline) = self.lists.node(node).map(|node| node.deadline) else { break };
            let to = Self::sibling(last);
            self.lists.move_to(to, node);
            self.bounds.lower(to as usize, deadline);
        }
        if self.lists.is_empty(last) {
            self.bounds.set(last as usize, u64::MAX);
            self.lists.pop_list();
            self.bounds.pop();
            self.stale.pop();
            self.stale.shrink();
        }
    }

    /// Reads the next value of the visited list. The visit ends if there is none.
    fn read(&mut self, due: &mut Slots<V>) {
        let Some(visit) = &mut self.visit else { return };
        let (list, at) = (visit.list, visit.node);
        let Some(node) = self.lists.node_mut(at) else {
            let (earliest, is_stale) = (visit.earliest, visit.is_stale);
            self.visit = None;
            self.bounds.set(list as usize, if self.lists.is_empty(list) { u64::MAX } else { earliest });
            self.set_stale(list, is_stale && !self.lists.is_empty(list));
            return;
        };
        visit.node = node.next;
        if node.deadline > self.now {
            visit.earliest = visit.earliest.min(node.deadline);
        } else if let Some(value) = node.value.take() {
            due.insert(node.deadline, value, |_, _| ());
            self.lists.remove(at);
            self.len -= 1;
        }
    }
}

impl<V, P: Tracker<V>> RawWheel<V> for RawHashed<V, P> {
    type Tracker = P;

    fn insert(&mut self, deadline: u64, value: V) {
        self.len += 1;
        if deadline <= self.now {
            self.overdue.push(OVERDUE, deadline, value, |value, location| self.tracker.moved(value, location));
            return;
        }
        let lists = self.lists.len();
        if self.visit.is_none() && lists <= self.lists.values() / VALUES_PER_LIST && lists <= self.mask as usize {
            self.grow();
        }
        let list = self.list_of(deadline);
        self.bounds.lower(list as usize, deadline);
        if let Some(visit) = self.visit.as_mut().filter(|visit| visit.list == list) {
            visit.earliest = visit.earliest.min(deadline);
        }
        let node = self.lists.insert(list, deadline, value);
        if let Some(value) = self.lists.node(node).and_then(|node| node.value.as_ref()) {
            self.tracker.moved(value, Location::new(0, node));
        }
    }

    fn remove(&mut self, location: Location, wanted: impl Fn(&V) -> bool) -> Option<V> {
        let at = location.position();
        if location.bucket() == OVERDUE {
            let (value, _discarded) = self.overdue.remove_and_keep_up(OVERDUE, at, wanted, &mut self.tracker)?;
            self.len -= 1;
            return Some(value);
        }
        let node = self.lists.node_mut(at).filter(|_| location.bucket() == 0)?;
        let (deadline, next) = (node.deadline, node.next);
        let value = node.value.take_if(|value| wanted(value))?;
        let list = self.lists.list_of_last(at).unwrap_or_else(|| self.list_of(deadline));
        if let Some(visit) = &mut self.visit {
            visit.is_stale |= visit.list == list && visit.earliest == deadline;
            if visit.node == at {
                visit.node = next;
            }
        }
        self.lists.remove(at);
        self.len -= 1;
        let is_sparse = self.len <= MAX_REREAD * self.lists.len();
        let is_bound = self.bounds.get(list as usize) == deadline;
        if self.lists.is_empty(list) || if self.is_stale(list as usize) { is_sparse } else { is_bound } {
            self.reread(list);
        }
        self.shrink(1);
        Some(value)
    }

    fn fast_forward(&mut self, now: u64) {
        debug_assert!(self.len == 0);
        self.now = self.now.max(now);
    }

    fn get(&self, location: Location) -> Option<(u64, &V)> {
        match location.bucket() {
            OVERDUE => self.overdue.get(location.position()),
            0 => {
                let node = self.lists.node(location.position())?;
                node.value.as_ref().map(|value| (node.deadline, value))
            }
            _ => None,
        }
    }

    fn take_overdue(&mut self, due: &mut Slots<V>) {
        self.len -= self.overdue.len();
        self.overdue.take(due);
    }

    fn take_next(&mut self, now: u64, due: &mut Slots<V>) -> bool {
        // The clock moves at once, so that each list is read once, however many of its rounds are
        // due.
        self.now = self.now.max(now);
        let mut budget = STEP;
        while budget > 0 {
            if self.visit.is_none() {
                let is_due = self.earliest().is_some_and(|earliest| earliest <= self.now);
                if !is_due && !self.has_upkeep() {
                    break;
                }
                let list = self.first();
                self.visit = Some(Visit { list, node: self.lists.first(list), earliest: u64::MAX, is_stale: false });
            }
            self.read(due);
            budget -= 1;
        }
        self.shrink(due.len());
        budget < STEP
    }

    fn has_upkeep(&self) -> bool {
        self.visit.is_some() || self.is_stale(self.bounds.first())
    }

    fn earliest(&self) -> Option<u64> {
        (self.lists.values() > 0).then(|| self.bounds.earliest())
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
        let overdue = std::mem::replace(&mut self.overdue, Bucket::new()).into_slots().into_iter();
        out.extend(overdue.filter_map(|(deadline, value)| Some((deadline, value?))));
        out.extend(std::mem::replace(&mut self.lists, Lists::new()).into_entries());
        (self.bounds, self.stale, self.visit, self.len) = (Bounds::new(), Chunks::new(), None, 0);
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
