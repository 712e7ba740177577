//! The items of a delay queue, which leave a wheel one at a time in the order of their deadlines.
//!
//! The public keyed wheels hand out all due values in one call, and a key becomes invalid as its
//! value leaves the wheel. A queue that is polled takes one item per call instead. The other
//! due items wait in a list, and their keys stay valid until they are handed out.
//!
//! The items stay in the table of keys, because an operation by key fetches a row of that table
//! from memory in any case. A large wheel is rarely in the cache, so its values are short and are
//! rarely read:
//!
//! - A move to a later deadline changes the row and not the wheel. When the wheel hands out the
//!   value, the queue reads the later deadline in the row and links the value again. So the tick of
//!   a value is at most that of its item.
//! - Any other move and a removal write to the wheel without reading it.

use super::Expired;
use crate::clock;
use crate::deadline::{Deadline, IMMEDIATE, Nanos};
use crate::handle::Timer;
use crate::resolution::Resolution;
use crate::wheel::{Bucket, Item, Key, Location, RawHierarchical, RawWheel, Slab, Slot, Tracker};
use std::cmp::Reverse;
use std::num::NonZeroU64;
use std::time::Instant;

/// The bucket number in the location of an item that is in the list of due items. The position in
/// that location is the index in the list. No bucket of a level has this number or a higher one.
const DUE_LIST: u32 = u32::MAX - 3;

/// The list keeps room for this many items.
const MAX_KEPT_CAPACITY: usize = 256;

/// A value and its deadline, which decides the order of the items. It also decides the tick of the
/// item, unless it had passed when it was set.
struct Pending<T> {
    /// The bits of the deadline, plus 1. Zero is not a value, so an `Option` takes no additional
    /// space.
    bits_plus_one: NonZeroU64,
    value: T,
}

impl<T> Pending<T> {
    /// Returns the bits of the deadline.
    #[inline]
    fn bits(&self) -> u64 {
        self.bits_plus_one.get() - 1
    }

    fn expired(self, key: Key) -> Expired<T> {
        Expired { key, deadline: instant(self.bits()), value: self.value }
    }
}

/// The number of the insertion that has put a value into the wheel, which decides the order of
/// equal deadlines. It wraps around. The value has room for it, and the row has not.
type Order = u32;

/// Items with deadlines on the clock of a timer, in a wheel that counts the ticks of the timer.
pub(super) struct Items<T> {
    raw: RawHierarchical<Item<Order>, Slab<Option<Pending<T>>>>,
    /// The bits of the deadlines of items that are due, the first one last. Removed items leave a
    /// vacant slot.
    due: Vec<Slot<Item<Order>>>,
    /// The values of one step of the wheel. It is empty between calls.
    step: Bucket<Item<Order>>,
    /// The number of insertions into the wheel so far.
    insertions: Order,
    /// The number of items in `due`.
    waiting: usize,
    resolution: Resolution,
    timer: Timer,
}

impl<T> Items<T> {
    pub(super) fn new(timer: &Timer) -> Self {
        let (timer, resolution) = (timer.clone(), timer.engine.context.resolution);
        let (raw, due, step) = (RawHierarchical::new(Slab::new()), Vec::new(), Bucket::default());
        Self { timer, resolution, raw, due, step, insertions: 0, waiting: 0 }
    }

    /// Reads the clock.
    #[inline]
    pub(super) fn now(&self) -> Nanos {
        self.timer.engine.context.now()
    }

    /// Inserts an item and returns its key and its tick.
    #[inline]
    pub(super) fn insert(&mut self, value: T, deadline: Deadline, now: Nanos) -> (Key, u64) {
        let bits_plus_one = NonZeroU64::MIN.saturating_add(deadline.to_bits());
        let key = self.raw.base_mut().tracker.reserve(Some(Pending { bits_plus_one, value }));
        let tick = self.tick(deadline, now);
        self.link(tick, key, now);
        (key, tick)
    }

    /// Returns the tick of an item. If its deadline has passed, that is the tick of items with the
    /// same deadline that were inserted before, unless these have been collected or the tick has
    /// not ended.
    #[inline]
    fn tick(&self, deadline: Deadline, now: Nanos) -> u64 {
        match self.resolution.tick_from(deadline, now) {
            IMMEDIATE => {
                let tick = self.resolution.tick_of(deadline);
                if tick > self.raw.base().now && tick <= self.resolution.tick_at(now) { tick } else { IMMEDIATE }
            }
            tick => tick,
        }
    }

    #[inline]
    fn link(&mut self, tick: u64, key: Key, now: Nanos) {
        if self.raw.base().len == 0 {
            self.raw.fast_forward(self.resolution.tick_at(now));
        }
        self.insertions = self.insertions.wrapping_add(1);
        self.raw.insert(tick, key.item(self.insertions));
    }

    /// Removes an item. Returns `None` if it has been handed out or removed.
    #[inline]
    pub(super) fn remove(&mut self, key: Key) -> Option<Expired<T>> {
        let location = self.raw.base().tracker.find(key)?.location;
        self.unlink(location);
        let removed = self.raw.base_mut().tracker.release(key.index());
        self.forget_if_empty();
        Some(removed?.expired(key))
    }

    /// Changes the deadline of an item and returns its new tick. The key stays valid. Returns
    /// `None` if the item has been handed out or removed.
    pub(super) fn reset(&mut self, key: Key, deadline: Deadline, now: Nanos) -> Option<u64> {
        let (tick, bits) = (self.tick(deadline, now), deadline.to_bits());
        let row = self.raw.base_mut().tracker.find_mut(key)?;
        let (location, pending) = (row.location, row.data.as_mut()?);
        let is_later = pending.bits() <= bits;
        pending.bits_plus_one = NonZeroU64::MIN.saturating_add(bits);
        if !is_later || tick <= self.resolution.tick_at(now) || location.bucket >= DUE_LIST {
            self.unlink(location);
            self.link(tick, key, now);
        }
        Some(tick)
    }

    pub(super) fn get(&self, key: Key) -> Option<&T> {
        self.raw.base().tracker.find(key)?.data.as_ref().map(|pending| &pending.value)
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.raw.base_mut().tracker.find_mut(key)?.data.as_mut().map(|pending| &mut pending.value)
    }

    pub(super) fn deadline(&self, key: Key) -> Option<Instant> {
        self.raw.base().tracker.find(key)?.data.as_ref().map(|pending| instant(pending.bits()))
    }

    /// Takes the first of the collected items.
    #[inline]
    fn pop(&mut self) -> Option<Expired<T>> {
        let item = loop {
            if let (_, Some(item)) = self.due.pop()? {
                break item;
            }
        };
        self.waiting -= 1;
        self.trim_due();
        let key = self.raw.base().tracker.key(item.index());
        let taken = self.raw.base_mut().tracker.release(item.index())?;
        self.forget_if_empty();
        Some(taken.expired(key))
    }

    /// Takes an item that is due. Reads the clock only if no item of the current tick is left, and
    /// returns the reading if nothing is due.
    #[inline]
    pub(super) fn take_due(&mut self) -> Result<Expired<T>, Nanos> {
        loop {
            if let Some(expired) = self.pop() {
                return Ok(expired);
            }
            let now = self.now();
            if !self.collect(self.resolution.tick_at(now)) {
                return Err(now);
            }
        }
    }

    /// Moves the clock of the wheel towards `now` until items are due, and puts these into the
    /// list. The list must be empty. Returns `false` if nothing is due by `now`.
    fn collect(&mut self, now: u64) -> bool {
        debug_assert!(self.waiting == 0);
        self.due.clear();
        self.due.shrink_to(MAX_KEPT_CAPACITY);
        self.raw.base_mut().take_overdue(&mut self.step);
        self.append_step(true);
        // Tick by tick, so that ticks are handed out in their order. The first tick goes along with
        // the overdue items, which would otherwise hold it back for as long as others follow.
        let overdue = self.due.len();
        while self.due.len() == overdue {
            match self.raw.earliest() {
                Some(next) if next <= now => self.take_tick(next),
                // No tick is due. The clock goes on, so that later insertions are near it.
                _ => {
                    while self.raw.take_next(now, &mut self.step) {
                        drop(self.raw.base_mut().take_discarded());
                    }
                    drop(self.raw.base_mut().take_discarded());
                    break;
                }
            }
        }
        if self.due.is_empty() {
            return false;
        }
        // The first one is the last of the list, so the keys are in descending order.
        let insertions = self.insertions;
        self.due.sort_unstable_by_key(|slot| (Reverse(slot.0), slot.1.map(|item| insertions.wrapping_sub(item.value))));
        self.waiting = self.due.len();
        for (position, item) in self.due.iter().enumerate().filter_map(|(position, slot)| Some((position, slot.1?))) {
            self.raw.base_mut().tracker.moved(&item, Location::new(DUE_LIST, position as u32));
        }
        true
    }

    /// Moves the clock of the wheel to a tick and takes all of its due values.
    ///
    /// It takes all of them, because a value that stays in a cascade would become overdue when a
    /// removal empties its chunk, although its row may have been moved to a later deadline.
    fn take_tick(&mut self, tick: u64) {
        while self.raw.earliest().is_some_and(|next| next <= tick) {
            self.raw.take_next(tick, &mut self.step);
            self.append_step(false);
        }
    }

    /// Moves the items of a step to the list. Relinks items that were moved to a later deadline,
    /// unless the values of the step were due when they were linked.
    fn append_step(&mut self, are_overdue: bool) {
        drop(self.raw.base_mut().take_discarded());
        let Self { raw, step, due, resolution, .. } = self;
        step.drain(|chunk| {
            for (tick, item) in chunk {
                let Some(item) = *item else { continue };
                let bits = bits(&raw.base().tracker, item);
                let later = resolution.tick_of(Deadline::from_bits(bits));
                if later > *tick && !are_overdue {
                    raw.insert(later, item);
                } else {
                    due.push((bits, Some(item)));
                }
            }
        });
    }

    /// Returns the tick at which something may be due, or an earlier one. Returns 0 if something is
    /// known to be due, and `None` if there is no item.
    #[inline]
    pub(super) fn next(&self) -> Option<u64> {
        if self.waiting > 0 || self.raw.base().has_overdue() { Some(0) } else { self.raw.earliest() }
    }

    /// Returns the beginning of a tick.
    pub(super) fn start_of(&self, tick: u64) -> Nanos {
        self.resolution.start_of(tick)
    }

    /// Returns all items in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        let table = &self.raw.base().tracker;
        let rows = table.rows.iter().enumerate();
        rows.filter_map(|(index, row)| Some((table.key(index), &row.data.as_ref()?.value)))
    }

    /// Returns the key of the item that is handed out next. Unless it is in the list, reads all
    /// overdue items, the first bucket, and further buckets if items of the first one were moved to
    /// later.
    pub(super) fn peek(&self) -> Option<Key> {
        let mut first = self.due.iter().rev().find_map(|slot| Some((slot.0, slot.1?)));
        if first.is_none() {
            // Items of a tick that is not due come out after the overdue ones.
            let last = if self.raw.base().has_overdue() { self.resolution.tick_at(self.now()) } else { u64::MAX };
            self.raw.scan_first(|item| {
                let found = (bits(&self.raw.base().tracker, *item), *item);
                let age = |item: Item<Order>| self.insertions.wrapping_sub(item.value);
                let is_first =
                    |first: &(u64, Item<Order>)| (first.0, Reverse(age(first.1))) <= (found.0, Reverse(age(found.1)));
                let least = first.filter(is_first).unwrap_or(found);
                first = Some(least);
                self.resolution.tick_of(Deadline::from_bits(least.0)).min(last)
            });
        }
        Some(self.raw.base().tracker.key(first?.1.index()))
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.raw.base().len + self.waiting
    }

    /// Removes all items, in no particular order.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Expired<T>> + use<T> {
        drop(self.raw.drain());
        (self.due, self.waiting) = (Vec::new(), 0);
        let drained = self.raw.base_mut().tracker.drain();
        self.forget_if_empty();
        drained.into_iter().filter_map(|(key, pending)| Some(pending?.expired(key)))
    }

    /// Makes room for `additional` items.
    pub(super) fn reserve(&mut self, additional: usize) {
        let len = self.len();
        let rows = &mut self.raw.base_mut().tracker.rows;
        rows.reserve(len.saturating_add(additional).saturating_sub(rows.len()));
    }

    /// Gives back the memory of vacant keys and of the list.
    pub(super) fn shrink_to_fit(&mut self) {
        self.due.shrink_to_fit();
        self.raw.base_mut().tracker.shrink();
    }

    /// Removes the value of an item whose key is valid.
    #[inline]
    fn unlink(&mut self, location: Location) {
        if location.bucket == DUE_LIST {
            self.due[location.position as usize].1 = None;
            self.waiting -= 1;
            self.trim_due();
        } else {
            self.raw.vacate(location);
            if !self.raw.base_mut().discarded.is_empty() {
                drop(self.raw.base_mut().take_discarded());
            }
        }
    }

    /// Removes the vacant slots at the end of the list, so that the first item is the last one.
    #[inline]
    fn trim_due(&mut self) {
        while self.due.last().is_some_and(|slot| slot.1.is_none()) {
            self.due.pop();
        }
    }

    #[inline]
    fn forget_if_empty(&mut self) {
        if self.len() == 0 && self.raw.base().tracker.is_large() {
            self.forget();
        }
    }

    /// Gives back the memory of an empty wheel that was large. A small one keeps its tables for the
    /// next item.
    #[cold]
    fn forget(&mut self) {
        drop(self.raw.drain());
        self.raw.base_mut().tracker.reset();
        self.due = Vec::new();
    }
}

/// Returns the bits of the deadline of the item that a row has.
#[inline]
fn bits<T>(slab: &Slab<Option<Pending<T>>>, item: Item<Order>) -> u64 {
    slab.rows[item.index()].data.as_ref().map_or(0, Pending::bits)
}

/// Returns the instant of a deadline with these bits.
fn instant(bits: u64) -> Instant {
    clock::instant(Deadline::from_bits(bits).nanos())
}

#[cfg(all(test, not(timer_loom)))]
mod tests;
