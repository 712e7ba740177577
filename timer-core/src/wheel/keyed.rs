//! The public wheels: a raw wheel, plus a table that finds a value's location by its key.
//!
//! Everything about time is the raw wheel's; everything about keys is the table's, which the raw wheel keeps informed
//! of each move. This file joins the two, and keeps what is due safe from a receiver that panics.

use super::TimingWheel;
use super::bucket::Slots;
use super::hashed::RawHashed;
use super::hierarchical::RawHierarchical;
use super::raw::RawWheel;
use super::slab::{Item, Key, Slab};
use std::fmt;

/// One ring of slots; a deadline goes to the slot of its low bits, whatever its round.
///
/// The choice where the longest delay is about as long as the wheel, so that few rounds share a slot: then nothing is
/// ever moved. With many rounds in a slot, each visit reads all of its values. For delays of all lengths take
/// [`HierarchicalWheel`].
///
/// # Cost
///
/// `insert` and `remove` are O(1), the memory being allocated in amortised steps. `advance` costs O(1) for each value
/// that is due, plus a look at every other value of the slots in which something is due; ticks cost nothing.
/// Memory follows the values that are in the wheel, not the number of slots.
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
/// assert_eq!(wheel.next_expiry(), Some(542));
/// ```
#[doc(alias = "HashedWheelTimer")]
pub struct HashedWheel<T> {
    raw: RawHashed<Item<T>, Slab>,
    /// Empty but while something is handed out.
    due: Slots<Item<T>>,
}

/// Wheels of 64 slots, each turning 64 times as slowly as the one before it.
///
/// The choice for delays of all lengths: all of `u64` is covered, and the cost does not depend on how far away a
/// deadline is or how many wait.
///
/// # Cost
///
/// `insert` and `remove` are O(1), the memory being allocated in amortised steps. `advance` costs O(1) for each value
/// that is due, plus the cascade: a value is carried to a finer wheel at most ten times in its life, and about three
/// times if it is due within 2^24 ticks. Ticks cost nothing.
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
/// assert_eq!(wheel.next_expiry(), Some(u64::MAX));
/// ```
#[doc(alias = "SystemTimer")]
#[doc(alias = "DelayQueue")]
pub struct HierarchicalWheel<T> {
    raw: RawHierarchical<Item<T>, Slab>,
    /// Empty but while something is handed out.
    due: Slots<Item<T>>,
}

impl<T> HashedWheel<T> {
    /// A wheel at tick 0 of `ticks_per_wheel` slots, brought into 1..=2^30 and rounded up to a power of two.
    ///
    /// Allocates nothing yet. A good number is that of the ticks in the longest usual delay; every value is accepted.
    ///
    /// ```
    /// use timer_core::wheel::HashedWheel;
    ///
    /// assert_eq!(HashedWheel::<()>::new(500).ticks_per_wheel(), 512);
    /// assert_eq!(HashedWheel::<()>::new(0).ticks_per_wheel(), 1);
    /// assert_eq!(HashedWheel::<()>::new(usize::MAX).ticks_per_wheel(), 1 << 30);
    /// ```
    pub fn new(ticks_per_wheel: usize) -> Self {
        HashedWheel { raw: RawHashed::new(ticks_per_wheel, Slab::new()), due: Slots::new() }
    }

    /// How many slots the wheel has, which is the number of ticks in one round.
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
    /// A wheel at tick 0. Allocates nothing yet.
    ///
    /// ```
    /// use timer_core::wheel::{HierarchicalWheel, TimingWheel};
    ///
    /// let wheel = HierarchicalWheel::<String>::new();
    /// assert!(wheel.is_empty());
    /// ```
    pub fn new() -> Self {
        HierarchicalWheel { raw: RawHierarchical::new(Slab::new()), due: Slots::new() }
    }
}

impl<T> Default for HierarchicalWheel<T> {
    fn default() -> Self {
        Self::new()
    }
}

fn insert<T, R: RawWheel<Item<T>, Tracker = Slab>>(raw: &mut R, deadline: u64, value: T) -> Key {
    let key = raw.tracker_mut().reserve();
    raw.insert(deadline, key.item(value));
    key
}

fn remove<T, R: RawWheel<Item<T>, Tracker = Slab>>(raw: &mut R, key: Key) -> Option<T> {
    let location = raw.tracker().find(key)?;
    // A key that is good knows where its value is.
    let item = raw.remove(location, |_| true)?;
    raw.tracker_mut().release(item.index());
    if raw.len() == 0 {
        raw.tracker_mut().reset();
    }
    Some(item.value)
}

fn advance<T, R: RawWheel<Item<T>, Tracker = Slab>>(
    raw: &mut R,
    due: &mut Slots<Item<T>>,
    now: u64,
    mut expired: impl FnMut(T),
) {
    raw.take_overdue(due);
    Leaving { raw, due }.hand_out(&mut expired);
    while raw.take_next(now, due) {
        Leaving { raw, due }.hand_out(&mut expired);
    }
    due.shrink();
    if raw.len() == 0 {
        raw.tracker_mut().reset();
    }
}

/// Values on their way to the receiver. If the receiver panics, the others go back into the wheel.
struct Leaving<'a, T, R: RawWheel<Item<T>, Tracker = Slab>> {
    raw: &'a mut R,
    due: &'a mut Slots<Item<T>>,
}

impl<T, R: RawWheel<Item<T>, Tracker = Slab>> Leaving<'_, T, R> {
    fn hand_out(self, expired: &mut impl FnMut(T)) {
        for position in 0..self.due.len() {
            if let Some(item) = self.due.get_mut(position).and_then(|slot| slot.1.take()) {
                self.raw.tracker_mut().release(item.index());
                expired(item.value);
            }
        }
    }
}

impl<T, R: RawWheel<Item<T>, Tracker = Slab>> Drop for Leaving<'_, T, R> {
    fn drop(&mut self) {
        while let Some((deadline, item)) = self.due.pop() {
            item.into_iter().for_each(|item| self.raw.insert(deadline, item));
        }
    }
}

macro_rules! by_key {
    ($wheel:ident) => {
        impl<T> TimingWheel<T> for $wheel<T> {
            fn insert(&mut self, deadline: u64, value: T) -> Key {
                insert(&mut self.raw, deadline, value)
            }

            fn remove(&mut self, key: Key) -> Option<T> {
                remove(&mut self.raw, key)
            }

            fn advance(&mut self, now: u64, expired: impl FnMut(T)) {
                advance(&mut self.raw, &mut self.due, now, expired);
            }

            fn next_expiry(&self) -> Option<u64> {
                self.raw.next_expiry()
            }

            fn now(&self) -> u64 {
                self.raw.now()
            }

            fn len(&self) -> usize {
                self.raw.len()
            }
        }

        impl<T> fmt::Debug for $wheel<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($wheel))
                    .field("now", &self.now())
                    .field("len", &self.len())
                    .field("next_expiry", &self.next_expiry())
                    .finish()
            }
        }
    };
}

by_key!(HashedWheel);
by_key!(HierarchicalWheel);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_freed_with_the_last_value() {
        fn room<T>(raw: &impl RawWheel<Item<T>, Tracker = Slab>) -> usize {
            raw.tracker().room()
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
