//! Streams of ticks and of expired items, on virtual time.

use futures::StreamExt;
use std::time::Duration;
use timer_adapters::stream::{DelayMapStream, DelayQueueStream, IntervalStream};
use timer_core::Timer;
use timer_core::delay_queue::{DelayMap, DelayQueue, Expired};

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
