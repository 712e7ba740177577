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
use super::due::DueList;
use crate::clock;
use crate::deadline::{Deadline, IMMEDIATE, Nanos};
use crate::handle::Timer;
use crate::resolution::Resolution;
use crate::wheel::{Bucket, Item, Key, Location, RawHierarchical, RawWheel, Slab};
use std::cmp::Reverse;
use std::num::NonZeroU64;
use std::time::Instant;

mod collection;

/// The bucket number in the location of an item that is in the list of due items. The position in
/// that location is the number of its insertion. No bucket of a level has this number or a higher
/// one.
const DUE_LIST: u32 = Location::new(u32::MAX - 3, 0).number();

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

/// The next part of a collection.
enum Collection {
    /// Nothing to collect until `take_due` finds no item in the list.
    Complete,
    /// The values of the wheel up to a tick.
    Buckets(u64),
    /// The values that were due when they were linked. They come last, because a removal from a
    /// cascade adds values of the tick to them.
    Overdue,
}

/// Items with deadlines on the clock of a timer, in a wheel that counts the ticks of the timer.
pub(super) struct Items<T> {
    raw: RawHierarchical<Item<Order>, Slab<Option<Pending<T>>>>,
    collection: Collection,
    due: DueList,
    /// The values that were taken from the wheel and are not in `due` yet.
    step: Bucket<Item<Order>>,
    /// The first chunk of these values.
    next_chunk: usize,
    /// The number of insertions into the wheel so far.
    insertions: u64,
    /// The number of items in `due` that are still in the queue.
    waiting: usize,
    /// The number of items in `due` that have been removed from the queue.
    removed: usize,
    max_steps: usize,
    resolution: Resolution,
    timer: Timer,
}

impl<T> Items<T> {
    /// Creates a queue whose calls take at most `max_steps` steps at a time, each of which reads a
    /// chunk of values. A queue that is not shared passes `usize::MAX`.
    pub(super) fn new(timer: &Timer, max_steps: usize) -> Self {
        Self {
            raw: RawHierarchical::new(Slab::new()),
            collection: Collection::Complete,
            due: DueList::default(),
            step: Bucket::default(),
            next_chunk: 0,
            insertions: 0,
            waiting: 0,
            removed: 0,
            max_steps,
            resolution: timer.engine.context.resolution,
            timer: timer.clone(),
        }
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
        self.insertions += 1;
        self.raw.insert(tick, key.item(self.insertions as Order));
    }

    /// Removes an item. Returns `None` if it has been handed out or removed.
    #[inline]
    pub(super) fn remove(&mut self, key: Key) -> Option<Expired<T>> {
        let location = self.raw.base().tracker.find(key)?.location;
        self.unlink(key, location);
        let removed = self.raw.base_mut().tracker.release(key.index());
        self.forget_if_empty();
        Some(removed?.expired(key))
    }

    /// Changes the deadline of an item and returns its new tick. The key stays valid. Returns
    /// `None` if the item has been handed out or removed.
    pub(super) fn reset(&mut self, key: Key, deadline: Deadline, now: Nanos) -> Option<u64> {
        let tick = self.tick(deadline, now);
        let bits = deadline.to_bits();
        let row = self.raw.base_mut().tracker.find_mut(key)?;
        let location = row.location;
        let pending = row.data.as_mut()?;
        let is_later = pending.bits() <= bits;
        pending.bits_plus_one = NonZeroU64::MIN.saturating_add(bits);
        if !is_later || tick <= self.resolution.tick_at(now) || location.number() >= DUE_LIST {
            self.unlink(key, location);
            self.link(tick, key, now);
        }
        Some(tick)
    }

    pub(super) fn get(&self, key: Key) -> Option<&T> {
        self.get_with_deadline(key).map(|(value, _)| value)
    }

    pub(super) fn get_with_deadline(&self, key: Key) -> Option<(&T, Deadline)> {
        let pending = self.raw.base().tracker.find(key)?.data.as_ref()?;
        Some((&pending.value, Deadline::from_bits(pending.bits())))
    }

    /// Returns the item in a row of the table and its deadline, or `None` if the row is vacant.
    #[inline]
    pub(super) fn get_row(&self, row: usize) -> Option<(&T, Deadline)> {
        let pending = self.raw.base().tracker.rows.get(row)?.data.as_ref()?;
        Some((&pending.value, Deadline::from_bits(pending.bits())))
    }

    /// Returns the key of the item in a row.
    #[inline]
    pub(super) fn key(&self, row: usize) -> Key {
        self.raw.base().tracker.key(row)
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.raw.base_mut().tracker.find_mut(key)?.data.as_mut().map(|pending| &mut pending.value)
    }

    pub(super) fn deadline(&self, key: Key) -> Option<Instant> {
        self.get_with_deadline(key).map(|(_, deadline)| clock::instant(deadline.nanos()))
    }

    /// Takes the first of the collected items. The list must have one.
    #[inline]
    fn pop(&mut self) -> Option<Expired<T>> {
        let index = self.due.pop()?.index;
        self.waiting -= 1;
        let key = self.raw.base().tracker.key(index);
        let taken = self.raw.base_mut().tracker.release(index)?;
        self.trim_due();
        self.forget_if_empty();
        Some(taken.expired(key))
    }

    /// Takes an item that is due. Reads the clock only if no item of the current tick is left, and
    /// returns the reading if nothing is due.
    #[inline]
    pub(super) fn take_due(&mut self) -> Result<Expired<T>, Nanos> {
        loop {
            if let Some(taken) = self.try_take_due() {
                return taken;
            }
        }
    }

    /// The same as [`take_due`](Self::take_due), but returns `None` if more steps are needed.
    #[inline]
    pub(super) fn try_take_due(&mut self) -> Option<Result<Expired<T>, Nanos>> {
        if self.waiting == 0 || self.is_collecting() {
            let now = self.now();
            if !self.collect(self.resolution.tick_at(now))? {
                return Some(Err(now));
            }
        }
        self.trim_due().then(|| self.pop()).flatten().map(Ok)
    }

    /// Returns the tick at which something may be due, or an earlier one. Returns 0 if something is
    /// known to be due, and `None` if there is no item.
    #[inline]
    pub(super) fn next(&self) -> Option<u64> {
        let is_due = self.waiting > 0 || self.is_collecting() || self.raw.base().has_overdue();
        if is_due { Some(0) } else { self.raw.earliest() }
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
    /// later. No collection may be in progress.
    pub(super) fn peek(&self) -> Option<Key> {
        let base = self.raw.base();
        if let Some(first) = self.due.first() {
            return Some(base.tracker.key(first.index));
        }
        // Items of a tick that is not due come out after the overdue ones.
        let last = if base.has_overdue() { self.resolution.tick_at(self.now()) } else { u64::MAX };
        let mut first = None;
        self.raw.scan_first(|item| {
            let age = (self.insertions as Order).wrapping_sub(item.value);
            let found = (bits(&base.tracker, *item), Reverse(age), item.index());
            let least = first.map_or(found, |first| found.min(first));
            first = Some(least);
            self.resolution.tick_of(Deadline::from_bits(least.0)).min(last)
        });
        Some(base.tracker.key(first?.2))
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.raw.base().len + self.step.values as usize + self.waiting
    }

    /// Removes all items, in no particular order.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Expired<T>> + use<T> {
        drop(self.raw.drain());
        self.step = Bucket::default();
        self.next_chunk = 0;
        self.due = DueList::default();
        self.waiting = 0;
        self.removed = 0;
        self.collection = Collection::Complete;
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
        self.raw.base_mut().tracker.shrink();
    }

    /// Removes the value of an item whose key is valid.
    #[inline]
    fn unlink(&mut self, key: Key, location: Location) {
        if location.bucket == DUE_LIST {
            self.raw.base_mut().tracker.rows[key.index()].location = Location::NONE;
            self.waiting -= 1;
            self.removed += 1;
            self.trim_due();
        } else if self.step.remove(location.position, |item| item.index() == key.index()).is_none() {
            self.raw.vacate(location);
            self.free_discarded();
        }
    }

    #[inline]
    fn free_discarded(&mut self) {
        if !self.raw.base().discarded.is_empty() {
            drop(self.raw.base_mut().take_discarded());
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
        self.due = DueList::default();
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
