//! The deadlines of items, moves to later, and long buckets.

mod model;

use super::*;
use crate::wheel::CHUNK;
use std::time::Duration;

/// The length of a tick in nanoseconds.
const TICK: u64 = 5;

/// Returns items whose wheel counts ticks of [`TICK`] from zero.
fn items<T>() -> Items<T> {
    Items { resolution: Resolution::ticks(TICK), ..Items::new(Timer::global(), usize::MAX) }
}

fn insert(items: &mut Items<()>, nanos: u64) -> Key {
    items.insert((), Deadline::up(nanos), 0).0
}

/// Moves an item at time zero. Returns `false` if it is gone.
fn reset(items: &mut Items<()>, key: Key, nanos: u64) -> bool {
    items.reset(key, Deadline::up(nanos), 0).is_some()
}

/// Collects the items that are due by a tick. Returns `false` if there are none.
fn collect<T>(items: &mut Items<T>, now: u64) -> bool {
    items.collect(now) == Some(true)
}

/// Takes the next of the collected items. Returns its key and its deadline.
fn pop<T>(items: &mut Items<T>) -> Option<(Key, u64)> {
    items.pop().map(|expired| (expired.key, clock::nanos_of(expired.deadline)))
}

#[test]
fn items_of_one_tick_come_in_the_order_of_deadlines() {
    let mut items = items();
    let keys = [57, 53, 59, 51, 55, 58, 52].map(|nanos| insert(&mut items, nanos));
    assert_eq!(items.peek(), Some(keys[3]));
    assert!(!collect(&mut items, 10));
    let mut popped = Vec::new();
    while collect(&mut items, 12) {
        while let Some((key, nanos)) = pop(&mut items) {
            assert!(items.remove(key).is_none());
            popped.push(nanos);
        }
    }
    assert_eq!(popped, [51, 52, 53, 55, 57, 58, 59]);
}

#[test]
fn a_due_item_that_was_removed_may_have_lost_its_row() {
    let mut items = items();
    let keys = [51, 54, 52, 53].map(|nanos| insert(&mut items, nanos));
    assert!(collect(&mut items, 11));
    assert!(items.remove(keys[3]).is_some());
    items.shrink_to_fit();
    let order: Vec<Key> = std::iter::from_fn(|| pop(&mut items)).map(|(key, _)| key).collect();
    assert_eq!(order, [keys[0], keys[2], keys[1]]);
}

#[test]
fn an_overdue_item_is_named_before_one_of_a_later_tick() {
    let (timer, mut driver) = Timer::builder().build_manual().unwrap();
    let mut items = Items { resolution: Resolution::ticks(TICK), ..Items::new(&timer, usize::MAX) };
    let begin = items.now().next_multiple_of(TICK);
    let later = items.insert((), Deadline::up(begin + 51), begin).0;
    let now = begin + 53;
    driver.advance(Duration::from_nanos(now - items.now()));
    // It was due before the item that is due in the next tick.
    let overdue = items.insert((), Deadline::up(begin + 52), now).0;
    assert_eq!(items.peek(), Some(overdue));
    assert_eq!(items.take_due().ok().map(|expired| expired.key), Some(overdue));
    assert_eq!((items.peek(), items.take_due().is_err()), (Some(later), true));
}

#[test]
fn removals_leave_no_vacant_slot_at_the_end() {
    let mut items = items();
    let keys = [51, 52, 53, 54].map(|nanos| insert(&mut items, nanos));
    assert!(collect(&mut items, 12));
    for (key, left) in [(keys[1], 4), (keys[0], 2), (keys[2], 1), (keys[3], 0)] {
        assert!(items.remove(key).is_some());
        assert_eq!(items.due.len(), left, "the first item is the last one");
    }
}

#[test]
fn an_item_that_is_moved_to_later_is_linked_again_once() {
    let mut items = items();
    let [moved, other] = [50, 1_000].map(|nanos| insert(&mut items, nanos));
    for nanos in [60, 3_000, 2_000] {
        assert!(reset(&mut items, moved, nanos));
    }
    assert_eq!(items.peek(), Some(other));
    // The last move was to an earlier deadline.
    assert_eq!(items.next(), Some(200));
    assert!(reset(&mut items, other, 5_000));
    assert_eq!((items.peek(), items.next()), (Some(moved), Some(200)));
    assert!(!collect(&mut items, 399));
    assert_eq!(items.next(), Some(400));
    assert!(collect(&mut items, 400));
    assert_eq!(pop(&mut items), Some((moved, 2_000)));
    assert!(!collect(&mut items, 999) && collect(&mut items, 1_000));
}

// The bucket of these items is longer than a chunk, so it cascades in steps.
#[test]
fn an_item_that_is_moved_to_later_is_not_early_after_its_neighbors_are_removed() {
    let mut items = items();
    let keys: Vec<Key> = (0..40).map(|_| insert(&mut items, 320)).collect();
    for key in &keys[1..] {
        assert!(reset(&mut items, *key, 5_000));
    }
    assert!(collect(&mut items, 64));
    assert_eq!(pop(&mut items), Some((keys[0], 320)));
    assert!(keys[1..39].iter().all(|key| items.remove(*key).is_some()));
    assert!(!collect(&mut items, 999));
    assert!(collect(&mut items, 1_000));
    assert_eq!(pop(&mut items), Some((keys[39], 5_000)));
}

#[test]
fn the_items_of_a_tick_come_in_the_order_of_deadlines_from_a_long_bucket() {
    let mut items = items();
    for nth in 0..40 {
        insert(&mut items, 320 - nth / 8);
    }
    let mut popped = Vec::new();
    while collect(&mut items, 64) {
        popped.extend(std::iter::from_fn(|| pop(&mut items)).map(|(_, nanos)| nanos));
    }
    assert!(popped.len() == 40 && popped.is_sorted(), "{popped:?}");
}

#[test]
fn each_step_of_a_collection_reads_a_chunk() {
    for (delay, steps) in [(0, 65..80), (50, 65..80), (50_000, 65..150)] {
        let mut items = items();
        items.max_steps = 1;
        let keys: Vec<Key> = (0..64 * CHUNK).map(|_| insert(&mut items, delay)).collect();
        let mut taken = 0;
        let mut collected = 0;
        let removed = keys.iter().step_by(70).filter(|key| {
            taken += 1;
            assert_eq!(items.collect(10_000), None);
            assert!(items.waiting <= collected + CHUNK, "a step collects more than a chunk");
            collected = items.waiting;
            // Some of these items are in the list, some wait for a step, and some are in the wheel.
            let is_removed = items.remove(**key).is_some();
            collected -= usize::from(items.waiting < collected);
            is_removed
        });
        let removed: Vec<Key> = removed.copied().collect();
        while items.collect(10_000).is_none() {
            taken += 1;
        }
        assert!(steps.contains(&taken), "{taken} steps with a delay of {delay}");
        let order = std::iter::from_fn(|| pop(&mut items)).map(|(key, _)| key);
        assert!(order.eq(keys.into_iter().filter(|key| !removed.contains(key))));
    }
}

// The deadline of an item that is due at once belongs to the next tick.
#[test]
fn a_late_item_that_is_moved_to_the_present_is_due_at_once() {
    let mut items = items();
    let key = insert(&mut items, 50);
    assert_eq!(items.reset(key, Deadline::up(62), 62), Some(0));
    assert!(collect(&mut items, 12));
}
