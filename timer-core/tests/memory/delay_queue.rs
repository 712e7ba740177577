//! What an item of a delay queue takes from the heap, and what a queue keeps after a peak.

use crate::heap::*;
use crate::support::*;
use std::task::{Context, Poll, Waker};
use timer_core::delay_queue::{DelayMap, DelayQueue};

/// Bytes of an item with 8 bytes.
const ITEM: usize = 60;

#[test]
fn an_item_takes_60_bytes_and_all_is_given_back() {
    let _alone = alone();
    let (timer, mut driver) = manual(WHEELS[0]);
    let mut cx = Context::from_waker(Waker::noop());
    for spread in [SECOND, 60 * SECOND, HOUR] {
        let mark = Mark::set();
        let mut queue = DelayQueue::new(&timer);
        let mut random = Rng::with_seed(1);
        for id in 0..MILLION as u64 {
            queue.insert(id, random.duration(spread));
        }
        at_most(&format!("{MILLION} items within {spread:?}"), mark.grown(), ITEM * MILLION + TABLES);
        driver.advance(HOUR);
        for _ in 0..MILLION {
            assert!(matches!(queue.poll_expired(&mut cx), Poll::Ready(Some(_))));
        }
        at_most("the empty queue", mark.grown(), TABLES + NOISE);
    }
}

#[test]
fn a_peak_is_given_back_while_items_are_left() {
    let _alone = alone();
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
    at_most("200 items after a peak", mark.grown(), TABLES + NOISE);
}
