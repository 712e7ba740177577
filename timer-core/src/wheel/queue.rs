//! A keyed wheel that hands out one value at a time, in the order of ranks that the values have.
//!
//! The public keyed wheels hand out all due values in one call, and a key becomes invalid as its
//! value leaves the wheel. An owner that is polled takes one value per call instead. Meanwhile the
//! other due values wait in a list, and their keys stay valid until they are handed out.
//!
//! The values stay in the table of keys, because an operation by key fetches a row of that table
//! from memory in any case. A large wheel is rarely in the cache, so its entries are short and are
//! rarely read:
//!
//! - A move to a later rank changes the row and not the wheel. When the wheel hands out the entry,
//!   the queue reads the later rank in the row and links the entry again. So the tick of an entry
//!   is at most that of its value.
//! - Any other move and a removal write to the wheel without reading it.

use super::hierarchical::RawHierarchical;
use super::location::{Location, Tracker};
use super::raw::RawWheel;
use super::slab::{Item, Key, Slab};
use super::slots::{Slot, Slots};
use std::cmp::Reverse;
use std::num::NonZeroU64;

/// The bucket number of a value in the list of due values. Its position is that in the list. No
/// bucket of a level has this number or a higher one.
const DUE_LIST: u32 = u32::MAX - 3;

/// The list keeps room for this many values.
const MAX_KEPT_CAPACITY: usize = 256;

/// A value and its rank. Lower ranks are handed out first. The rank of a value decides its tick,
/// unless it was due when it was inserted.
pub(crate) struct Ranked<T> {
    /// It is never zero, so an `Option` takes no additional space.
    rank_plus_one: NonZeroU64,
    pub(crate) value: T,
}

impl<T> Ranked<T> {
    /// `rank` is below `u64::MAX`.
    #[inline]
    pub(crate) fn new(rank: u64, value: T) -> Self {
        Ranked { rank_plus_one: NonZeroU64::MIN.saturating_add(rank), value }
    }

    #[inline]
    pub(crate) fn rank(&self) -> u64 {
        self.rank_plus_one.get() - 1
    }
}

/// A hierarchical wheel with keys, from which values are taken one by one.
pub(crate) struct QueueWheel<T> {
    raw: RawHierarchical<Item<()>, Slab<Option<Ranked<T>>>>,
    /// The ranks of values that are due, the first one last. Removed values leave a vacant slot.
    due: Vec<Slot<Item<()>>>,
    /// The values of one step of the wheel. It is empty between calls.
    step: Slots<Item<()>>,
    /// The number of values in `due`.
    waiting: usize,
}

impl<T> QueueWheel<T> {
    pub(crate) fn new() -> Self {
        Self { raw: RawHierarchical::new(Slab::new()), due: Vec::new(), step: Slots::new(), waiting: 0 }
    }

    /// Inserts a value, to be handed out at `tick`. The present is `now`.
    #[inline]
    pub(crate) fn insert(&mut self, tick: u64, value: Ranked<T>, now: u64) -> Key {
        let key = self.raw.tracker_mut().reserve(Some(value));
        self.link(tick, key.item(()), now);
        key
    }

    #[inline]
    fn link(&mut self, tick: u64, item: Item<()>, now: u64) {
        if self.raw.len() == 0 {
            self.raw.fast_forward(now);
        }
        self.raw.insert(tick, item);
    }

    /// Removes a value. Returns `None` if it has been handed out or removed.
    #[inline]
    pub(crate) fn remove(&mut self, key: Key) -> Option<Ranked<T>> {
        let location = self.raw.tracker().find(key)?.location;
        self.unlink(location);
        let value = self.raw.tracker_mut().release(key.index());
        self.forget_if_empty();
        value
    }

    /// Changes the rank and the tick of a value. The key stays valid. Returns `false` if the value
    /// has been handed out or removed.
    pub(crate) fn relink(&mut self, key: Key, tick: u64, rank: u64, now: u64) -> bool {
        let Some(row) = self.raw.tracker_mut().find_mut(key) else { return false };
        let (location, Some(value)) = (row.location, &mut row.data) else { return false };
        let is_later = value.rank() <= rank;
        value.rank_plus_one = NonZeroU64::MIN.saturating_add(rank);
        if !is_later || tick <= now || location.bucket() >= DUE_LIST {
            self.unlink(location);
            self.link(tick, key.item(()), now);
        }
        true
    }

    pub(crate) fn get(&self, key: Key) -> Option<&Ranked<T>> {
        self.raw.tracker().find(key)?.data.as_ref()
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.raw.tracker_mut().find_mut(key)?.data.as_mut().map(|ranked| &mut ranked.value)
    }

    /// Takes the first of the collected values.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Key, Ranked<T>)> {
        let item = loop {
            if let (_, Some(item)) = self.due.pop()? {
                break item;
            }
        };
        self.waiting -= 1;
        let key = self.raw.tracker().key(item.index());
        let value = self.raw.tracker_mut().release(item.index())?;
        self.forget_if_empty();
        Some((key, value))
    }

    /// Moves the clock towards `now` until values are due, and puts these into the list. The list
    /// must be empty. Returns `false` if nothing is due by `now`. `tick_of` returns the tick of a
    /// rank.
    pub(crate) fn collect(&mut self, now: u64, tick_of: impl Fn(u64) -> u64) -> bool {
        debug_assert!(self.waiting == 0);
        if self.due.capacity() > MAX_KEPT_CAPACITY {
            self.due = Vec::new();
        }
        self.due.clear();
        self.raw.take_overdue(&mut self.step);
        self.append_step(|_| 0);
        // Tick by tick, so that ticks are handed out in their order.
        while self.due.is_empty() {
            match self.raw.earliest() {
                Some(next) if next <= now => self.take_tick(next, &tick_of),
                // Nothing is due. The clock goes on, so that later insertions are near it.
                _ => {
                    while self.raw.take_next(now, &mut self.step) {
                        drop(self.raw.take_discarded());
                    }
                    return false;
                }
            }
        }
        self.due.sort_unstable_by_key(|slot| Reverse(slot.0));
        self.waiting = self.due.len();
        for (position, item) in self.due.iter().enumerate().filter_map(|(position, slot)| Some((position, slot.1?))) {
            self.raw.tracker_mut().moved(&item, Location::new(DUE_LIST, position as u32));
        }
        true
    }

    /// Moves the clock to a tick and takes all of its values.
    ///
    /// It takes all of them, because a value that stays in a cascade would become overdue once its
    /// chunk is forgotten, although its row may have been moved to a later rank.
    fn take_tick(&mut self, tick: u64, tick_of: impl Fn(u64) -> u64) {
        while self.raw.earliest().is_some_and(|next| next <= tick) {
            self.raw.take_next(tick, &mut self.step);
            self.append_step(&tick_of);
        }
    }

    /// Moves the values of a step to the list, and links those again that were moved to later.
    fn append_step(&mut self, tick_of: impl Fn(u64) -> u64) {
        drop(self.raw.take_discarded());
        let Self { raw, step, due, .. } = self;
        step.drain(|chunk| {
            for (tick, item) in chunk {
                let Some(item) = *item else { continue };
                let rank = rank(raw.tracker(), item);
                let later = tick_of(rank);
                if later > *tick {
                    raw.insert(later, item);
                } else {
                    due.push((rank, Some(item)));
                }
            }
        });
    }

    /// Returns the tick at which something may be due, or an earlier one. Returns 0 if something is
    /// known to be due, and `None` if the wheel is empty.
    #[inline]
    pub(crate) fn next(&self) -> Option<u64> {
        if self.waiting > 0 || self.raw.has_overdue() { Some(0) } else { self.raw.earliest() }
    }

    /// Returns the key of the value that is handed out next. Reads all values of the first bucket,
    /// and those of further buckets if values of the first one were moved to later.
    pub(crate) fn peek(&self, tick_of: impl Fn(u64) -> u64) -> Option<Key> {
        let mut first = self.due.iter().rev().find_map(|slot| Some((slot.0, slot.1?)));
        if first.is_none() {
            self.raw.visit_first(|item| {
                let found = (rank(self.raw.tracker(), *item), *item);
                let least = first.filter(|first| first.0 <= found.0).unwrap_or(found);
                first = Some(least);
                tick_of(least.0)
            });
        }
        Some(self.raw.tracker().key(first?.1.index()))
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.raw.len() + self.waiting
    }

    /// Removes all values, in no particular order.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (Key, Ranked<T>)> + use<T> {
        self.raw.drain(&mut Vec::new());
        (self.due, self.waiting) = (Vec::new(), 0);
        let drained = self.raw.tracker_mut().drain();
        self.forget_if_empty();
        drained.into_iter().filter_map(|(key, value)| Some((key, value?)))
    }

    /// Makes room for `additional` values.
    pub(crate) fn reserve(&mut self, additional: usize) {
        let len = self.len();
        let rows = &mut self.raw.tracker_mut().rows;
        rows.reserve((len + additional).saturating_sub(rows.len()));
    }

    /// Gives back the memory of vacant keys and of the list.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.due.shrink_to_fit();
        self.raw.tracker_mut().shrink();
    }

    /// Removes the entry of a value whose key is valid.
    #[inline]
    fn unlink(&mut self, location: Location) {
        if location.bucket() == DUE_LIST {
            self.due[location.position() as usize].1 = None;
            self.waiting -= 1;
        } else {
            self.raw.vacate(location);
            if !self.raw.discarded().is_empty() {
                drop(self.raw.take_discarded());
            }
        }
    }

    #[inline]
    fn forget_if_empty(&mut self) {
        if self.len() == 0 && self.raw.tracker().is_large() {
            self.forget();
        }
    }

    /// Gives back the memory of an empty wheel that was large. A small one keeps its tables for the
    /// next value.
    #[cold]
    fn forget(&mut self) {
        self.raw.drain(&mut Vec::new());
        self.raw.tracker_mut().reset();
        self.due = Vec::new();
    }
}

/// Returns the rank of the value that a row has.
#[inline]
fn rank<T>(slab: &Slab<Option<Ranked<T>>>, item: Item<()>) -> u64 {
    slab.rows[item.index()].data.as_ref().map_or(0, Ranked::rank)
}

#[cfg(test)]
mod tests;
