//! The hashed wheel below its keys.

use super::super::slots::CHUNK;
use super::super::tests::{Check, Tracked, advance};
use super::*;

impl Check for RawHashed<u32, Tracked> {
    fn check(&self) {
        self.bounds.check(self.lists.len());
        assert!(self.lists.len() <= self.mask as usize + 1);
        let mut values = 0;
        self.overdue.slots.check();
        for position in 0..self.overdue.slots.len() {
            let Some((deadline, Some(value))) = self.overdue.slots.get(position) else { continue };
            assert!(*deadline <= self.now);
            assert_eq!(self.tracker.location(*value), Location::new(OVERDUE, position as u32));
            values += 1;
        }
        assert_eq!(self.overdue.slots.values(), values);
        for (number, list) in self.lists.iter().enumerate() {
            list.slots.check();
            let mut earliest = u64::MAX;
            for position in 0..list.slots.len() {
                let Some((deadline, Some(value))) = list.slots.get(position) else { continue };
                assert_eq!(self.tracker.location(*value), Location::new(number as u32, position as u32));
                earliest = earliest.min(*deadline);
                values += 1;
            }
            let bound = self.bounds.get(number);
            let is_visited = self.visit.is_some_and(|(visit, _)| visit.bucket as usize == number);
            assert!(is_visited || bound <= earliest, "the bound of list {number}");
            assert!(is_visited || list.slots.is_empty() == (list.slots.values() == 0));
            let will_be_read = bound <= self.now || list.is_stale || is_visited;
            assert!(bound == earliest || will_be_read, "the bound of list {number} is {bound} instead of {earliest}");
        }
        assert_eq!(self.len, values);
        assert_eq!(self.tracker.len(), self.len);
    }

    fn room(&self) -> (usize, usize) {
        let lists = self.lists.iter().map(|list| list.slots.capacity());
        (lists.sum::<usize>() + self.overdue.slots.capacity(), self.lists.len())
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

// Guards against netty/netty#12888, in which rounds in one slot came in a wrong order.
#[test]
fn rounds_that_share_a_slot_expire_in_their_own_round() {
    for order in [[0u32, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 4, 0, 3, 1]] {
        let mut wheel = ring(8);
        for round in order {
            wheel.insert(5 + 8 * u64::from(round), round);
        }
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
    assert_eq!(wheel.take_cascaded(), 0);
}

#[test]
fn the_ring_has_as_many_lists_as_it_needs() {
    for slots in [512, 1 << 30] {
        let mut wheel = ring(slots);
        for value in 0..1000 {
            wheel.insert(1 + u64::from(value) * 10_000_019, value);
        }
        wheel.check();
        assert!((30..=32).contains(&wheel.lists.len()), "{}", wheel.lists.len());
        let mut due = Vec::new();
        while let Some(next) = wheel.next_expiry() {
            due.extend(advance(&mut wheel, next));
        }
        assert_eq!(due, (0..1000).collect::<Vec<u32>>());
        assert!(wheel.room().0 <= 16 && wheel.room().1 <= 1, "{:?}", wheel.room());
    }
}

// An empty list has the bound of one whose values are all at the last tick.
#[test]
fn the_last_tick_is_found_among_empty_lists() {
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
fn a_stale_bound_causes_no_second_wake_up() {
    let mut wheel = ring(4);
    for value in 0..400 {
        wheel.insert(100 + u64::from(value), value);
    }
    for value in 0..40 {
        let location = wheel.tracker.location(value);
        assert_eq!(wheel.remove(location, |_| true), Some(value));
        wheel.tracker.forget(value);
    }
    assert_eq!(wheel.next_expiry(), Some(100), "a lower bound");
    assert!(advance(&mut wheel, 100).is_empty());
    assert_eq!(wheel.next_expiry(), Some(140));
}

#[test]
fn a_long_list_is_read_in_short_steps() {
    let mut wheel = ring(1);
    for value in 0..1000 {
        wheel.insert(10 + u64::from(value % 2), value);
    }
    let (mut due, mut steps) = (Slots::default(), 0);
    while wheel.take_next(10, &mut due) {
        assert!(due.len() <= STEP);
        due.drain(|chunk| chunk.iter().for_each(|slot| wheel.tracker.forget(slot.1.unwrap())));
        wheel.check();
        steps += 1;
        // Meanwhile values come and go.
        wheel.insert(20, 1000 + steps);
        if steps < 200 {
            let location = wheel.tracker.location(999 - 2 * steps);
            assert_eq!(wheel.remove(location, |_| true), Some(999 - 2 * steps));
            wheel.tracker.forget(999 - 2 * steps);
        }
    }
    assert!(steps >= 800 / STEP as u32);
    assert_eq!(wheel.next_expiry(), Some(11));
}

#[test]
fn a_list_that_is_emptied_between_two_steps_leaves_no_bound() {
    let mut wheel = ring(2);
    // The first list has the values from 0 to 31, and the second one the others.
    for value in 0..44 {
        wheel.insert(if value < 32 { 31 } else { 21 }, value);
    }
    let at = wheel.tracker.location(37);
    assert_eq!(wheel.remove(at, |_| true), Some(37));
    wheel.insert(11, 37);
    assert_eq!(wheel.tracker.location(37), at);
    let remove = |wheel: &mut RawHashed<u32, Tracked>, value| {
        assert_eq!(wheel.remove(wheel.tracker.location(value), |_| true), Some(value));
        wheel.tracker.forget(value);
    };

    let mut due = Slots::default();
    assert!(wheel.take_next(11, &mut due) && due.is_empty());
    assert_eq!(wheel.bounds.get(1), 21, "some values were read");
    remove(&mut wheel, 32);
    assert_eq!(wheel.bounds.get(1), 11, "all values were read");
    assert!(wheel.take_next(11, &mut due) && !due.is_empty());
    due.clear();
    wheel.tracker.forget(37);
    for value in (33..37).chain(38..44) {
        remove(&mut wheel, value);
    }
    assert_eq!((wheel.lists.len(), wheel.bounds.get(1)), (2, 11));
    assert!((0..4).any(|_| !wheel.take_next(11, &mut due)), "the steps come to an end");
    wheel.check();
    assert_eq!(wheel.next_expiry(), Some(31));
}

#[test]
fn a_round_that_is_late_is_read_in_short_steps() {
    const SLOTS: u64 = 1 << 10;
    const VALUES: u32 = 12_000;
    let mut wheel = ring(SLOTS as usize);
    for value in 0..VALUES {
        wheel.insert(1 + u64::from(value) * 7_919 % (2 * SLOTS), value);
    }
    let (mut due, mut steps, mut expired) = (Slots::default(), 0, 0);
    while wheel.take_next(SLOTS, &mut due) {
        assert!(due.len() < 2 * STEP, "{} at once", due.len());
        expired += due.len();
        due.drain(|chunk| chunk.iter().for_each(|slot| wheel.tracker.forget(slot.1.unwrap())));
        steps += 1;
    }
    let late = (0..VALUES).filter(|value| u64::from(*value) * 7_919 % (2 * SLOTS) < SLOTS).count();
    assert_eq!(expired, late);
    // Each step reads as many slots as it may, and each value is read once.
    let lists = wheel.lists.len();
    assert!(steps <= (VALUES as usize + 2 * lists) / STEP * 2, "{steps} steps for {lists} lists");
    wheel.check();
}

#[test]
fn a_removal_moves_one_chunk_to_another_list() {
    const OTHERS: u32 = 3_200;
    const LAST: std::ops::Range<u32> = OTHERS..OTHERS + 3 * CHUNK as u32;
    let mut wheel = ring(512);
    for value in 0..OTHERS {
        wheel.insert(1_000, value);
    }
    let last = wheel.lists.len() as u32 - 1;
    let count_in_last =
        |wheel: &RawHashed<u32, Tracked>| LAST.filter(|value| wheel.tracker.location(*value).bucket == last).count();
    for value in LAST {
        wheel.insert(512 + u64::from(last), value);
    }
    assert_eq!(count_in_last(&wheel), LAST.len());
    for value in (0..OTHERS).rev() {
        let before = count_in_last(&wheel);
        let location = wheel.tracker.location(value);
        assert_eq!(wheel.remove(location, |_| true), Some(value));
        wheel.tracker.forget(value);
        let moved = before - count_in_last(&wheel);
        assert!(moved <= CHUNK, "{moved} values at once");
        if moved > 0 {
            wheel.check();
        }
    }
    assert_eq!(count_in_last(&wheel), 0);
}

#[test]
fn a_ring_that_shrinks_frees_no_list() {
    let mut wheel = ring(1 << 20);
    for value in 0..10_000 {
        wheel.insert(1 + u64::from(value), value);
    }
    let (mut discarded, lists) = (0, wheel.lists.len());
    let mut due = Slots::default();
    while wheel.take_next(10_000, &mut due) {
        discarded += wheel.take_discarded().room().1;
        due.drain(|chunk| chunk.iter().for_each(|slot| wheel.tracker.forget(slot.1.unwrap())));
    }
    assert!(lists > 300 && wheel.lists.len() <= 1 && discarded >= lists - 1, "{discarded} of {lists}");
}

#[test]
fn a_list_that_is_filled_again_and_again_has_few_positions() {
    let mut wheel = ring(1);
    for tick in 1..=50 {
        for value in 0..CHUNK as u32 + 4 {
            wheel.insert(tick, value);
        }
        assert_eq!(advance(&mut wheel, tick).len(), CHUNK + 4);
        let positions = wheel.lists.get(0).map_or(0, |list| list.slots.len());
        assert!(positions <= 3 * CHUNK, "{positions} positions after {tick} ticks");
    }
}

#[test]
fn a_late_list_has_its_bound_until_it_is_read() {
    let mut wheel = ring(1);
    for value in 0..3 * STEP as u32 {
        wheel.insert(11, value);
    }
    let mut due = Slots::default();
    let mut values = 3 * STEP;
    while values > 0 {
        assert_eq!(wheel.earliest(), Some(11));
        assert!(wheel.take_next(20, &mut due));
        values -= due.len();
        due.drain(|chunk| chunk.iter().for_each(|slot| wheel.tracker.forget(slot.1.unwrap())));
    }
    assert_eq!(wheel.earliest(), None);
}

#[test]
fn an_emptied_list_has_no_bound_of_a_value_that_came_while_it_was_read() {
    let mut wheel = ring(1);
    for value in 0..2 * STEP as u32 {
        wheel.insert(11, value);
    }
    let mut due = Slots::default();
    assert!(wheel.take_next(20, &mut due));
    assert_eq!(due.len(), STEP);
    due.drain(|chunk| chunk.iter().for_each(|slot| wheel.tracker.forget(slot.1.unwrap())));
    // The next value takes the place of one that was not read yet.
    let last = 2 * STEP as u32 - 1;
    let at = wheel.tracker.location(last);
    assert_eq!(wheel.remove(at, |_| true), Some(last));
    wheel.insert(50, last);
    assert_eq!(wheel.tracker.location(last), at);

    assert_eq!(advance(&mut wheel, 100).len(), STEP);
    assert_eq!(wheel.bounds.get(0), u64::MAX);
    wheel.insert(8_193, 0);
    assert_eq!(wheel.next_expiry(), Some(8_193));
}
