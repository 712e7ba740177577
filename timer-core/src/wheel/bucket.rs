//! One slot's values: an array of (deadline, value) that is read in sequence.
//!
//! An array and not a list, because expiring and cascading read all of a bucket: neighbours share cache lines and the
//! hardware reads ahead. A removal fills its gap with the last entry, so the order within a bucket is that of
//! insertion only as long as nothing is removed.
//!
//! A bucket caches the earliest of its deadlines. An insertion keeps it exact; a removal from a long bucket leaves it
//! as it is, a lower bound, since finding the new one means reading the bucket. Emptiness is the array's, never a
//! special deadline: all of `u64` may be scheduled.
//!
//! Memory follows the entries: capacity stays within about four times their number, plus [`KEPT`].

use super::spot::{Places, Spot};

/// The number of the bucket of what is due already; both wheels have one.
pub(super) const OVERDUE: u32 = u32::MAX - 1;

/// An empty bucket keeps room for this many entries, so that a lone timeout does not allocate each time.
const KEPT: usize = 4;

/// A bucket of at most this many entries is read again after a removal, so its earliest deadline is exact.
const REREAD: usize = 8;

/// An array of so many entries no longer doubles when it is full.
const LONG: usize = 1 << 9;

/// A value and the tick at which it is due.
pub(super) type Entry<V> = (u64, V);

/// The values of one slot.
pub(super) struct Bucket<V> {
    entries: Vec<Entry<V>>,
    /// `u64::MAX` when empty, so that a minimum needs no branch.
    earliest: u64,
}

impl<V> Bucket<V> {
    pub(super) const fn new() -> Self {
        Bucket { entries: Vec::new(), earliest: u64::MAX }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Not later than any deadline in here; `u64::MAX` when empty, but that does not mean empty.
    pub(super) fn earliest(&self) -> u64 {
        self.earliest
    }

    pub(super) fn deadline(&self, position: u32) -> Option<u64> {
        self.entries.get(position as usize).map(|entry| entry.0)
    }

    /// Appends; `id` is this bucket's number, for the report.
    pub(super) fn push(&mut self, id: u32, deadline: u64, value: V, places: &mut impl Places<V>) {
        places.put(&value, Spot::new(id, self.entries.len() as u32));
        self.earliest = self.earliest.min(deadline);
        if self.entries.len() == self.entries.capacity() {
            self.grow();
        }
        self.entries.push((deadline, value));
    }

    /// A long array grows by a quarter at a time. The allocator moves it by its pages, so that costs no more than doubling
    /// does, and far less memory lies idle.
    #[cold]
    fn grow(&mut self) {
        let len = self.entries.len();
        if len >= LONG {
            self.entries.reserve_exact(len / 4);
        }
    }

    /// Takes out the entry at `position`; the last one moves there.
    pub(super) fn remove(&mut self, id: u32, position: u32, places: &mut impl Places<V>) -> Option<V> {
        let at = position as usize;
        if at >= self.entries.len() {
            return None;
        }
        let (_, value) = self.swap_out(id, at, places);
        self.trim();
        if self.entries.len() <= REREAD {
            self.earliest = self.entries.iter().fold(u64::MAX, |min, entry| min.min(entry.0));
        }
        Some(value)
    }

    /// Takes everything out, the last entry at the end.
    pub(super) fn take(&mut self) -> Vec<Entry<V>> {
        self.earliest = u64::MAX;
        std::mem::take(&mut self.entries)
    }

    /// Moves what is due by `now` to the end of `due`, the last entry first. One walk, after which `earliest` is exact.
    pub(super) fn take_due(&mut self, id: u32, now: u64, due: &mut Vec<Entry<V>>, places: &mut impl Places<V>) {
        let mut earliest = u64::MAX;
        // Backwards, so that the entry which fills a gap is one that was seen already and stays.
        for at in (0..self.entries.len()).rev() {
            let deadline = self.entries[at].0;
            if deadline <= now {
                due.push(self.swap_out(id, at, places));
            } else {
                earliest = earliest.min(deadline);
            }
        }
        self.earliest = earliest;
        self.trim();
    }

    /// Gives an emptied array back to an empty bucket, if it is small enough to be kept.
    pub(super) fn reuse(&mut self, emptied: Vec<Entry<V>>) {
        if self.entries.capacity() == 0 && emptied.is_empty() && emptied.capacity() <= KEPT {
            self.entries = emptied;
        }
    }

    fn swap_out(&mut self, id: u32, at: usize, places: &mut impl Places<V>) -> Entry<V> {
        let entry = self.entries.swap_remove(at);
        if let Some((_, moved)) = self.entries.get(at) {
            places.put(moved, Spot::new(id, at as u32));
        }
        entry
    }

    /// To twice the length once three quarters are empty: the removals in between pay for the copying.
    fn trim(&mut self) {
        let (len, capacity) = (self.entries.len(), self.entries.capacity());
        if capacity > KEPT && len < capacity / 4 {
            self.entries.shrink_to(2 * len);
        }
    }
}

/// Entries on their way out, the last one first. If the receiver panics, the rest goes to the bucket of the overdue.
pub(super) struct Leaving<'a, V, P: Places<V>> {
    pub(super) entries: Vec<Entry<V>>,
    pub(super) overdue: &'a mut Bucket<V>,
    /// The wheel's count, lowered as each entry leaves.
    pub(super) len: &'a mut usize,
    pub(super) places: &'a mut P,
}

impl<V, P: Places<V>> Leaving<'_, V, P> {
    /// Hands out everything and returns the emptied array.
    pub(super) fn hand_out(mut self, expired: &mut impl FnMut(V)) -> Vec<Entry<V>> {
        while let Some((_, value)) = self.entries.pop() {
            *self.len -= 1;
            self.places.gone(&value);
            expired(value);
        }
        std::mem::take(&mut self.entries)
    }
}

impl<V, P: Places<V>> Drop for Leaving<'_, V, P> {
    fn drop(&mut self) {
        while let Some((deadline, value)) = self.entries.pop() {
            self.overdue.push(OVERDUE, deadline, value, self.places);
        }
    }
}

#[cfg(test)]
impl<V> Bucket<V> {
    pub(super) fn entries(&self) -> &[Entry<V>] {
        &self.entries
    }

    pub(super) fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    /// What holds at any time, whatever is in here.
    pub(super) fn check(&self) {
        match self.entries.iter().map(|entry| entry.0).min() {
            Some(min) => assert!(self.earliest <= min),
            None => assert_eq!(self.earliest, u64::MAX),
        }
        // A growing array doubles, a shrinking one waits for a quarter.
        assert!(self.capacity() <= 4 * self.len() + 2 * KEPT, "{} for {}", self.capacity(), self.len());
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Tracked;
    use super::*;

    fn filled(deadlines: impl IntoIterator<Item = u64>) -> (Bucket<u32>, Tracked) {
        let (mut bucket, mut places) = (Bucket::new(), Tracked::default());
        for (value, deadline) in (0..).zip(deadlines) {
            bucket.push(3, deadline, value, &mut places);
            bucket.check();
        }
        (bucket, places)
    }

    #[test]
    fn the_neighbour_that_fills_a_gap_is_reported() {
        let (mut bucket, mut places) = filled([10, 20, 30]);
        assert_eq!(bucket.remove(3, 0, &mut places), Some(0));
        assert_eq!(places.spot(2), Spot::new(3, 0));
        assert_eq!(places.spot(1), Spot::new(3, 1));
        assert_eq!(bucket.remove(3, 2, &mut places), None, "a position beyond the end is nothing");
    }

    #[test]
    fn the_earliest_deadline_is_exact_in_a_short_bucket_and_a_bound_in_a_long_one() {
        let (mut bucket, mut places) = filled(100..100 + REREAD as u64 + 3);
        bucket.remove(3, 0, &mut places);
        assert_eq!(bucket.earliest(), 100, "not read again");
        while bucket.len() > REREAD {
            let last = bucket.len() as u32 - 1;
            bucket.remove(3, last, &mut places);
        }
        assert_eq!(bucket.earliest(), 101);
    }

    // B07: the mark of emptiness is a legal deadline.
    #[test]
    fn the_last_tick_is_a_deadline_like_any_other() {
        let (mut bucket, mut places) = filled([u64::MAX]);
        assert_eq!((bucket.is_empty(), bucket.earliest()), (false, u64::MAX));
        assert_eq!(bucket.deadline(0), Some(u64::MAX));
        assert_eq!(bucket.remove(3, 0, &mut places), Some(0));
        assert!(bucket.is_empty());
    }

    // B17: nothing in a bucket is sorted, so the walk must not stop early.
    #[test]
    fn one_walk_takes_out_all_that_is_due_and_nothing_else() {
        for due in 0u32..1 << 7 {
            let deadline = |value: u32| {
                if due >> value & 1 == 1 { 50 } else { 60 + u64::from(value) }
            };
            let (mut bucket, mut places) = filled((0..7).map(deadline));
            let mut taken = Vec::new();
            bucket.take_due(3, 50, &mut taken, &mut places);
            bucket.check();
            let expected: Vec<u32> = (0..7).rev().filter(|value| due >> value & 1 == 1).collect();
            assert_eq!(taken.iter().map(|entry| entry.1).collect::<Vec<_>>(), expected, "the last one first");
            for (position, (deadline, value)) in bucket.entries().iter().enumerate() {
                assert!(*deadline > 50);
                assert_eq!(places.spot(*value), Spot::new(3, position as u32));
            }
            let earliest = bucket.entries().iter().map(|entry| entry.0).min();
            assert_eq!(bucket.earliest(), earliest.unwrap_or(u64::MAX), "exact after a walk");
        }
    }

    #[test]
    fn memory_is_given_back_as_the_entries_leave() {
        let (mut bucket, mut places) = filled(0..10_000);
        for position in (0..10_000).rev() {
            bucket.remove(3, position, &mut places);
            bucket.check();
        }
        assert!(bucket.capacity() <= KEPT);
    }
}
