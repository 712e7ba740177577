use super::super::tests::{Check, Tracked, advance};
use super::*;

impl Check for RawHashed<u32, Tracked> {
    const EACH_STEP_TAKES: bool = true;

    fn check(&self) {
        let mut len = self.overdue.len();
        for (slot, bucket) in self.buckets.check().0 {
            bucket.check();
            assert!(slot <= self.mask || bucket.is_empty());
            for (position, deadline, value) in bucket.entries() {
                assert_eq!(deadline as u32 & self.mask, slot);
                assert_eq!(self.tracker.location(*value), Location::new(slot, position));
            }
            len += bucket.len();
        }
        self.overdue.check();
        for (position, deadline, value) in self.overdue.entries() {
            assert!(deadline <= self.now);
            assert_eq!(self.tracker.location(*value), Location::new(OVERDUE, position));
        }
        assert_eq!(self.len, len);
        assert_eq!(self.tracker.len(), len);
    }

    fn room(&self) -> (usize, usize) {
        let (buckets, pages) = self.buckets.check();
        let room: usize = buckets.iter().map(|(_, bucket)| bucket.capacity()).sum();
        (room + self.overdue.capacity(), pages)
    }
}

fn ring(slots: usize) -> RawHashed<u32, Tracked> {
    RawHashed::new(slots, Tracked::default())
}

#[test]
fn the_slots_are_in_range_and_rounded_up() {
    for (asked, given) in
        [(0, 1), (1, 1), (2, 2), (3, 4), (500, 512), (512, 512), ((1 << 30) - 1, 1 << 30), (usize::MAX, 1 << 30)]
    {
        assert_eq!(ring(asked).ticks_per_wheel(), given);
    }
}

// B17: rounds in one slot come in any order.
#[test]
fn rounds_that_share_a_slot_expire_in_their_own_round() {
    for order in [[0u32, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 4, 0, 3, 1]] {
        let mut wheel = ring(8);
        for round in order {
            wheel.insert(5 + 8 * u64::from(round), round);
        }
        assert_eq!(wheel.buckets.check().0.iter().filter(|(_, bucket)| !bucket.is_empty()).count(), 1);
        for round in 0..5 {
            assert_eq!(wheel.next_expiry(), Some(5 + 8 * u64::from(round)));
            assert!(advance(&mut wheel, 4 + 8 * u64::from(round)).is_empty());
            assert_eq!(advance(&mut wheel, 5 + 8 * u64::from(round)), [round]);
        }
    }
}

#[test]
fn a_value_is_not_moved_while_it_waits() {
    let mut wheel = ring(8);
    wheel.insert(8_005, 1);
    let location = wheel.tracker.location(1);
    for now in 0..8_005 {
        assert!(advance(&mut wheel, now).is_empty());
        assert_eq!(wheel.tracker.location(1), location);
    }
    assert_eq!(advance(&mut wheel, 8_005), [1]);
    assert_eq!(wheel.take_carried(), 0);
}

#[test]
fn the_largest_wheel_has_pages_for_its_values_only() {
    let mut wheel = ring(1 << 30);
    for value in 0..100 {
        wheel.insert(1 + u64::from(value) * 10_000_019, value);
    }
    wheel.check();
    assert!(wheel.room().1 <= 100 * 5);
    let mut due = Vec::new();
    while let Some(next) = wheel.next_expiry() {
        due.extend(advance(&mut wheel, next));
    }
    assert_eq!(due, (0..100).collect::<Vec<u32>>());
    assert!(wheel.room().1 <= 16, "a few spare pages");
}

#[test]
fn a_wheel_of_512_slots_is_compact() {
    let mut wheel = ring(512);
    for value in 0..10_000 {
        wheel.insert(1 + u64::from(value), value);
    }
    assert_eq!(wheel.room().1, 9, "eight pages of buckets and their root");
}

// B07: an empty page reads like one whose values are all at the last tick.
#[test]
fn the_last_tick_is_found_among_empty_slots() {
    for slots in [1, 64, 512, 1 << 15] {
        let mut wheel = ring(slots);
        wheel.insert(u64::MAX, 1);
        wheel.insert(u64::MAX - 1, 2);
        wheel.check();
        assert_eq!(wheel.next_expiry(), Some(u64::MAX - 1));
        assert_eq!(advance(&mut wheel, u64::MAX - 1), [2]);
        assert_eq!(wheel.next_expiry(), Some(u64::MAX));
        assert_eq!(advance(&mut wheel, u64::MAX), [1]);
        assert_eq!(wheel.next_expiry(), None);
    }
}

#[test]
fn a_stale_bound_is_made_exact_by_the_visit_it_causes() {
    let mut wheel = ring(1);
    for value in 0..20 {
        wheel.insert(100 + u64::from(value), value);
    }
    let first = wheel.tracker.location(0);
    assert_eq!(wheel.remove(first, |_| true), Some(0));
    wheel.tracker.forget(0);
    assert_eq!(wheel.next_expiry(), Some(100), "a lower bound");
    assert!(advance(&mut wheel, 100).is_empty());
    assert_eq!(wheel.next_expiry(), Some(101));
}

/// A bucket whose earliest value has left is read, and then no more until the next one is due.
#[test]
fn a_step_that_takes_nothing_is_not_told_as_one() {
    let mut wheel = ring(1);
    for value in 0..20 {
        wheel.insert(10 * (1 + u64::from(value)), value);
    }
    let location = wheel.tracker().location(0);
    assert_eq!(wheel.remove(location, |value| *value == 0), Some(0));
    wheel.tracker_mut().forget(0);
    assert_eq!(wheel.earliest(), Some(10), "as before: the bucket is long");
    let mut taken = Vec::new();
    assert!(!wheel.take_next(15, &mut taken) && taken.is_empty());
    assert_eq!(wheel.earliest(), Some(20));
    assert_eq!(advance(&mut wheel, 20), [1]);
}
