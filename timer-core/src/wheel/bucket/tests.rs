//! The bucket of a wheel.

use super::super::tests::Tracked;
use super::upkeep::{MAX_REPLACEMENT, MAX_REREAD};
use super::*;

impl<V> Bucket<V> {
    /// Asserts the invariants of the table, and that each mark has a value and is counted.
    pub(in crate::wheel) fn check_chunks(&self) {
        self.others.iter().for_each(|others| others.check(self.open_number()));
        for number in 0..self.chunks() {
            let values = self.slots_from(number * CHUNK).map_or(0, |part| part.iter().count());
            assert_eq!(values, self.values_of(number).unwrap_or(0), "the count of chunk {number}");
        }
    }

    pub(in crate::wheel) fn values(&self) -> usize {
        (0..self.chunks()).filter_map(|number| self.values_of(number)).sum()
    }

    pub(in crate::wheel) fn capacity(&self) -> usize {
        self.parts().map(|part| part.len()).sum()
    }

    /// Returns the number of positions, which includes vacant slots and gaps.
    pub(in crate::wheel) fn len(&self) -> usize {
        self.chunks() * CHUNK
    }

    /// Returns the positions, deadlines and values of all slots that are not vacant.
    pub(in crate::wheel) fn dated(&self) -> impl Iterator<Item = (u32, u64, &V)> + Clone {
        let at = |position| self.value(position).map(|(deadline, value)| (position, deadline, value));
        (0..self.len() as u32).filter_map(at)
    }

    /// Removes the value at `position` and keeps up the bucket. Also returns the memory that has no
    /// values left.
    fn take_out(&mut self, position: u32, tracker: &mut impl Tracker<V>) -> Option<(V, Discarded<V>)> {
        let (mut discarded, removed) = (Discarded::new(), self.remove(position, |_| true)?);
        let ((deadline, value), needs_upkeep) = removed;
        if needs_upkeep {
            self.keep_up(position, deadline, tracker, &mut discarded);
        }
        Some((value, discarded))
    }

    /// Asserts the invariants of a bucket.
    pub(in crate::wheel) fn check(&self) {
        self.check_chunks();
        match self.dated().map(|(_, deadline, _)| deadline).min() {
            Some(min) => assert!(self.earliest <= min),
            None => assert!(self.earliest == u64::MAX && self.is_empty()),
        }
        assert_eq!((self.values(), self.values as usize), (self.dated().count(), self.values()));
        assert!(self.capacity() <= 4 * self.values() + 2 * CHUNK, "{} for {}", self.capacity(), self.values());
    }
}

fn push(bucket: &mut Bucket<u32>, deadline: u64, value: u32, tracker: &mut impl Tracker<u32>) -> Discarded<u32> {
    let mut discarded = Discarded::new();
    bucket.push((deadline, value), tracker, &mut discarded);
    discarded
}

fn filled(deadlines: impl IntoIterator<Item = u64>) -> (Bucket<u32>, Tracked) {
    let mut bucket = Bucket::new(3);
    let mut tracker = Tracked::default();
    for (value, deadline) in (0..).zip(deadlines) {
        push(&mut bucket, deadline, value, &mut tracker);
        bucket.check();
    }
    (bucket, tracker)
}

fn remove(bucket: &mut Bucket<u32>, position: u32, tracker: &mut Tracked) -> Option<u32> {
    let (removed, _discarded) = bucket.take_out(position, tracker)?;
    bucket.check();
    Some(removed)
}

#[test]
fn a_removal_moves_no_other_value() {
    let (mut bucket, mut tracker) = filled([10, 20, 30, 40]);
    assert_eq!(remove(&mut bucket, 0, &mut tracker), Some(0));
    assert_eq!(remove(&mut bucket, 2, &mut tracker), Some(2));
    assert_eq!((tracker.location(1), tracker.location(3)), (Location::new(3, 1), Location::new(3, 3)));
    assert_eq!((bucket.values(), bucket.value(2)), (2, None));
    for (value, position) in [(4, 0), (5, 2), (6, 4)] {
        push(&mut bucket, 50, value, &mut tracker);
        bucket.check();
        assert_eq!(tracker.location(value), Location::new(3, position), "the first vacant slot is filled first");
    }
}

#[test]
fn only_the_wanted_value_is_removed() {
    let (mut bucket, _) = filled([10, 20, 30]);
    assert_eq!(bucket.remove(1, |value| *value == 2), None);
    assert_eq!(bucket.remove(1, |value| *value == 1), Some(((20, 1), true)));
    assert_eq!(bucket.remove(1, |_| true), None, "vacant");
    assert_eq!(bucket.remove(3, |_| true), None, "there is no slot at this position");
    bucket.check();
}

#[test]
fn a_sparse_bucket_is_compacted() {
    for step in [2, 5, 7, 50] {
        let (mut bucket, mut tracker) = filled(0..500);
        let mut random = fastrand::Rng::with_seed(step);
        let mut removed: Vec<u32> = (0..500).filter(|value| u64::from(*value) % step != 0).collect();
        random.shuffle(&mut removed);
        for value in removed {
            let position = tracker.location(value).position;
            assert_eq!(remove(&mut bucket, position, &mut tracker), Some(value));
        }
        for (position, deadline, value) in bucket.dated() {
            assert_eq!((deadline, tracker.location(*value)), (u64::from(*value), Location::new(3, position)));
        }
        for value in 500..600 {
            push(&mut bucket, 0, value, &mut tracker);
            bucket.check();
        }
    }
}

#[test]
fn the_earliest_is_exact_in_a_short_bucket() {
    let (mut bucket, mut tracker) = filled(100..100 + MAX_REREAD as u64 + 3);
    remove(&mut bucket, 0, &mut tracker);
    assert_eq!(bucket.earliest, 100, "not read again");
    while bucket.values() > MAX_REREAD {
        let last = bucket.values() as u32;
        remove(&mut bucket, last, &mut tracker);
    }
    assert_eq!(bucket.earliest, 101);
}

// Guards against a fault in which the mark of an empty slot was a legal deadline.
#[test]
fn the_last_tick_is_an_ordinary_deadline() {
    let (mut bucket, mut tracker) = filled([u64::MAX]);
    assert_eq!((bucket.is_empty(), bucket.earliest), (false, u64::MAX));
    assert_eq!(bucket.value(0), Some((u64::MAX, &0)));
    assert_eq!(remove(&mut bucket, 0, &mut tracker), Some(0));
    assert!(bucket.is_empty());
}

#[test]
fn a_bucket_gives_back_memory_with_its_values() {
    for from_the_end in [false, true] {
        let (mut bucket, mut tracker) = filled(0..1_000);
        for nth in 0..1_000u32 {
            let value = if from_the_end { 999 - nth } else { nth };
            let location = tracker.location(value);
            assert_eq!(remove(&mut bucket, location.position, &mut tracker), Some(value));
        }
        assert!(bucket.capacity() <= MIN_CAPACITY);
    }
}

/// Counts the values that are moved.
#[derive(Default)]
struct Counting {
    locations: Tracked,
    moved: usize,
}

impl Tracker<u32> for Counting {
    fn moved(&mut self, value: &u32, location: Location) {
        self.moved += 1;
        self.locations.moved(value, location);
    }
}

#[test]
fn a_removal_moves_few_values_of_a_long_bucket() {
    let mut bucket = Bucket::default();
    let mut tracker = Counting::default();
    let mut random = fastrand::Rng::with_seed(4);
    let mut values: Vec<u32> = (0..100 * CHUNK as u32).collect();
    for value in &values {
        push(&mut bucket, 7, *value, &mut tracker);
    }
    assert_eq!((tracker.moved, bucket.capacity()), (values.len(), values.len()), "no insertion moves others");
    tracker.moved = 0;
    random.shuffle(&mut values);
    let table_room = |bucket: &Bucket<u32>| bucket.others.as_ref().map_or(0, |others| others.room().0);
    let (mut most, mut discarded) = (0, 0);
    for value in &values {
        let table = table_room(&bucket);
        let (before, location) = (tracker.moved, tracker.locations.location(*value));
        let (removed, memory) = bucket.take_out(location.position, &mut tracker).unwrap();
        assert_eq!(removed, *value);
        assert!(table_room(&bucket) + memory.room().0 == table, "no removal frees a table, or enlarges it");
        discarded += memory.room().1;
        bucket.check();
        most = most.max(tracker.moved - before);
    }
    assert_eq!(most, CHUNK / 4 - 1);
    assert!(tracker.moved < values.len());
    assert!(discarded >= 100 * CHUNK, "each chunk is given up, and none is freed");
}

#[test]
fn a_removal_allocates_only_a_small_array() {
    let (mut bucket, mut tracker) = filled(0..CHUNK as u64);
    for value in 0..CHUNK as u32 {
        let before = bucket.capacity();
        assert_eq!(remove(&mut bucket, tracker.location(value).position, &mut tracker), Some(value));
        let bytes = bucket.capacity() * size_of::<Slot<u32>>();
        assert!(bucket.capacity() == before || bytes <= MAX_REPLACEMENT, "{value}: {bytes}");
    }
    assert!(bucket.is_empty());
}

#[test]
fn a_queue_of_many_values_moves_none() {
    let standing = 4 * CHUNK as u32;
    let mut bucket = Bucket::default();
    let mut tracker = Counting::default();
    for value in 0..100 * CHUNK as u32 {
        push(&mut bucket, 7, value, &mut tracker);
        if let Some(oldest) = value.checked_sub(standing) {
            let location = tracker.locations.location(oldest);
            assert!(bucket.take_out(location.position, &mut tracker).is_some_and(|(value, _)| value == oldest));
        }
    }
    assert_eq!(tracker.moved, 100 * CHUNK, "each value was placed once");
    assert!(bucket.capacity() <= 6 * CHUNK);
    assert!(bucket.len() <= 8 * CHUNK, "{} positions", bucket.len());
}

#[test]
fn a_growing_bucket_gives_up_its_former_arrays() {
    let (mut bucket, mut tracker) = filled([]);
    let mut given_up = 0;
    for value in 0..CHUNK as u32 {
        let before = bucket.capacity();
        let discarded = push(&mut bucket, 1, value, &mut tracker).room().1;
        // An array for four values may be freed.
        assert_eq!(discarded, if bucket.capacity() > before && before > MIN_CAPACITY { before } else { 0 });
        given_up += discarded;
    }
    assert_eq!(given_up, CHUNK - 2 * MIN_CAPACITY);
}

/// A chunk at the front is open, and all others but the last one are given up before it.
#[test]
fn a_removal_gives_up_few_pieces_of_the_table() {
    const VALUES: u32 = 20 * 64 * CHUNK as u32;
    let mut bucket = Bucket::default();
    let mut tracker = Tracked::default();
    (0..VALUES).for_each(|value| drop(push(&mut bucket, 1, value, &mut tracker)));
    let mut most = 0;
    for value in (0..CHUNK as u32 - 3).chain(2 * CHUNK as u32..VALUES) {
        let (removed, discarded) = bucket.take_out(tracker.location(value).position, &mut tracker).unwrap();
        assert_eq!(removed, value);
        most = most.max(discarded.room().0);
    }
    assert!((64..=2 * 64).contains(&most), "{most} chunks at once");
}

#[test]
fn growing_moves_no_full_chunk() {
    let (mut bucket, mut tracker) = filled(0..CHUNK as u64);
    let first: *const u32 = bucket.value(0).unwrap().1;
    for value in CHUNK as u32..20 * CHUNK as u32 {
        push(&mut bucket, 1, value, &mut tracker);
    }
    assert!(std::ptr::eq(first, bucket.value(0).unwrap().1));
    assert_eq!(bucket.capacity(), 20 * CHUNK);
}

#[test]
fn a_bucket_that_is_used_again_and_again_has_few_positions() {
    const STANDING: u32 = CHUNK as u32 / 2;
    let (mut bucket, mut tracker) = filled([]);
    let mut values = 0..;
    for _ in 0..50 {
        while bucket.values() < CHUNK + STANDING as usize {
            let value = values.next().unwrap();
            push(&mut bucket, 1, value, &mut tracker);
        }
        while bucket.values() > STANDING as usize {
            let oldest = bucket.dated().map(|(_, _, value)| *value).min().unwrap();
            let position = tracker.location(oldest).position;
            assert_eq!(remove(&mut bucket, position, &mut tracker), Some(oldest));
        }
    }
    assert!(bucket.len() <= 3 * CHUNK, "{} positions", bucket.len());
}
