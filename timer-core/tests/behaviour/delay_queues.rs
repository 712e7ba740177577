//! Delay queues: their wake-ups, and threads that share a queue.

use crate::support::wakers::Bell;
use crate::support::*;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};
use timer_core::Timer;
use timer_core::delay_queue::{DelayMap, DelayQueue, Expired, SharedDelayQueue};

fn inner<T>(polled: Poll<Option<Expired<T>>>) -> Poll<Option<T>> {
    polled.map(|expired| expired.map(Expired::into_inner))
}

#[test]
fn a_waiting_task_is_woken_for_the_first_item() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let (bell, waker) = Bell::new();
    let mut cx = Context::from_waker(&waker);
    let mut queue = DelayQueue::new(&timer);
    queue.insert("later", 10 * SECOND);
    assert!(queue.poll_expired(&mut cx).is_pending());
    queue.insert("latest", 20 * SECOND);
    let sooner = queue.insert("sooner", 5 * SECOND);
    driver.advance(4 * SECOND);
    assert_eq!(bell.rung(), 0);
    driver.advance(SECOND);
    assert_eq!(bell.rung(), 1, "the item that was inserted last is due first");
    assert_eq!(inner(queue.poll_expired(&mut cx)), Poll::Ready(Some("sooner")));
    assert!(queue.remove(&sooner).is_none());
    assert!(queue.poll_expired(&mut cx).is_pending());
    driver.advance(15 * SECOND);
    assert_eq!(inner(queue.poll_expired(&mut cx)), Poll::Ready(Some("later")));
    assert_eq!(inner(queue.poll_expired(&mut cx)), Poll::Ready(Some("latest")));
    assert_eq!(inner(queue.poll_expired(&mut cx)), Poll::Ready(None));
    assert_eq!(bell.rung(), 2);
}

#[test]
fn a_reset_to_earlier_wakes_the_task() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let (bell, waker) = Bell::new();
    let mut cx = Context::from_waker(&waker);
    let mut queue = DelayQueue::new(&timer);
    let key = queue.insert("item", 10 * SECOND);
    assert!(queue.poll_expired(&mut cx).is_pending());
    assert!(queue.reset(&key, SECOND));
    driver.advance(SECOND);
    assert_eq!(bell.rung(), 1);
    assert!(queue.reset(&key, 10 * SECOND), "a due item is still in the queue");
    assert!(queue.poll_expired(&mut cx).is_pending());
    driver.advance(10 * SECOND);
    assert_eq!((bell.rung(), inner(queue.poll_expired(&mut cx))), (2, Poll::Ready(Some("item"))));
}

#[test]
fn resets_to_later_wake_the_task_at_most_once() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let (bell, waker) = Bell::new();
    let mut cx = Context::from_waker(&waker);
    let mut queue = DelayQueue::new(&timer);
    let key = queue.insert("item", 10 * SECOND);
    for _ in 0..9 {
        driver.advance(SECOND);
        assert!(queue.reset(&key, 10 * SECOND));
        assert!(queue.poll_expired(&mut cx).is_pending());
        assert_eq!(queue.deadline(&key), Some(timer.now() + 10 * SECOND));
    }
    assert_eq!(bell.rung(), 0);
    for _ in 0..9 {
        driver.advance(SECOND);
        assert!(queue.poll_expired(&mut cx).is_pending());
    }
    assert!(bell.rung() <= 1, "the former deadline was met once");
    driver.advance(SECOND);
    assert_eq!(inner(queue.poll_expired(&mut cx)), Poll::Ready(Some("item")));
}

#[test]
fn a_loop_of_the_user_meets_each_item_at_its_deadline() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let mut queue = DelayQueue::new(&timer);
    assert_eq!((queue.next_deadline(), inner(Poll::Ready(queue.try_next()))), (None, Poll::Ready(None)));
    let keys = [5, 3, 4, 3].map(|seconds| queue.insert(seconds, seconds * SECOND));
    queue.insert(100, Duration::MAX);
    queue.remove(&keys[1]);
    queue.reset(&keys[2], 6 * SECOND);
    let begin = timer.now();
    let mut met = Vec::new();
    let mut wakes = 0;
    while met.len() < 3 {
        let wake = queue.next_deadline().unwrap();
        driver.advance(wake.saturating_duration_since(timer.now()));
        while let Some(expired) = queue.try_next() {
            assert_eq!(expired.deadline(), timer.now());
            met.push((expired.into_inner(), timer.now() - begin));
        }
        wakes += 1;
        assert!(queue.next_deadline() > Some(timer.now()), "an idle loop");
    }
    assert_eq!(met, [(3, 3 * SECOND), (5, 5 * SECOND), (4, 6 * SECOND)]);
    assert_eq!(wakes, 4, "one for the former deadline of the item that was reset");
    assert!(queue.next_deadline() > Some(timer.now() + 1_000 * HOUR));
}

#[test]
fn a_task_is_woken_when_its_queue_becomes_empty() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let (bell, waker) = Bell::new();
    let mut cx = Context::from_waker(&waker);
    let mut queue = DelayQueue::new(&timer);
    let key = queue.insert("item", HOUR);
    assert!(queue.poll_expired(&mut cx).is_pending());
    assert!(queue.remove(&key).is_some());
    driver.advance(Duration::ZERO);
    assert_eq!((bell.rung(), inner(queue.poll_expired(&mut cx))), (1, Poll::Ready(None)));
}

// The task is woken for the item, even if another call takes the item first.
#[test]
fn a_task_is_woken_although_another_takes_the_last_item() {
    for is_moved in [false, true] {
        let (timer, mut driver) = manual(WHEELS[0]);
        let (bell, waker) = Bell::new();
        let mut cx = Context::from_waker(&waker);
        let mut queue = DelayQueue::new(&timer);
        let key = queue.insert("item", SECOND);
        assert!(queue.poll_expired(&mut cx).is_pending());
        if is_moved {
            assert!(queue.reset(&key, Duration::ZERO));
        } else {
            driver.advance(SECOND);
        }
        assert_eq!(queue.try_next().map(Expired::into_inner), Some("item"));
        driver.advance(Duration::ZERO);
        assert_eq!((bell.rung(), inner(queue.poll_expired(&mut cx))), (1, Poll::Ready(None)));
    }
}

#[test]
fn due_items_can_be_removed_and_moved() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let (_, waker) = Bell::new();
    let mut cx = Context::from_waker(&waker);
    let mut queue = DelayQueue::new(&timer);
    let keys = [1, 2, 3, 4].map(|id| queue.insert(id, SECOND));
    driver.advance(HOUR);
    let first = inner(queue.poll_expired(&mut cx));
    let Poll::Ready(Some(first)) = first else { panic!("an item is due") };
    let mut left: Vec<_> = [1, 2, 3, 4].into_iter().filter(|id| *id != first).collect();
    let removed = left.remove(0);
    assert_eq!(queue.remove(&keys[removed - 1]).unwrap().into_inner(), removed);
    let moved = left.remove(0);
    assert!(queue.reset(&keys[moved - 1], SECOND));
    assert_eq!(inner(queue.poll_expired(&mut cx)), Poll::Ready(Some(left[0])));
    assert!(queue.poll_expired(&mut cx).is_pending());
    driver.advance(SECOND);
    assert_eq!(inner(queue.poll_expired(&mut cx)), Poll::Ready(Some(moved)));
}

#[test]
fn equal_deadlines_come_out_in_the_order_of_insertion() {
    const ITEMS: u32 = 1_000;
    let (manual, mut driver) = manual(WHEELS[0]);
    for (timer, is_virtual) in [(manual, true), (Timer::new(), false)] {
        let mut queue = DelayQueue::with_capacity(&timer, 10);
        let mut map = DelayMap::new(&timer);
        let shared = SharedDelayQueue::new(&timer);
        let earlier = timer.now() + MILLI;
        let deadline = timer.now() + 20 * MILLI;
        queue.insert_at(ITEMS, earlier);
        for id in 0..ITEMS {
            if id == ITEMS / 2 {
                // Some items are inserted when others with the same deadline are due, and earlier
                // ones are not collected yet.
                if is_virtual {
                    _ = driver.advance(30 * MILLI)
                } else {
                    watch_for(30 * MILLI)
                }
                queue.insert_at(ITEMS, deadline);
            }
            queue.insert_at(id, deadline);
            map.insert_at(id, (), deadline);
            shared.insert_at(id, deadline);
        }
        let removed = queue.iter().find(|item| *item.1 == 7).unwrap().0;
        assert!(queue.contains_key(&removed) && queue.remove(&removed).is_some() && !queue.contains_key(&removed));
        assert_eq!(queue.try_next().map(Expired::into_inner), Some(ITEMS), "the earlier one");
        let half = (0..ITEMS / 2).filter(|id| *id != 7);
        let order: Vec<u32> = std::iter::from_fn(|| {
            let first = queue.peek();
            queue.try_next().inspect(|item| assert_eq!(Some(item.key()), first)).map(Expired::into_inner)
        })
        .collect();
        assert!(order.iter().copied().eq(half.chain([ITEMS]).chain(ITEMS / 2..ITEMS)), "{is_virtual} {order:?}");
        let mut cx = Context::from_waker(Waker::noop());
        let mut out = Vec::new();
        assert_eq!(map.poll_expired_many(&mut cx, &mut out, 2_000), Poll::Ready(ITEMS as usize));
        assert!(out.iter().map(Expired::key).eq(0..ITEMS), "{is_virtual}");
        assert!(std::iter::from_fn(|| shared.try_take()).map(Expired::into_inner).eq(0..ITEMS), "{is_virtual}");
    }
}

#[test]
fn items_that_are_inserted_when_due_hold_back_no_other() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let mut queue = DelayQueue::new(&timer);
    let old = queue.insert("old", 5 * MILLI);
    driver.advance(SECOND);
    let take = |queue: &mut DelayQueue<_>| {
        queue.insert("new", Duration::ZERO);
        queue.try_next().unwrap().into_inner()
    };
    queue.insert("new", Duration::ZERO);
    assert_eq!(queue.peek(), Some(old));
    assert_eq!([take(&mut queue), take(&mut queue)], ["old", "new"]);
    let old = queue.insert("old", 5 * MILLI);
    driver.advance(SECOND);
    assert_eq!([take(&mut queue), take(&mut queue)], ["new", "new"], "both were due before `old`");
    assert_eq!((queue.peek(), take(&mut queue)), (Some(old), "old"));
    queue.clear();
    let past = timer.now() - HOUR;
    queue.insert("old", 5 * MILLI);
    driver.advance(SECOND);
    let taken = [(); 2].map(|()| {
        queue.insert_at("past", past);
        queue.try_next().unwrap().into_inner()
    });
    assert_eq!(taken, ["past", "old"], "the second one waits for the next collection");
}

#[test]
fn the_first_item_is_named_after_removals_among_due_ones() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let mut queue = DelayQueue::new(&timer);
    let keys: Vec<_> = (1..=5).map(|n| queue.insert(n, n * MICRO)).collect();
    driver.advance(MILLI);
    assert_eq!(queue.try_next().unwrap().key(), keys[0]);
    assert!(queue.remove(&keys[2]).is_some());
    for key in [keys[1], keys[3], keys[4]] {
        assert_eq!(queue.peek(), Some(key));
        assert!(queue.remove(&key).is_some());
    }
    assert_eq!((queue.peek(), queue.len()), (None, 0));
}

#[test]
fn a_queue_outlives_the_stop_of_its_timer() {
    let timer = Timer::new();
    let mut queue = DelayQueue::new(&timer);
    queue.insert("item", 5 * MILLI);
    timer.stop().unwrap();
    assert_eq!(futures::executor::block_on(queue.next()).unwrap().into_inner(), "item");
}

#[test]
fn each_item_reaches_one_of_many_threads() {
    const ITEMS: u64 = 2_000;
    let queue = SharedDelayQueue::new(&Timer::new());
    let consumers: Vec<_> = (0..4)
        .map(|_| {
            let queue = queue.clone();
            thread::spawn(move || {
                let mut taken = Vec::new();
                while let Some(item) = queue.take() {
                    assert!(item.deadline() <= Instant::now(), "the item came early");
                    if *item.get_ref() == u64::MAX {
                        queue.close();
                    } else {
                        taken.push(item.into_inner());
                    }
                }
                taken
            })
        })
        .collect();
    let producers: Vec<_> = (0..2)
        .map(|part| {
            let queue = queue.clone();
            thread::spawn(move || {
                let items = (0..ITEMS).filter(|id| id % 2 == part);
                items.for_each(|id| _ = queue.insert(id, Duration::from_micros(id * 7919 % 20_000)));
            })
        })
        .collect();
    producers.into_iter().for_each(|producer| producer.join().unwrap());
    queue.insert(u64::MAX, 30 * MILLI);
    let mut taken: Vec<u64> = consumers.into_iter().flat_map(|consumer| consumer.join().unwrap()).collect();
    taken.extend(queue.drain().map(Expired::into_inner));
    taken.sort_unstable();
    assert!(taken.into_iter().eq(0..ITEMS));
}

#[test]
fn a_limit_ends_the_wait_of_a_thread() {
    let queue = SharedDelayQueue::new(&Timer::new());
    let begun = Instant::now();
    queue.insert("item", HOUR);
    assert!(queue.take_timeout(5 * MILLI).is_none() && queue.try_take().is_none());
    assert!(begun.elapsed() >= 5 * MILLI && begun.elapsed() < MAX_WAIT);
    queue.insert("due", MILLI);
    assert_eq!(queue.take_timeout(MAX_WAIT).unwrap().into_inner(), "due");
}

#[test]
fn threads_can_wait_for_virtual_time() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let queue = SharedDelayQueue::new(&timer);
    queue.insert("item", HOUR);
    let (sender, taken) = mpsc::channel();
    let consumer = {
        let queue = queue.clone();
        thread::spawn(move || sender.send(queue.take().map(Expired::into_inner)).unwrap())
    };
    // The consumer waits with its own timeout.
    while timer.pending_timeouts() == 0 {
        thread::yield_now();
    }
    driver.advance(HOUR - NANO);
    assert!(taken.try_recv().is_err());
    driver.advance(NANO);
    assert_eq!(next(&taken), Some("item"));
    consumer.join().unwrap();
}
