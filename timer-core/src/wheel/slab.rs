//! The table behind the keys, with the location of the value of each key.
//!
//! A key names a row of the table and the generation of the row. The generation is incremented each
//! time a value leaves, so an old key meets another generation and finds nothing. A row whose
//! generations are used up is retired, so no key is ever given out twice.
//!
//! A row can also have data of the owner. The public wheels use none, so that a wheel which has
//! lost most of its values keeps little memory. A delay queue keeps its items there.
//!
//! The memory of a large table is given back when the last value leaves. The table keeps one number
//! for [`ROWS_PER_FLOOR`] rows then, the highest of their generations.

use super::bucket::MIN_CAPACITY;
use super::location::{Location, Tracker};
use std::num::NonZeroU32;

/// The number of rows that share one floor. A table of at most this many rows is kept when it
/// becomes empty.
const ROWS_PER_FLOOR: usize = 256;

/// The generation of a row that is out of use for good. No key has it.
const RETIRED: u32 = u32::MAX;

/// The bucket number in the location of a vacant row, whose position is the next vacant row.
/// [`Location::NONE`] has it too.
const VACANT: u32 = u32::MAX;

/// The end of the chain of vacant rows.
const NO_ROW: u32 = u32::MAX;

/// The name of a value in a wheel, returned by [`insert`](super::TimingWheel::insert) and used up
/// by [`remove`](super::TimingWheel::remove).
///
/// A key belongs to the wheel that returned it. Once its value has expired or was removed, the key
/// never finds another value. It may be copied, compared and kept. In another wheel the key may or
/// may not name a value.
///
/// ```
/// use timer_core::wheel::{HierarchicalWheel, TimingWheel};
///
/// let mut wheel = HierarchicalWheel::new();
/// let key = wheel.insert(10, "first");
/// assert_eq!(wheel.remove(key), Some("first"));
///
/// let other = wheel.insert(10, "second");
/// assert_ne!(key, other);
/// assert_eq!(wheel.remove(key), None);
/// assert_eq!(wheel.remove(other), Some("second"));
/// ```
#[doc(alias = "Timeout")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    /// Returns the index of the row.
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.index as usize
    }

    /// Returns the item that the wheel stores for `value`.
    #[inline]
    pub(crate) fn item<T>(self, value: T) -> Item<T> {
        Item { index_plus_one: NonZeroU32::MIN.saturating_add(self.index), value }
    }
}

/// The item that a keyed wheel stores, a value and the row that tracks it.
#[derive(Clone, Copy)]
pub(crate) struct Item<T> {
    /// It is never zero, so a vacant slot of a bucket takes no additional space.
    index_plus_one: NonZeroU32,
    pub(crate) value: T,
}

impl<T> Item<T> {
    /// Returns the index of the row.
    #[inline]
    pub(crate) fn index(&self) -> usize {
        self.index_plus_one.get() as usize - 1
    }
}

/// An element of the table.
pub(crate) struct Row<D> {
    generation: u32,
    pub(crate) location: Location,
    pub(crate) data: D,
}

impl<D> Row<D> {
    /// Returns `true` if the row tracks no value, also if it is retired.
    #[inline]
    fn is_vacant(&self) -> bool {
        self.location.bucket == VACANT
    }

    #[inline]
    fn is_named_by(&self, key: Key) -> bool {
        self.generation == key.generation && !self.is_vacant()
    }
}

/// A table of rows, with a list of the vacant ones.
pub(crate) struct Slab<D = ()> {
    pub(crate) rows: Vec<Row<D>>,
    /// The first vacant row, or [`NO_ROW`].
    vacant: u32,
    /// The generations with which each group of rows begins when the table grows again.
    floors: Vec<u32>,
}

impl<D: Default> Slab<D> {
    pub(crate) const fn new() -> Self {
        Slab { rows: Vec::new(), vacant: NO_ROW, floors: Vec::new() }
    }

    /// Reserves a row for a new value. The wheel reports the location afterwards.
    #[inline]
    pub(crate) fn reserve(&mut self, data: D) -> Key {
        let index = match self.vacant {
            NO_ROW => self.grow(),
            index => {
                self.vacant = self.rows[index as usize].location.position;
                index
            }
        };
        let row = &mut self.rows[index as usize];
        row.data = data;
        Key { index, generation: row.generation }
    }

    /// Returns the row that `key` names, unless its value has left.
    #[inline]
    pub(crate) fn find(&self, key: Key) -> Option<&Row<D>> {
        self.rows.get(key.index()).filter(|row| row.is_named_by(key))
    }

    /// Returns the row that `key` names, unless its value has left.
    #[inline]
    pub(crate) fn find_mut(&mut self, key: Key) -> Option<&mut Row<D>> {
        self.rows.get_mut(key.index()).filter(|row| row.is_named_by(key))
    }

    /// Returns the key of the value that this row tracks.
    #[inline]
    pub(crate) fn key(&self, index: usize) -> Key {
        Key { index: index as u32, generation: self.rows[index].generation }
    }

    /// Returns `true` if the table is given back when the last value leaves.
    #[inline]
    pub(crate) fn is_large(&self) -> bool {
        self.rows.len() > ROWS_PER_FLOOR
    }

    /// Gives back the memory of the vacant rows behind the last one that is in use. O(rows).
    pub(crate) fn shrink(&mut self) {
        let used = self.rows.iter().rposition(|row| !row.is_vacant()).map_or(0, |last| last + 1);
        for (at, row) in self.rows.drain(used..).enumerate() {
            let group = (used + at) / ROWS_PER_FLOOR;
            if self.floors.len() <= group {
                self.floors.resize(group + 1, 0);
            }
            self.floors[group] = self.floors[group].max(row.generation);
        }
        self.rows.shrink_to_fit();
        self.vacant = NO_ROW;
        for (index, row) in self.rows.iter_mut().enumerate().rev() {
            if row.is_vacant() && row.generation != RETIRED {
                row.location = Location::new(VACANT, self.vacant);
                self.vacant = index as u32;
            }
        }
    }

    /// Releases a row whose value has left, and returns its data. Its keys find nothing from now
    /// on.
    #[inline]
    pub(crate) fn release(&mut self, index: usize) -> D {
        let row = &mut self.rows[index];
        row.generation += 1;
        row.location = Location::NONE;
        if row.generation != RETIRED {
            row.location = Location::new(VACANT, self.vacant);
            self.vacant = index as u32;
        }
        std::mem::take(&mut row.data)
    }

    /// Releases all rows that track a value, and returns the keys and the data.
    pub(crate) fn drain(&mut self) -> Vec<(Key, D)> {
        let rows = 0..self.rows.len();
        let release = |index: usize| (!self.rows[index].is_vacant()).then(|| (self.key(index), self.release(index)));
        rows.filter_map(release).collect()
    }

    /// Gives back the memory of a large table that has no values.
    pub(crate) fn reset(&mut self) {
        if self.is_large() {
            self.shrink();
        }
    }

    fn grow(&mut self) -> u32 {
        loop {
            let index = self.rows.len();
            // The table does not double, because the rows are most of the memory of a delay queue.
            if index == self.rows.capacity() {
                self.rows.reserve_exact((index / 4).max(MIN_CAPACITY));
            }
            assert!(index < NO_ROW as usize, "a wheel holds at most 2^32 - 1 values");
            let generation = self.floors.get(index / ROWS_PER_FLOOR).copied().unwrap_or(0);
            self.rows.push(Row { generation, location: Location::NONE, data: D::default() });
            if generation != RETIRED {
                return index as u32;
            }
        }
    }
}

impl<T, D> Tracker<Item<T>> for Slab<D> {
    #[inline]
    fn moved(&mut self, item: &Item<T>, location: Location) {
        self.rows[item.index()].location = location;
    }
}

#[cfg(all(test, not(timer_loom)))]
impl<D> Slab<D> {
    pub(crate) fn room(&self) -> usize {
        self.rows.capacity()
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;

    fn put(slab: &mut Slab, key: Key, position: u32) {
        slab.moved(&key.item(()), Location::new(1, position));
    }

    fn put_new(slab: &mut Slab) -> Key {
        let key = slab.reserve(());
        put(slab, key, key.index);
        key
    }

    // Guards against tokio-rs/tokio#3558, generations that wrap around.
    #[test]
    fn a_row_whose_generations_are_used_up_is_retired() {
        let mut slab = Slab::<()>::new();
        let first = put_new(&mut slab);
        slab.rows[0].generation = RETIRED - 1;
        let last = Key { index: 0, generation: RETIRED - 1 };
        assert!(slab.find(last).is_some());
        slab.release(0);

        for stale in [first, last, Key { index: 0, generation: RETIRED }] {
            assert!(slab.find(stale).is_none());
        }
        for index in 1..5 {
            assert_eq!(put_new(&mut slab).index, index, "the row is not used again");
        }
        assert_eq!(slab.vacant, NO_ROW);
    }

    #[test]
    fn generations_go_on_after_the_table_was_given_back() {
        let mut slab = Slab::<()>::new();
        let mut old = Vec::new();
        for _ in 0..5 {
            let keys: Vec<Key> = (0..3 * ROWS_PER_FLOOR).map(|_| put_new(&mut slab)).collect();
            for key in &keys {
                assert!(slab.find(*key).is_some());
                slab.release(key.index as usize);
            }
            old.extend(keys);
            slab.reset();
            assert_eq!(slab.rows.capacity(), 0);
            assert!(old.iter().all(|key| slab.find(*key).is_none()));
        }
        let unique: std::collections::HashSet<&Key> = old.iter().collect();
        assert_eq!(unique.len(), old.len(), "no key came twice");
    }

    #[test]
    fn a_group_without_generations_is_passed_over() {
        let mut slab = Slab::<()>::new();
        for _ in 0..=ROWS_PER_FLOOR {
            put_new(&mut slab);
        }
        slab.rows[7].generation = RETIRED - 1;
        for index in 0..=ROWS_PER_FLOOR {
            slab.release(index);
        }
        slab.reset();
        let key = put_new(&mut slab);
        assert_eq!(key, Key { index: ROWS_PER_FLOOR as u32, generation: 1 });
        slab.release(key.index as usize);
        assert_eq!(put_new(&mut slab), Key { index: ROWS_PER_FLOOR as u32, generation: 2 });
    }

    #[test]
    fn a_shortened_table_goes_on_with_its_generations() {
        let mut slab = Slab::<()>::new();
        let mut old: Vec<Key> = Vec::new();
        for round in 0..4 {
            let keys: Vec<Key> = (0..3 * ROWS_PER_FLOOR).map(|_| put_new(&mut slab)).collect();
            let kept = 10 + round;
            keys[kept..].iter().for_each(|key| slab.release(key.index as usize));
            slab.shrink();
            assert!(slab.rows.len() <= 3 * ROWS_PER_FLOOR && slab.rows.capacity() < 2 * ROWS_PER_FLOOR);
            assert!(keys[..kept].iter().all(|key| slab.find(*key).is_some()));
            keys[..kept].iter().for_each(|key| slab.release(key.index as usize));
            if round % 2 == 0 {
                slab.reset();
            }
            old.extend(keys);
            assert!(old.iter().all(|key| slab.find(*key).is_none()));
        }
        let unique: std::collections::HashSet<&Key> = old.iter().collect();
        assert_eq!(unique.len(), old.len(), "no key came twice");
    }

    // A key of another wheel may name a vacant row, even with the generation that comes next.
    #[test]
    fn a_foreign_key_finds_no_vacant_row() {
        let mut slab = Slab::<()>::new();
        let a = put_new(&mut slab);
        slab.release(a.index as usize);
        assert!(slab.find(Key { index: 0, generation: 1 }).is_none());
        assert!(slab.find(Key { index: 9, generation: 0 }).is_none());
    }
}
