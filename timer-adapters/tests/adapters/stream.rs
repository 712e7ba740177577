//! Streams of ticks and of expired items, on virtual time.

use futures::StreamExt;
use std::time::Duration;
use timer_adapters::stream::{DelayMapStream, DelayQueueStream, IntervalStream};
use timer_core::Timer;
use timer_core::delay_queue::{DelayMap, DelayQueue, Expired};

const ITEMS: u32 = 10_000;

/// Takes many due items from each kind of stream.
async fn take_many() {
    let timer = Timer::new();
    let (mut queue, mut map) = (DelayQueue::new(&timer), DelayMap::new(&timer));
    queue.extend((0..ITEMS).map(|id| (id, Duration::ZERO)));
    map.extend((0..ITEMS).map(|id| (id, (), Duration::ZERO)));
    assert_eq!(DelayQueueStream::new(queue).count().await, ITEMS as usize);
    assert_eq!(DelayMapStream::new(map).count().await, ITEMS as usize);
    let ticks = timer.interval_at(timer.now() - Duration::from_secs(1), Duration::from_micros(100));
    assert_eq!(IntervalStream::new(ticks).take(ITEMS as usize).count().await, ITEMS as usize);
}

/// Counts its polls.
async fn count_polls(polls: &std::cell::Cell<u32>) {
    loop {
        polls.set(polls.get() + 1);
        let mut has_yielded = false;
        std::future::poll_fn(|cx| {
            cx.waker().wake_by_ref();
            if std::mem::replace(&mut has_yielded, true) {
                std::task::Poll::Ready(())
            } else {
                std::task::Poll::Pending
            }
        })
        .await;
    }
}

#[test]
fn due_items_let_other_tasks_run() {
    let polls = std::rc::Rc::new(std::cell::Cell::new(0));
    let count = || {
        let polls = polls.clone();
        async move { count_polls(&polls).await }
    };
    let yields = 3 * ITEMS / 128 - 3;
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        tokio::task::spawn_local(count());
        take_many().await;
    });
    assert!(polls.replace(0) >= yields, "{polls:?} on tokio");
    let mut pool = futures::executor::LocalPool::new();
    futures::task::LocalSpawnExt::spawn_local(&pool.spawner(), count()).unwrap();
    pool.run_until(take_many());
    assert!(polls.get() >= yields, "{polls:?} elsewhere");
}

#[test]
fn streams_yield_what_their_sources_do() {
    const SECOND: Duration = Duration::from_secs(1);
    let (timer, mut driver) = Timer::builder().build_manual().unwrap();
    let begin = timer.now();
    let ticks = IntervalStream::new(timer.interval(SECOND));
    let due: Vec<_> = driver.block_on(ticks.take(3).map(|due| due - begin).collect());
    assert_eq!(due, [Duration::ZERO, SECOND, 2 * SECOND]);

    let mut queue = DelayQueue::new(&timer);
    for id in [3, 1, 2] {
        queue.insert(id, id * SECOND);
    }
    let mut items = DelayQueueStream::from(queue);
    let ids: Vec<_> = driver.block_on(items.by_ref().map(Expired::into_inner).collect());
    assert_eq!(ids, [1, 2, 3]);
    items.as_mut().insert(4, SECOND);
    assert_eq!(driver.block_on(items.next()).map(Expired::into_inner), Some(4), "it goes on after its end");
    assert!(items.into_inner().is_empty());

    let mut map = DelayMap::new(&timer);
    map.insert("b", 2, 2 * SECOND);
    map.insert("a", 1, SECOND);
    let entries: Vec<_> = driver.block_on(DelayMapStream::new(map).map(|entry| entry.key()).collect());
    assert_eq!(entries, ["a", "b"]);
}
