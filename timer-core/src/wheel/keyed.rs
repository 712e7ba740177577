//! The public wheels. Each is a raw wheel with a table that finds the location of a value by its
//! key.
//!
//! The raw wheel does everything about time, and the table everything about keys. The raw wheel
//! reports each location to the table. This module joins the two and keeps the due values if the
//! receiver panics.

use super::TimingWheel;
use super::bucket::{Bucket, Chunk};
use super::hashed::RawHashed;
use super::hierarchical::RawHierarchical;
use super::raw::RawWheel;
use super::slab::{Item, Key, Slab};
use std::fmt;

/// A timing wheel that is one ring of lists. A deadline belongs to the list of its low bits,
/// whatever its round.
///
/// Use this wheel if most delays are shorter than one round. A tick reads every value in its list,
/// also those of later rounds. For delays of all lengths take [`HierarchicalWheel`].
///
/// # Cost
///
/// `insert` and `remove` are O(1). `advance` costs O(1) for each value that is due, plus a look at
/// every other value of the lists in which a value is due. There is one list for each tick of a
/// round, but at most 1,024, so a longer round does not make the lists shorter. Passing ticks cost
/// nothing.
///
/// ```
/// use timer_core::wheel::{HashedWheel, TimingWheel};
///
/// let mut wheel = HashedWheel::new(512);
/// wheel.insert(30, "thirty");
/// wheel.insert(30 + 512, "a round later, the same slot");
///
/// let mut due = Vec::new();
/// wheel.advance(500, |value| due.push(value));
/// assert_eq!(due, ["thirty"]);
/// assert_eq!(wheel.next_deadline(), Some(542));
/// ```
#[doc(alias = "HashedWheelTimer")]
pub struct HashedWheel<T> {
    raw: RawHashed<Item<T>, Slab>,
}

/// A timing wheel of several levels, each of which turns 64 times as slowly as the one before it.
///
/// This wheel suits delays of all lengths. It covers all of `u64`, and its cost does not depend on
/// the length of a delay or on the number of values.
///
/// # Cost
///
/// `insert` and `remove` are O(1). `advance` costs O(1) for each value that is due, plus the
/// cascade. A value cascades to a finer level at most ten times in its life, and about three times
/// if it is due within 2^24 ticks. Passing ticks cost nothing.
///
/// ```
/// use timer_core::wheel::{HierarchicalWheel, TimingWheel};
///
/// let mut wheel = HierarchicalWheel::new();
/// wheel.insert(3_600_000, "in an hour");
/// wheel.insert(u64::MAX, "never");
///
/// wheel.advance(3_599_999, |_| unreachable!("nothing is early"));
/// let mut due = Vec::new();
/// wheel.advance(1 << 60, |value| due.push(value));
/// assert_eq!(due, ["in an hour"]);
/// assert_eq!(wheel.next_deadline(), Some(u64::MAX));
/// ```
#[doc(alias = "SystemTimer")]
#[doc(alias = "DelayQueue")]
pub struct HierarchicalWheel<T> {
    raw: RawHierarchical<Item<T>, Slab>,
}

impl<T> HashedWheel<T> {
    /// Creates a wheel at tick 0 with `ticks_per_wheel` ticks in a round, clamped to 1..=2^30 and
    /// rounded up to a power of two.
    ///
    /// Choose about as many ticks as the longest usual delay has.
    ///
    /// ```
    /// use timer_core::wheel::HashedWheel;
    ///
    /// assert_eq!(HashedWheel::<()>::new(500).ticks_per_wheel(), 512);
    /// assert_eq!(HashedWheel::<()>::new(0).ticks_per_wheel(), 1);
    /// assert_eq!(HashedWheel::<()>::new(usize::MAX).ticks_per_wheel(), 1 << 30);
    /// ```
    pub fn new(ticks_per_wheel: usize) -> Self {
        HashedWheel { raw: RawHashed::new(ticks_per_wheel, Slab::new()) }
    }

    /// Returns the number of ticks in one round.
    ///
    /// ```
    /// use timer_core::wheel::HashedWheel;
    ///
    /// assert_eq!(HashedWheel::<()>::new(512).ticks_per_wheel(), 512);
    /// ```
    pub fn ticks_per_wheel(&self) -> usize {
        self.raw.ticks_per_wheel()
    }
}

impl<T> HierarchicalWheel<T> {
    /// Creates a wheel at tick 0, which allocates nothing yet.
    ///
    /// ```
    /// use timer_core::wheel::{HierarchicalWheel, TimingWheel};
    ///
    /// let wheel = HierarchicalWheel::<String>::new();
    /// assert!(wheel.is_empty());
    /// ```
    pub fn new() -> Self {
        HierarchicalWheel { raw: RawHierarchical::new(Slab::new()) }
    }
}

impl<T> Default for HierarchicalWheel<T> {
    fn default() -> Self {
        Self::new()
    }
}

fn insert<T, R: RawWheel<Value = Item<T>, Tracker = Slab>>(raw: &mut R, deadline: u64, value: T) -> Key {
    let key = raw.base_mut().tracker.reserve(());
    raw.insert(deadline, key.item(value));
    key
}

fn remove<T, R: RawWheel<Value = Item<T>, Tracker = Slab>>(raw: &mut R, key: Key) -> Option<T> {
    let location = raw.base().tracker.find(key)?.location;
    // The table has the location of each value that is in the wheel.
    let item = raw.remove(location, |_| true)?;
    drop(raw.base_mut().take_discarded());
    raw.base_mut().tracker.release(item.index());
    if raw.base().len == 0 {
        raw.base_mut().tracker.reset();
    }
    Some(item.value)
}

fn advance<T, R: RawWheel<Value = Item<T>, Tracker = Slab>>(raw: &mut R, now: u64, mut expired: impl FnMut(T)) {
    let mut due = Bucket::default();
    let mut chunk = Chunk::default();
    raw.base_mut().take_overdue(&mut due);
    HandOut { raw, due: &mut due, chunk: &mut chunk }.hand_out(&mut expired);
    while raw.take_next(now, &mut due) {
        HandOut { raw, due: &mut due, chunk: &mut chunk }.hand_out(&mut expired);
        drop(raw.base_mut().take_discarded());
    }
    if raw.base().len == 0 {
        raw.base_mut().tracker.reset();
    }
}

/// Values on their way to the receiver. If the receiver panics, the others go back into the wheel.
struct HandOut<'a, T, R: RawWheel<Value = Item<T>, Tracker = Slab>> {
    raw: &'a mut R,
    due: &'a mut Bucket<Item<T>>,
    /// The chunk that is handed out.
    chunk: &'a mut Chunk<Item<T>>,
}

impl<T, R: RawWheel<Value = Item<T>, Tracker = Slab>> HandOut<'_, T, R> {
    fn hand_out(self, expired: &mut impl FnMut(T)) {
        let mut next = 0;
        while !self.due.is_empty() {
            next = self.due.drain_chunk(next, |chunk| std::mem::swap(chunk, self.chunk));
            while let Some((_, item)) = self.chunk.take_first() {
                self.raw.base_mut().tracker.release(item.index());
                expired(item.value);
            }
        }
    }
}

impl<T, R: RawWheel<Value = Item<T>, Tracker = Slab>> Drop for HandOut<'_, T, R> {
    fn drop(&mut self) {
        for (deadline, item) in self.chunk.drain().chain(self.due.take_all()) {
            self.raw.insert(deadline, item);
        }
    }
}

macro_rules! by_key {
    ($wheel:ident) => {
        impl<T> super::sealed::Sealed for $wheel<T> {}

        impl<T> TimingWheel<T> for $wheel<T> {
            fn insert(&mut self, deadline: u64, value: T) -> Key {
                insert(&mut self.raw, deadline, value)
            }

            fn remove(&mut self, key: Key) -> Option<T> {
                remove(&mut self.raw, key)
            }

            fn advance(&mut self, now: u64, expired: impl FnMut(T)) {
                advance(&mut self.raw, now, expired);
            }

            fn next_deadline(&self) -> Option<u64> {
                self.raw.next_deadline()
            }

            fn now(&self) -> u64 {
                self.raw.base().now
            }

            fn len(&self) -> usize {
                self.raw.base().len
            }
        }

        impl<T> fmt::Debug for $wheel<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($wheel))
                    .field("now", &self.now())
                    .field("len", &self.len())
                    .field("next_deadline", &self.next_deadline())
                    .finish()
            }
        }
    };
}

by_key!(HashedWheel);
by_key!(HierarchicalWheel);

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_freed_with_the_last_value() {
        fn room<T>(raw: &impl RawWheel<Value = Item<T>, Tracker = Slab>) -> usize {
            raw.base().tracker.room()
        }
        let (mut removed, mut expired) = (HierarchicalWheel::new(), HashedWheel::new(512));
        for _ in 0..3 {
            let keys: Vec<Key> = (0..1000).map(|n| removed.insert(n, n)).collect();
            for n in 0..1000 {
                expired.insert(n, n);
            }
            assert!(room(&removed.raw) >= 1000 && room(&expired.raw) >= 1000);
            for key in keys {
                removed.remove(key);
            }
            expired.advance(1000, |_| ());
            assert_eq!((room(&removed.raw), room(&expired.raw)), (0, 0));
        }
    }
}
