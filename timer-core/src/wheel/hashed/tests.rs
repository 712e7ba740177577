//! The hashed wheel below its keys.

use super::super::tests::{Check, Tracked, advance};
use super::*;

impl Check for RawHashed<u32, Tracked> {
    fn check(&self) {
        let (minima, mut values) = (self.minima.check(), 0);
        for (number, list) in self.lists.iter().enumerate() {
            list.check_chunks();
            let mut earliest = u64::MAX;
            for (position, deadline, value) in list.dated() {
                assert_eq!(self.base.tracker.location(*value), Location::new(number as u32, position));
                earliest = earliest.min(deadline);
                values += 1;
            }
            let is_read = self.reading.is_some_and(|reading| reading.list == number);
            assert_eq!(minima[number], list.earliest);
            assert!(is_read || list.earliest <= earliest, "the bound of list {number}");
            assert!(is_read || list.is_empty() == (list.values() == 0));
        }
        self.base.overdue.check();
        for (position, deadline, value) in self.base.overdue.dated() {
            assert!(deadline <= self.base.now);
            assert_eq!(self.base.tracker.location(*value), Location::new(self.base.overdue.name, position));
            values += 1;
        }
        assert_eq!((self.base.len, self.base.tracker.len()), (values, values));
    }

    fn room(&self) -> (usize, usize) {
        let lists = self.lists.iter().map(Bucket::capacity);
        (lists.sum::<usize>() + self.base.overdue.capacity(), 0)
    }
}

fn ring(slots: usize) -> RawHashed<u32, Tracked> {
    RawHashed::new(slots, Tracked::default())
}

fn remove(wheel: &mut RawHashed<u32, Tracked>, value: u32) {
    assert_eq!(wheel.remove(wheel.base.tracker.location(value), |at| *at == value), Some(value));
    wheel.base.tracker.forget(value);
}

/// Takes a step and returns the values.
fn step(wheel: &mut RawHashed<u32, Tracked>, now: u64) -> Vec<u32> {
    let mut due = Bucket::default();
    wheel.take_next(now, &mut due);
    let values: Vec<u32> = due.take_all().map(|(_, value)| value).collect();
    values.iter().for_each(|value| wheel.base.tracker.forget(*value));
    wheel.check();
    values
}

#[test]
fn the_slots_are_in_range_and_rounded_up() {
    for (asked, given) in
        [(0, 1), (1, 1), (2, 2), (3, 4), (500, 512), (512, 512), ((1 << 30) - 1, 1 << 30), (usize::MAX, 1 << 30)]
    {
        assert_eq!(ring(asked).ticks_per_wheel(), given);
    }
    for (ticks, lists) in [(1, 1), (1 << 10, 1 << 10), (1 << 14, 1 << 10), (1 << 16, 1 << 12), (1 << 30, 1 << 14)] {
        assert_eq!(ring(ticks).lists.len(), lists, "{ticks}");
    }
}

// Guards against B17, in which rounds in one slot came in a wrong order.
#[test]
fn rounds_that_share_a_slot_expire_in_their_own_round() {
    for order in [[0u32, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 4, 0, 3, 1]] {
        let mut wheel = ring(8);
        for round in order {
            wheel.insert(5 + 8 * u64::from(round), round);
        }
        for round in 0..5 {
            assert_eq!(wheel.next_deadline(), Some(5 + 8 * u64::from(round)));
            assert!(advance(&mut wheel, 4 + 8 * u64::from(round)).is_empty());
            assert_eq!(advance(&mut wheel, 5 + 8 * u64::from(round)), [round]);
        }
    }
}

// Guards against B07. An empty list has the bound of one whose values are all at the last tick.
#[test]
fn the_last_tick_is_found_among_empty_lists() {
    for slots in [1, 64, 512, 1 << 15] {
        let mut wheel = ring(slots);
        wheel.insert(u64::MAX, 1);
        wheel.insert(u64::MAX - 1, 2);
        wheel.check();
        assert_eq!(wheel.next_deadline(), Some(u64::MAX - 1));
        assert_eq!(advance(&mut wheel, u64::MAX - 1), [2]);
        assert_eq!(wheel.next_deadline(), Some(u64::MAX));
        assert_eq!(advance(&mut wheel, u64::MAX), [1]);
        assert_eq!(wheel.next_deadline(), None);
    }
}

#[test]
fn a_stale_bound_causes_no_second_wake_up() {
    let mut wheel = ring(4);
    for value in 0..400 {
        wheel.insert(100 + u64::from(value), value);
    }
    (0..40).for_each(|value| remove(&mut wheel, value));
    assert_eq!(wheel.next_deadline(), Some(104), "a lower bound");
    assert!(advance(&mut wheel, 104).is_empty());
    assert_eq!(wheel.next_deadline(), Some(140));
}

#[test]
fn a_value_that_is_soon_removed_leaves_no_bound() {
    let mut wheel = ring(1);
    (0..100).for_each(|value| wheel.insert(1_000 + u64::from(value), value));
    for delay in [900, 10, 500, 10] {
        wheel.insert(delay, 100);
        assert_eq!(wheel.next_deadline(), Some(delay));
        remove(&mut wheel, 100);
        wheel.check();
        assert_eq!(wheel.next_deadline(), Some(1_000));
    }
}

#[test]
fn a_removal_from_a_list_that_is_being_read_leaves_the_bound_of_an_insertion() {
    const FULL: u32 = CHUNK as u32;
    let mut wheel = ring(1);
    (0..FULL).for_each(|value| wheel.insert(1, value));
    wheel.insert(100, FULL);
    (FULL + 1..3 * FULL).for_each(|value| wheel.insert(1_000, value));
    assert_eq!(step(&mut wheel, 1).len(), CHUNK);
    // The chunk that was read takes it in. The other value of this tick is in one that was not.
    wheel.insert(100, 0);
    remove(&mut wheel, FULL);
    assert!(wheel.reading.is_some());
    while wheel.reading.is_some() {
        assert!(step(&mut wheel, 1).is_empty());
    }
    assert_eq!(wheel.next_deadline(), Some(100));
    assert_eq!(advance(&mut wheel, 100), [0]);
}

#[test]
fn a_list_is_read_once_although_its_bound_becomes_stale_again() {
    const LISTS: u32 = 8;
    let mut wheel = ring(LISTS as usize);
    let make_stale = |wheel: &mut RawHashed<u32, Tracked>| {
        for list in 0..LISTS {
            [list, list + LISTS].into_iter().for_each(|value| wheel.insert(1_000 + u64::from(list), value));
            [list, list + LISTS].into_iter().for_each(|value| remove(wheel, value));
        }
    };
    // Chunks that are full, so that a step reads one list.
    for value in 2 * LISTS..LISTS * (CHUNK as u32 + 2) {
        wheel.insert(10_000 + u64::from(value), value);
    }
    for now in [10, 1_004] {
        let mut steps = 0;
        make_stale(&mut wheel);
        while wheel.take_next(now, &mut Bucket::default()) {
            steps += 1;
            assert!(steps <= LISTS, "a list was read twice");
            make_stale(&mut wheel);
        }
        assert!(steps > 0);
    }
    // The clock has moved, so each list is read once more.
    assert!(advance(&mut wheel, 1_007).is_empty());
    assert_eq!(wheel.next_deadline(), Some(10_000 + 2 * u64::from(LISTS)));
}

#[test]
fn a_long_list_is_read_a_chunk_at_a_time() {
    const VALUES: u32 = 60 * CHUNK as u32;
    let mut wheel = ring(1);
    for value in 0..VALUES {
        wheel.insert(if value % 10 == 0 { 10 } else { 1000 }, value);
    }
    let (mut steps, mut expired) = (0, 0);
    while wheel.earliest() == Some(10) {
        let due = step(&mut wheel, 10);
        assert!(due.len() <= 2 * CHUNK / 10 && due.iter().all(|value| value % 10 == 0));
        expired += due.len();
        // Values come and go between the steps, also in chunks that will be read.
        wheel.insert(900 + steps, VALUES + steps as u32);
        let left = VALUES - CHUNK as u32 * steps.min(20) as u32;
        for value in (left - CHUNK as u32..left).filter(|value| steps < 20 && value % 10 != 0) {
            remove(&mut wheel, value);
        }
        steps += 1;
    }
    assert!(expired == VALUES as usize / 10 && steps >= 38, "{expired} in {steps} steps");
    assert_eq!(wheel.next_deadline(), Some(900));
}

#[test]
fn a_list_that_is_emptied_while_it_is_read_leaves_no_bound() {
    let mut wheel = ring(1);
    for value in 0..4 * CHUNK as u32 {
        wheel.insert(11, value);
    }
    let due = step(&mut wheel, 20);
    assert!(due.len() == CHUNK && wheel.earliest() == Some(11));
    let left = (0..4 * CHUNK as u32).filter(|value| !due.contains(value));
    left.collect::<Vec<_>>().into_iter().for_each(|value| remove(&mut wheel, value));
    assert_eq!((wheel.earliest(), wheel.room().0), (None, 0));
    wheel.insert(8_193, 0);
    assert_eq!(wheel.next_deadline(), Some(8_193));
}

#[test]
fn a_round_that_is_late_is_read_in_few_steps() {
    const SLOTS: u64 = 1 << 10;
    const VALUES: u32 = 6_000;
    let mut wheel = ring(SLOTS as usize);
    for value in 0..VALUES {
        wheel.insert(1 + u64::from(value) * 7_919 % (2 * SLOTS), value);
    }
    let (mut steps, mut expired) = (0, 0);
    while wheel.earliest().is_some_and(|earliest| earliest <= SLOTS) {
        let due = step(&mut wheel, SLOTS).len();
        assert!(due < 2 * CHUNK, "{due} at once");
        (expired, steps) = (expired + due, steps + 1);
    }
    assert_eq!(expired, (0..VALUES).filter(|value| u64::from(*value) * 7_919 % (2 * SLOTS) < SLOTS).count());
    assert!(steps <= VALUES as usize / CHUNK * 2, "{steps} steps");
}

#[test]
fn a_list_that_is_filled_again_and_again_has_few_positions() {
    let mut wheel = ring(1);
    for tick in 1..=50 {
        for value in 0..CHUNK as u32 + 4 {
            wheel.insert(tick, value);
        }
        assert_eq!(advance(&mut wheel, tick).len(), CHUNK + 4);
        let positions = wheel.lists[0].len();
        assert!(positions <= 3 * CHUNK, "{positions} positions after {tick} ticks");
    }
}
