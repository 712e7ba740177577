//! The heap of a delay queue per item, and after a peak.

use crate::heap::*;
use crate::support::*;
use std::task::{Context, Poll, Waker};
use timer_core::delay_queue::{DelayMap, DelayQueue};
use timer_core::wheel::{HierarchicalWheel, TimingWheel};

/// Bytes that an item of 8 bytes may take.
const ITEM: usize = 60;

/// A number of items that is slightly more than a power of two.
const ABOVE_A_POWER: usize = MILLION.next_power_of_two() + MILLION / 50;

#[test]
fn an_item_takes_60_bytes_and_frees_them() {
    let _alone = exclusive();
    let (timer, mut driver) = manual(WHEELS[0]);
    let mut cx = Context::from_waker(Waker::noop());
    // The last number is slightly more than a power of two, at which an array that doubles is half
    // empty.
    for (spread, items) in [(SECOND, MILLION), (60 * SECOND, MILLION), (HOUR, MILLION), (HOUR, ABOVE_A_POWER)] {
        let mark = Mark::set();
        let mut queue = DelayQueue::new(&timer);
        let mut random = Rng::with_seed(1);
        for id in 0..items as u64 {
            queue.insert(id, random.duration(spread));
        }
        assert_at_most(&format!("{items} items within {spread:?}"), mark.grown(), ITEM * items + TABLES);
        driver.advance(HOUR);
        for _ in 0..items {
            assert!(matches!(queue.poll_expired(&mut cx), Poll::Ready(Some(_))));
        }
        assert_at_most("the empty queue", mark.grown(), TABLES + NOISE);
    }
}

#[test]
fn a_queue_frees_its_peak_while_items_are_left() {
    let _alone = exclusive();
    let (timer, _driver) = manual(WHEELS[0]);
    let mark = Mark::set();
    let mut queue = DelayQueue::new(&timer);
    let mut map = DelayMap::new(&timer);
    let keys: Vec<_> = (0..MILLION as u64).map(|id| queue.insert(id, HOUR)).collect();
    (0..MILLION as u64).for_each(|id| _ = map.insert(id, (), HOUR));
    let peak = mark.grown();
    for key in &keys[100..] {
        queue.remove(key);
    }
    (100..MILLION as u64).for_each(|id| _ = map.remove(&id));
    drop(keys);
    queue.shrink_to_fit();
    map.shrink_to_fit();
    println!("{peak} bytes at the peak");
    assert_at_most("200 items after a peak", mark.grown(), TABLES + NOISE);
}

#[test]
fn an_empty_keyed_wheel_keeps_nothing_of_its_cascades() {
    let _alone = exclusive();
    let mark = Mark::set();
    let mut wheel = HierarchicalWheel::new();
    for nth in 0..MILLION as u64 {
        wheel.insert(40_960 + nth % 4_096, ());
    }
    wheel.advance(40_960, |()| {});
    wheel.advance(90_000, |()| {});
    assert_eq!(wheel.len(), 0);
    assert_at_most("the empty wheel", mark.grown(), TABLES + NOISE);
}
