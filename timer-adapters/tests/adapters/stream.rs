//! Streams of ticks and of expired items, on virtual time.

use futures::StreamExt;
use std::time::Duration;
use timer_adapters::stream::{DelayMapStream, DelayQueueStream, IntervalStream, OnTokio, TimedStreamExt};
use timer_core::Timer;
use timer_core::delay_queue::{DelayMap, DelayQueue, Expired};

const ITEMS: u32 = 10_000;

/// Takes many due items from each kind of stream.
async fn take_many() {
    let timer = Timer::new();
    let mut queue = DelayQueue::new(&timer);
    let mut map = DelayMap::new(&timer);
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
fn the_streams_of_a_task_share_its_budget() {
    const EACH: usize = 100;
    let timer = Timer::new();
    let mut streams = [(); 2].map(|()| {
        let mut queue = DelayQueue::new(&timer);
        queue.extend((0..EACH).map(|id| (id, Duration::ZERO)));
        DelayQueueStream::new(queue)
    });
    let taken = super::runtime().block_on(std::future::poll_fn(|cx| {
        let mut take = |stream: &mut DelayQueueStream<_>| stream.poll_next_unpin(cx).is_ready();
        let taken = streams.iter_mut().map(|stream| (0..EACH).take_while(|_| take(stream)).count());
        std::task::Poll::Ready(taken.sum::<usize>())
    }));
    assert!((EACH..2 * EACH).contains(&taken), "{taken} in one poll");
}

#[test]
fn streams_yield_what_their_sources_do() {
    const SECOND: Duration = Duration::from_secs(1);
    let (timer, mut driver) = Timer::builder().build_manual().unwrap();
    let begin = timer.now();
    let ticks = IntervalStream::new(timer.interval(SECOND));
    let due: Vec<_> = driver.block_on(ticks.take(3).map(|due| due - begin).collect());
    assert_eq!(due, [Duration::ZERO, SECOND, 2 * SECOND]);
    let drop_in: Vec<tokio::time::Instant> = super::runtime().block_on(async {
        use timer_adapters::tokio::time::{Instant, interval_at};
        let first = Instant::now() - SECOND;
        let ticks = IntervalStream::new(interval_at(first, SECOND / 1_000)).take(2).collect().await;
        assert_eq!(ticks, [first, first + SECOND / 1_000]);
        ticks
    });
    assert_eq!(drop_in.len(), 2);

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

#[test]
fn a_sleep_of_tokio_takes_the_place_of_the_timers_thread() {
    const MINUTE: Duration = Duration::from_secs(60);
    timer_adapters::tokio::paused(async {
        let timer = Timer::current();
        let begin = timer.now();
        let mut map = OnTokio::new(DelayMap::new(&timer));
        assert!(map.next().await.is_none(), "it is empty");
        map.as_mut().extend([("b", 2, 2 * MINUTE), ("a", 1, MINUTE), ("c", 3, 3 * MINUTE)]);
        let wait = tokio::time::timeout(MINUTE / 2, map.next());
        assert!(wait.await.is_err() && timer.pending_timeouts() == 0, "the timer waits for nothing");
        map.as_mut().reset("a", 4 * MINUTE);
        map.as_mut().insert("d", 4, MINUTE / 4);
        let times: Vec<_> = map.by_ref().map(|entry| (entry.key(), timer.now() - begin)).collect().await;
        let minutes = |quarters: u32| quarters * MINUTE / 4;
        assert_eq!(times, [("d", minutes(3)), ("b", minutes(8)), ("c", minutes(12)), ("a", minutes(18))]);

        let mut queue = OnTokio::from(DelayQueue::new(&timer));
        queue.as_mut().insert(5, MINUTE);
        assert_eq!(queue.next().await.map(Expired::into_inner), Some(5));
        assert!(queue.as_ref().is_empty() && queue.into_inner().try_next().is_none());
    });
}

/// Returns a stream of numbers, each of which comes after its delay in milliseconds.
fn delayed(timer: &Timer, delays: &'static [u64]) -> impl futures::Stream<Item = usize> + use<> {
    let timer = timer.clone();
    futures::stream::iter(delays).enumerate().then(move |(id, delay)| {
        let sleep = timer.sleep(Duration::from_millis(*delay));
        async move {
            sleep.await;
            id
        }
    })
}

/// Collects the items of a stream and the milliseconds after which they came.
fn timed<S: futures::Stream>(test: impl FnOnce(&Timer) -> S) -> Vec<(u128, S::Item)> {
    let (timer, mut driver) = Timer::builder().build_manual().unwrap();
    let begin = timer.now();
    let stream = std::pin::pin!(test(&timer));
    driver.block_on(stream.map(|item| ((timer.now() - begin).as_millis(), item)).collect())
}

#[test]
fn a_late_item_is_announced_once() {
    let seen = timed(|timer| delayed(timer, &[5, 30, 9, 25]).timeout(timer, Duration::from_millis(10)));
    let seen: Vec<_> = seen.into_iter().map(|(at, item)| (at, item.ok())).collect();
    assert_eq!(seen, [(5, Some(0)), (15, None), (35, Some(1)), (44, Some(2)), (54, None), (69, Some(3))]);
}

#[test]
fn items_keep_their_distance() {
    let seen = timed(|timer| delayed(timer, &[0, 0, 0, 25, 0]).throttle(timer, Duration::from_millis(10)));
    assert_eq!(seen, [(0, 0), (10, 1), (20, 2), (55, 3), (65, 4)], "the stream rests in a pause");
}

#[test]
fn the_last_item_before_a_silence_comes_out() {
    let seen = timed(|timer| delayed(timer, &[1, 2, 3, 50, 9, 9]).debounce(timer, Duration::from_millis(10)));
    assert_eq!(seen, [(16, 2), (74, 5)], "the last one at the end of the stream");
    assert_eq!(timed(|timer| delayed(timer, &[]).debounce(timer, Duration::from_millis(10))), []);
    let many = timed(|timer| futures::stream::iter(0..1_000).debounce(timer, Duration::from_millis(10)));
    assert_eq!(many, [(0, 999)]);
}

#[test]
fn chunks_are_full_or_in_time() {
    let seen = timed(|timer| delayed(timer, &[1, 1, 1, 4, 20, 1]).chunks_timeout(timer, 3, Duration::from_millis(10)));
    assert_eq!(seen, [(3, vec![0, 1, 2]), (17, vec![3]), (28, vec![4, 5])]);
    let many = timed(|timer| futures::stream::iter(0..300).chunks_timeout(timer, 200, Duration::from_millis(10)));
    assert_eq!(many.iter().map(|(at, chunk)| (*at, chunk.len())).collect::<Vec<_>>(), [(0, 200), (0, 100)]);
    let single = timed(|timer| futures::stream::iter(0..2).chunks_timeout(timer, 0, Duration::from_millis(10)));
    assert_eq!(single, [(0, vec![0]), (0, vec![1])]);
}
