//! The ranks of values, moves to later, and long buckets.

mod model;

use super::*;

/// The number of ranks that share a tick.
const RANKS: u64 = 5;

fn tick_of(rank: u64) -> u64 {
    rank.div_ceil(RANKS)
}

fn insert(wheel: &mut QueueWheel<()>, rank: u64) -> Key {
    wheel.insert(tick_of(rank), Ranked::new(rank, ()), 0)
}

#[test]
fn values_of_one_tick_come_in_the_order_of_ranks() {
    let mut wheel = QueueWheel::new();
    let keys = [57, 53, 59, 51, 55, 58, 52].map(|rank| insert(&mut wheel, rank));
    assert_eq!(wheel.peek(tick_of), Some(keys[3]));
    assert!(!wheel.collect(10, tick_of));
    let mut popped = Vec::new();
    while wheel.collect(12, tick_of) {
        while let Some((key, value)) = wheel.pop() {
            assert!(wheel.remove(key).is_none());
            popped.push(value.rank());
        }
    }
    assert_eq!(popped, [51, 52, 53, 55, 57, 58, 59]);
}

#[test]
fn a_value_that_is_moved_to_later_is_linked_again_once() {
    let mut wheel = QueueWheel::new();
    let [moved, other] = [50, 1_000].map(|rank| insert(&mut wheel, rank));
    for rank in [60, 3_000, 2_000] {
        assert!(wheel.relink(moved, tick_of(rank), rank, 0));
    }
    assert_eq!(wheel.peek(tick_of), Some(other));
    // The last move was to an earlier rank.
    assert_eq!(wheel.next(), Some(200));
    assert!(wheel.relink(other, 1_000, 5_000, 0));
    assert_eq!((wheel.peek(tick_of), wheel.next()), (Some(moved), Some(200)));
    assert!(!wheel.collect(399, tick_of));
    assert_eq!(wheel.next(), Some(400));
    assert!(wheel.collect(400, tick_of));
    assert_eq!(wheel.pop().map(|(key, _)| key), Some(moved));
    assert!(!wheel.collect(999, tick_of) && wheel.collect(1_000, tick_of));
}

// The bucket of these values is longer than a chunk, so it cascades in steps.
#[test]
fn a_value_that_is_moved_to_later_is_not_early_after_its_neighbors_are_removed() {
    let mut wheel = QueueWheel::new();
    let keys: Vec<Key> = (0..40).map(|_| insert(&mut wheel, 320)).collect();
    for key in &keys[1..] {
        assert!(wheel.relink(*key, tick_of(5_000), 5_000, 0));
    }
    assert!(wheel.collect(64, tick_of));
    assert_eq!(wheel.pop().map(|(key, _)| key), Some(keys[0]));
    assert!(keys[1..39].iter().all(|key| wheel.remove(*key).is_some()));
    assert!(!wheel.collect(999, tick_of));
    assert!(wheel.collect(1_000, tick_of));
    assert_eq!(wheel.pop().map(|(key, _)| key), Some(keys[39]));
}

#[test]
fn the_values_of_a_tick_come_in_the_order_of_ranks_from_a_long_bucket() {
    let mut wheel = QueueWheel::new();
    for nth in 0..40 {
        insert(&mut wheel, 320 - nth / 8);
    }
    let mut popped = Vec::new();
    while wheel.collect(64, tick_of) {
        popped.extend(std::iter::from_fn(|| wheel.pop()).map(|(_, value)| value.rank()));
    }
    assert!(popped.len() == 40 && popped.is_sorted(), "{popped:?}");
}

// The rank of a value that is due at once belongs to the next tick.
#[test]
fn a_late_value_that_is_moved_to_the_present_is_due_at_once() {
    let mut wheel = QueueWheel::new();
    let key = insert(&mut wheel, 50);
    assert!(wheel.relink(key, 0, 62, 12));
    assert!(wheel.collect(12, tick_of));
}
