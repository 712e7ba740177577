use super::super::tests::Tracked;
use super::*;

impl<V> Bucket<V> {
    /// The positions, deadlines and values of all places that are not vacant.
    pub(in crate::wheel) fn entries(&self) -> impl Iterator<Item = (u32, u64, &V)> + Clone {
        (0..).zip(&self.places).filter_map(|(position, place)| place.1.as_ref().map(|value| (position, place.0, value)))
    }

    pub(in crate::wheel) fn capacity(&self) -> usize {
        self.places.capacity()
    }

    /// What holds at any time, whatever is in here.
    pub(in crate::wheel) fn check(&self) {
        match self.entries().map(|(_, deadline, _)| deadline).min() {
            Some(min) => assert!(self.earliest <= min),
            None => assert_eq!((self.earliest, self.places.len()), (u64::MAX, 0)),
        }
        let (mut vacancies, mut vacant) = (0, self.vacant);
        while let Some(place) = self.places.get(vacant as usize) {
            vacancies += 1;
            assert!(place.1.is_none() && vacancies <= self.vacancies, "the chain leads to a value, or in a circle");
            vacant = place.0 as u32;
        }
        assert_eq!((vacant, vacancies), (END, self.vacancies));
        assert_eq!(self.places.len() - self.entries().count(), vacancies as usize, "none is lost");
        // A growing array doubles, a shrinking one waits for a quarter.
        assert!(self.capacity() <= 4 * self.len() + 2 * KEPT, "{} for {}", self.capacity(), self.len());
    }
}

fn filled(deadlines: impl IntoIterator<Item = u64>) -> (Bucket<u32>, Tracked) {
    let (mut bucket, mut tracker) = (Bucket::new(), Tracked::default());
    for (value, deadline) in (0..).zip(deadlines) {
        bucket.push(3, deadline, value, &mut tracker);
        bucket.check();
    }
    (bucket, tracker)
}

fn remove(bucket: &mut Bucket<u32>, position: u32, tracker: &mut Tracked) -> Option<u32> {
    let removed = bucket.remove_and_compact(3, position, |_| true, tracker);
    bucket.check();
    removed
}

#[test]
fn a_removal_moves_none_the_latest_is_filled_first() {
    let (mut bucket, mut tracker) = filled([10, 20, 30, 40]);
    assert_eq!(remove(&mut bucket, 0, &mut tracker), Some(0));
    assert_eq!(remove(&mut bucket, 2, &mut tracker), Some(2));
    assert_eq!((tracker.location(1), tracker.location(3)), (Location::new(3, 1), Location::new(3, 3)));
    assert_eq!((bucket.len(), bucket.get(2)), (2, None));
    for (value, position) in [(4, 2), (5, 0), (6, 4)] {
        bucket.push(3, 50, value, &mut tracker);
        bucket.check();
        assert_eq!(tracker.location(value), Location::new(3, position));
    }
}

#[test]
fn only_the_value_that_is_wanted_is_removed() {
    let (mut bucket, _) = filled([10, 20, 30]);
    assert_eq!(bucket.remove(1, |value| *value == 2), None);
    assert_eq!(bucket.remove(1, |value| *value == 1), Some((20, 1)));
    assert_eq!(bucket.remove(1, |_| true), None, "vacant");
    assert_eq!(bucket.remove(3, |_| true), None, "a position beyond the end is nothing");
    bucket.check();
}

#[test]
fn a_sparse_bucket_closes_up_and_tracks_the_moved() {
    let (mut bucket, mut tracker) = filled(0..64);
    for position in (0..64).filter(|position| position % 5 != 0) {
        remove(&mut bucket, tracker.location(position).position(), &mut tracker);
    }
    assert!(bucket.capacity() < 64);
    for (position, deadline, value) in bucket.entries() {
        assert_eq!((deadline, tracker.location(*value)), (u64::from(*value), Location::new(3, position)));
    }
}

#[test]
fn the_earliest_is_exact_in_a_short_bucket() {
    let (mut bucket, mut tracker) = filled(100..100 + REREAD as u64 + 3);
    remove(&mut bucket, 0, &mut tracker);
    assert_eq!(bucket.earliest(), 100, "not read again");
    while bucket.len() > REREAD {
        let last = bucket.len() as u32;
        remove(&mut bucket, last, &mut tracker);
    }
    assert_eq!(bucket.earliest(), 101);
}

// B07: the mark of emptiness is a legal deadline.
#[test]
fn the_last_tick_is_a_deadline_like_any_other() {
    let (mut bucket, mut tracker) = filled([u64::MAX]);
    assert_eq!((bucket.is_empty(), bucket.earliest()), (false, u64::MAX));
    assert_eq!(bucket.get(0), Some((u64::MAX, &0)));
    assert_eq!(remove(&mut bucket, 0, &mut tracker), Some(0));
    assert!(bucket.is_empty());
}

// B17: nothing in a bucket is sorted, so the walk must not stop early.
#[test]
fn one_walk_takes_all_that_is_due_and_no_more() {
    for due in 0u32..1 << 7 {
        let deadline = |value: u32| {
            if due >> value & 1 == 1 { 50 } else { 60 + u64::from(value) }
        };
        let (mut bucket, mut tracker) = filled((0..7).map(deadline));
        let mut taken = Vec::new();
        bucket.take_due(3, 50, &mut taken, &mut tracker);
        bucket.check();
        let expected: Vec<u32> = (0..7).filter(|value| due >> value & 1 == 1).collect();
        assert_eq!(taken.iter().filter_map(|entry| entry.1).collect::<Vec<_>>(), expected, "as they came");
        for (position, deadline, value) in bucket.entries() {
            assert!(deadline > 50);
            assert_eq!(tracker.location(*value), Location::new(3, position));
        }
        let earliest = bucket.entries().map(|(_, deadline, _)| deadline).min();
        assert_eq!(bucket.earliest(), earliest.unwrap_or(u64::MAX), "exact after a walk");
    }
}

#[test]
fn memory_is_given_back_as_the_values_leave() {
    for from_the_end in [false, true] {
        let (mut bucket, mut tracker) = filled(0..1_000);
        for nth in 0..1_000u32 {
            let value = if from_the_end { 999 - nth } else { nth };
            let location = tracker.location(value);
            assert_eq!(remove(&mut bucket, location.position(), &mut tracker), Some(value));
        }
        assert!(bucket.capacity() <= KEPT);
    }
}
