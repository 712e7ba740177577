//! The hash table of a map, which finds the rows of the user's keys in the table of items.
//!
//! A slot has a hash and the number of a row, whose item has the key. The slots are in the order of
//! their hashes. The *home* of a slot is the place that its hash would have if the hashes were
//! spread evenly. Each slot is as near behind its home as the order permits. Therefore
//!
//! - a search begins at the home and ends at the first greater hash,
//! - a removal moves the slots behind it back towards their homes, so it leaves no marks, and
//! - a table that grows is read and written in sequence. Growing needs no keys, so it neither calls
//!   user code nor reads the items.

use core::hash::{BuildHasher, Hash};
use core::mem;

/// An odd number near 2^64 divided by the golden ratio. The product spreads the hashes of hashers
/// that differ in their low bits only.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The least number of homes of a table that is not empty.
const MIN_HOMES: usize = 8;

/// The room for slots behind the last home.
const TAIL: usize = 16;

/// A table with more homes than this shrinks by itself.
const MIN_SHRINKING: usize = 1 << 10;

/// Returns the hash of a key in the form in which the table keeps it.
#[inline]
pub(super) fn hash_of<Q: ?Sized + Hash>(hash_builder: &impl BuildHasher, key: &Q) -> u32 {
    (hash_builder.hash_one(key).wrapping_mul(SPREAD) >> 32) as u32
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Slot {
    hash: u32,
    /// The number of the row. A table of items has at most 2^32 - 1 rows, so none has the greatest
    /// number.
    row: u32,
}

impl Slot {
    /// A search ends here, because no hash is greater.
    const VACANT: Slot = Slot { hash: u32::MAX, row: u32::MAX };

    fn is_vacant(self) -> bool {
        self == Slot::VACANT
    }
}

/// Rows by the hashes of their keys.
///
/// If the user's `Hash` panics, the slot of an item that has come out may stay. So the row in a
/// slot may be vacant or belong to another key.
#[derive(Default)]
pub(super) struct Index {
    slots: Vec<Slot>,
    /// The number of homes, of which at most two thirds are used. A longer search would cost more
    /// than the memory is worth.
    homes: usize,
    len: usize,
}

impl Index {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        let mut index = Self::default();
        index.reserve(capacity);
        index
    }

    #[inline]
    fn home(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.homes as u64) >> 32) as usize
    }

    /// Visits the rows with this hash until `visit` returns a result, and returns that.
    #[inline]
    pub(super) fn find<R>(&self, hash: u32, mut visit: impl FnMut(usize) -> Option<R>) -> Option<R> {
        let mut place = self.home(hash);
        loop {
            let slot = *self.slots.get(place)?;
            if slot.hash >= hash {
                if slot.hash > hash || slot.is_vacant() {
                    return None;
                }
                let found = visit(slot.row as usize);
                if found.is_some() {
                    return found;
                }
            }
            place += 1;
        }
    }

    /// Inserts a row. There must be [room](Self::reserve) for it.
    #[inline]
    pub(super) fn insert(&mut self, hash: u32, row: usize) {
        let mut place = self.home(hash);
        while self.slots.get(place).is_some_and(|slot| slot.hash <= hash && !slot.is_vacant()) {
            place += 1;
        }
        self.len += 1;
        let mut slot = Slot { hash, row: row as u32 };
        for next in &mut self.slots[place..] {
            mem::swap(&mut slot, next);
            if slot.is_vacant() {
                return;
            }
        }
        self.slots.push(slot);
    }

    /// Removes a row, if it is there.
    #[inline]
    pub(super) fn remove(&mut self, hash: u32, row: usize) {
        let removed = Slot { hash, row: row as u32 };
        let home = self.home(hash);
        let slots = self.slots[home..].iter();
        let Some(found) =
            slots.take_while(|slot| slot.hash <= hash && !slot.is_vacant()).position(|slot| *slot == removed)
        else {
            return;
        };
        let place = home + found;
        // The slots that are not at home move back by one.
        let behind = self.slots[place + 1..].iter().zip(place..);
        let moves = behind.take_while(|(slot, before)| !slot.is_vacant() && self.home(slot.hash) <= *before).count();
        self.slots.copy_within(place + 1..=place + moves, place);
        self.slots[place + moves] = Slot::VACANT;
        self.len -= 1;
    }

    /// Makes room for `additional` rows.
    #[inline]
    pub(super) fn reserve(&mut self, additional: usize) {
        let needed = self.len.saturating_add(additional);
        if needed > self.homes - self.homes / 3 {
            self.grow(needed);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, needed: usize) {
        self.resize(homes_for(needed).max(self.homes / 2 * 3));
    }

    /// Gives back memory if less than a tenth of a large table is used. The removals since it was
    /// full pay for the cost.
    #[inline]
    pub(super) fn shrink_if_sparse(&mut self) {
        if self.homes > MIN_SHRINKING && self.len < self.homes / 10 {
            self.resize(homes_for(self.len * 2));
        }
    }

    /// Gives back the memory that is not needed for the present number of rows. O(homes).
    pub(super) fn shrink_to_fit(&mut self) {
        self.resize(homes_for(self.len));
    }

    fn resize(&mut self, homes: usize) {
        self.homes = homes;
        let room = homes.saturating_add(if homes == 0 { 0 } else { TAIL });
        let former = mem::replace(&mut self.slots, Vec::with_capacity(room));
        for slot in former.into_iter().filter(|slot| !slot.is_vacant()) {
            let home = self.home(slot.hash).max(self.slots.len());
            self.slots.resize(home, Slot::VACANT);
            self.slots.push(slot);
        }
        self.slots.resize(room.max(self.slots.len()), Slot::VACANT);
    }
}

/// Returns the number of homes for `len` rows.
fn homes_for(len: usize) -> usize {
    if len == 0 { 0 } else { len.saturating_add(len / 2).saturating_add(2).max(MIN_HOMES) }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;
    use fastrand::Rng;
    use std::hash::RandomState;

    impl Index {
        fn check(&self, known: &[(u32, usize)]) {
            let mut all = Vec::new();
            for (place, slot) in self.slots.iter().enumerate().filter(|(_, slot)| !slot.is_vacant()) {
                let home = self.home(slot.hash);
                assert!(home <= place && self.slots[home..place].iter().all(|slot| !slot.is_vacant()));
                all.push((slot.hash, slot.row as usize));
            }
            assert!(all.is_sorted_by_key(|(hash, _)| *hash) && all.len() == self.len);
            let mut known = known.to_vec();
            known.sort_unstable();
            all.sort_unstable();
            assert_eq!(all, known);
            assert!(known.iter().all(|(hash, row)| self.find(*hash, |found| (found == *row).then_some(())).is_some()));
        }
    }

    #[test]
    fn rows_are_found_until_they_are_removed() {
        // Hashes from a small range collide. Those at the ends of the whole range meet the ends of
        // the table and the mark of a vacant slot.
        let ranges = [0..=u32::MAX, 0..=40, u32::MAX - 40..=u32::MAX];
        for (seed, range) in ranges.into_iter().enumerate() {
            let mut random = Rng::with_seed(seed as u64);
            let mut index = Index::default();
            let mut known = Vec::new();
            for row in 0..3_000 {
                let hash = random.u32(range.clone());
                index.reserve(1);
                index.insert(hash, row);
                known.push((hash, row));
                // The number of rows rises, falls and rises.
                while known.len() > 200 && random.u32(0..10) < if row % 1_000 < 500 { 2 } else { 6 } {
                    let (hash, row) = known.swap_remove(random.usize(..known.len()));
                    index.remove(hash, row);
                    assert!(index.find(hash, |found| (found == row).then_some(())).is_none());
                }
                if row % 50 == 0 {
                    index.check(&known);
                }
                if row % 700 == 0 {
                    index.shrink_to_fit();
                    index.check(&known);
                }
            }
            known.drain(..).for_each(|(hash, row)| index.remove(hash, row));
            index.check(&[]);
            index.shrink_to_fit();
            assert_eq!((index.slots.capacity(), index.find(7, Some)), (0, None));
        }
    }

    #[test]
    fn a_row_that_is_not_there_is_not_removed() {
        let mut index = Index::with_capacity(9);
        index.remove(5, 1);
        index.insert(5, 1);
        index.remove(5, 2);
        index.remove(u32::MAX, 1);
        index.check(&[(5, 1)]);
    }

    #[test]
    fn sequential_hashes_spread() {
        struct Identity(u64);
        impl core::hash::Hasher for Identity {
            fn finish(&self) -> u64 {
                self.0
            }
            fn write(&mut self, _: &[u8]) {}
            fn write_u64(&mut self, number: u64) {
                self.0 = number;
            }
        }
        #[derive(Clone, Copy)]
        struct Hashers;
        impl BuildHasher for Hashers {
            type Hasher = Identity;
            fn build_hasher(&self) -> Identity {
                Identity(0)
            }
        }
        let longest = |hash: &dyn Fn(u64) -> u32| {
            let mut index = Index::with_capacity(10_000);
            (0..10_000).for_each(|number| index.insert(hash(number), number as usize));
            index.slots.split(|slot| slot.is_vacant()).map(<[Slot]>::len).max().unwrap()
        };
        let random = RandomState::new();
        for shift in [0, 8, 20, 40] {
            assert!(longest(&|number| hash_of(&Hashers, &(number << shift))) < 200, "{shift}");
        }
        assert!(longest(&|number| hash_of(&random, &number)) < 200);
    }
}
