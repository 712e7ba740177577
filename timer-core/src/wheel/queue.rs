//! A keyed wheel that hands out one value at a time, in the order of ranks that the values have.
//!
//! The public keyed wheels hand out all that is due in one call, and a key is spent as its value
//! leaves the wheel. An owner that is polled takes one value per call instead. Values that are due
//! then wait in a list, and their keys stay good until they are handed out.

use super::hierarchical::RawHierarchical;
use super::location::Location;
use super::raw::RawWheel;
use super::slab::{Item, Key, Slab};
use super::slots::{Entry, Slot, Slots};

/// The bucket number of a value in the list of due values. Its position is that in the list.
const DUE: u32 = u32::MAX - 3;

/// The list keeps room for so many values.
const KEPT: usize = 256;

/// A value with a rank, which orders the values of one tick.
pub(crate) trait Ranked {
    /// Returns the rank. Lower ranks are handed out first.
    fn rank(&self) -> u64;
}

/// A hierarchical wheel with keys, from which values are taken one by one.
pub(crate) struct QueueWheel<T> {
    raw: RawHierarchical<Item<T>, Slab>,
    /// Values that are due, the first one last. Removed values leave a vacant slot.
    due: Vec<Slot<Item<T>>>,
    /// The values of one step of the wheel. It is empty between calls.
    step: Slots<Item<T>>,
    /// The number of values in `due`.
    waiting: usize,
}

impl<T: Ranked> QueueWheel<T> {
    pub(crate) fn new() -> Self {
        Self { raw: RawHierarchical::new(Slab::new()), due: Vec::new(), step: Slots::new(), waiting: 0 }
    }

    /// Inserts `value`, to be handed out at tick `deadline`. The present is `now`.
    #[inline]
    pub(crate) fn insert(&mut self, deadline: u64, value: T, now: u64) -> Key {
        if self.raw.len() == 0 {
            self.raw.fast_forward(now);
        }
        let key = self.raw.tracker_mut().reserve();
        self.raw.insert(deadline, key.item(value));
        key
    }

    /// Removes a value. Returns `None` if it has been handed out or removed.
    #[inline]
    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let item = self.unlink(key)?;
        self.raw.tracker_mut().release(item.index());
        self.forget_if_empty();
        Some(item.value)
    }

    /// Calls `change` with a value and links it at the tick that this returns. The key stays good.
    /// Returns `false` if the value has been handed out or removed.
    pub(crate) fn relink(&mut self, key: Key, now: u64, change: impl FnOnce(&mut T) -> u64) -> bool {
        let Some(mut item) = self.unlink(key) else { return false };
        if self.raw.len() == 0 {
            self.raw.fast_forward(now);
        }
        let deadline = change(&mut item.value);
        self.raw.insert(deadline, item);
        true
    }

    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        let location = self.raw.tracker().find(key)?;
        let item = if location.bucket() == DUE {
            self.due.get(location.position() as usize)?.1.as_ref()?
        } else {
            self.raw.get(location)?.1
        };
        Some(&item.value)
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let location = self.raw.tracker().find(key)?;
        let item = if location.bucket() == DUE {
            self.due.get_mut(location.position() as usize)?.1.as_mut()?
        } else {
            self.raw.get_mut(location)?
        };
        Some(&mut item.value)
    }

    /// Takes the first of the collected values.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Key, T)> {
        while let Some((_, item)) = self.due.pop() {
            if let Some(item) = item {
                self.waiting -= 1;
                let key = self.raw.tracker().key(item.index());
                self.raw.tracker_mut().release(item.index());
                self.forget_if_empty();
                return Some((key, item.value));
            }
        }
        None
    }

    /// Moves the clock towards `now` until something is due, which goes into the list. The list
    /// must be empty. Returns `false` if nothing is due by `now`.
    pub(crate) fn collect(&mut self, now: u64) -> bool {
        debug_assert!(self.waiting == 0);
        if self.due.capacity() > KEPT {
            self.due = Vec::new();
        }
        self.due.clear();
        self.raw.take_overdue(&mut self.step);
        self.append_step();
        // A step per tick, so that ticks are handed out in their order.
        while self.due.is_empty() {
            match self.raw.earliest() {
                Some(next) if next <= now => drop(self.raw.take_next(next, &mut self.step)),
                // Nothing is due. The clock goes on, so that later insertions are near it.
                _ => {
                    while self.raw.take_next(now, &mut self.step) {
                        drop(self.raw.take_discarded());
                    }
                    return false;
                }
            }
            self.append_step();
        }
        self.due.sort_unstable_by_key(|slot| std::cmp::Reverse(rank(slot)));
        self.waiting = self.due.len();
        for (at, slot) in self.due.iter().enumerate() {
            if let Some(item) = &slot.1 {
                self.raw.tracker_mut().set(item.index(), Location::new(DUE, at as u32));
            }
        }
        true
    }

    /// Moves the values of a step to the list.
    fn append_step(&mut self) {
        drop(self.raw.take_discarded());
        let Self { step, due, .. } = self;
        step.drain(|chunk| due.extend(chunk.iter_mut().map(|slot| (slot.0, slot.1.take()))));
        due.retain(|slot| slot.1.is_some());
    }

    /// Returns the tick at which something may be due, or an earlier one. Returns 0 if something is
    /// known to be due, and `None` if the wheel is empty.
    #[inline]
    pub(crate) fn next(&self) -> Option<u64> {
        if self.waiting > 0 || self.raw.has_overdue() { Some(0) } else { self.raw.earliest() }
    }

    /// Returns the key of the value that is handed out next. Reads all values of the first bucket.
    pub(crate) fn peek(&self) -> Option<Key> {
        let item = match self.due.iter().rev().find_map(|slot| slot.1.as_ref()) {
            Some(item) => item,
            None => self.raw.first_value(|item| item.value.rank())?,
        };
        Some(self.raw.tracker().key(item.index()))
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.raw.len() + self.waiting
    }

    /// Removes all values, in no particular order.
    pub(crate) fn drain(&mut self) -> Vec<(Key, T)> {
        let mut entries: Vec<Entry<Item<T>>> = Vec::new();
        self.raw.drain(&mut entries);
        let due = std::mem::take(&mut self.due).into_iter().filter_map(|(deadline, item)| Some((deadline, item?)));
        entries.extend(due);
        self.waiting = 0;
        let slab = self.raw.tracker_mut();
        let take = |(_, item): Entry<Item<T>>| {
            let key = slab.key(item.index());
            slab.release(item.index());
            (key, item.value)
        };
        let drained = entries.into_iter().map(take).collect();
        self.forget_if_empty();
        drained
    }

    /// Makes room for the keys of `additional` values.
    pub(crate) fn reserve(&mut self, additional: usize) {
        let vacant = self.raw.tracker().slots() - self.len();
        self.raw.tracker_mut().reserve_slots(additional.saturating_sub(vacant));
    }

    /// Gives back the memory of vacant keys and of the list.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.due.shrink_to_fit();
        self.raw.tracker_mut().shrink();
    }

    fn unlink(&mut self, key: Key) -> Option<Item<T>> {
        let location = self.raw.tracker().find(key)?;
        if location.bucket() == DUE {
            let item = self.due.get_mut(location.position() as usize)?.1.take()?;
            self.waiting -= 1;
            return Some(item);
        }
        // A key that is good knows where its value is.
        let item = self.raw.remove(location, |_| true);
        drop(self.raw.take_discarded());
        item
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

fn rank<T: Ranked>(slot: &Slot<Item<T>>) -> u64 {
    slot.1.as_ref().map_or(0, |item| item.value.rank())
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Ranked for u64 {
        fn rank(&self) -> u64 {
            *self
        }
    }

    #[test]
    fn values_of_one_tick_come_in_the_order_of_ranks() {
        let mut wheel = QueueWheel::new();
        let ranks = [7, 3, 9, 1, 5, 8, 2];
        let keys = ranks.map(|rank| wheel.insert(10 + rank / 5, rank, 0));
        assert_eq!(wheel.peek(), Some(keys[3]));
        assert!(!wheel.collect(9));
        let mut popped = Vec::new();
        while wheel.collect(11) {
            while let Some((key, rank)) = wheel.pop() {
                assert!(wheel.remove(key).is_none());
                popped.push(rank);
            }
        }
        assert_eq!(popped, [1, 2, 3, 5, 7, 8, 9]);
    }
}
