//! The figures of topics and the worst attempts, on virtual time.

use std::time::Duration;

use timer_durable::{
    Due, DurableTimer, DurableTimerBuilder, Later, ManualDurableDriver, MemoryStore, Retry, Schedule, Topic, TopicStats,
};

use crate::t;

const SECOND: Duration = Duration::from_secs(1);
const OTHER: Topic<()> = Topic::new("other");

fn topic(timer: &DurableTimer, name: &str) -> TopicStats {
    timer.stats().topics[name].clone()
}

#[test]
fn each_event_counts_for_its_topic_and_for_the_timer() {
    let handler = |due: &Due<String>| match due.payload().as_str() {
        "retry" if due.attempt() == 1 => Err(Retry::after(SECOND)),
        "later" if due.attempt() == 1 => Err(Later::after(SECOND)),
        "dead" => Err(Retry::dead("broken")),
        _ => Ok(()),
    };
    let hang: Topic<()> = Topic::new("hang").attempts(1);
    let (timer, mut driver) = DurableTimer::builder()
        .spawn(std::mem::forget)
        .topic(t::<String>(), handler)
        .topic(OTHER, |_: &Due<()>| Ok(()))
        .topic_async(hang, |_: Due<()>| async { Ok(()) })
        .time_limit(SECOND)
        .build_manual(MemoryStore::new())
        .unwrap();
    for payload in ["fine", "retry", "later", "dead", "fine"] {
        timer.new_timeout(t::<String>(), SECOND, payload).wait().unwrap();
    }
    timer.schedule(t::<String>(), Schedule::after(SECOND).key("k"), "").wait().unwrap();
    timer.cancel(t::<String>(), "k").wait().unwrap();
    let id = timer.new_timeout(t::<String>(), SECOND, "").wait().unwrap();
    timer.cancel_by_id(id).wait().unwrap();
    timer.schedule(t::<String>(), Schedule::after(SECOND).max_lateness(SECOND), "").wait().unwrap();
    timer.new_timeout(hang, SECOND, &()).wait().unwrap();
    driver.advance(SECOND / 2);
    timer.new_timeout(OTHER, SECOND, &()).wait().unwrap();
    driver.advance(20 * SECOND);
    let (all, own) = (timer.stats(), topic(&timer, "t"));
    let counts = |topic: &TopicStats| {
        [topic.scheduled, topic.cancelled, topic.begun, topic.done, topic.failed, topic.retried, topic.buried]
    };
    assert_eq!(counts(&own), [8, 1, 8, 5, 2, 1, 1]);
    assert_eq!((own.postponed, own.running, own.lag.count()), (1, 0, 8));
    assert_eq!(counts(&topic(&timer, "hang")), [1, 0, 1, 0, 1, 0, 1]);
    assert_eq!(topic(&timer, "hang").timed_out, 1);
    assert_eq!(counts(&topic(&timer, "other")), [1, 0, 1, 1, 0, 0, 0]);
    assert_eq!((all.scheduled, all.cancelled, all.begun, all.done, all.failed), (10, 2, 10, 6, 3));
    assert_eq!((all.retried, all.buried, all.postponed, all.timed_out), (1, 2, 1, 1));
}

#[test]
fn an_expired_timeout_counts_for_its_topic() {
    let store = MemoryStore::new();
    let topic = Topic::new("t").max_lateness(SECOND);
    let (timer, mut driver) =
        DurableTimer::builder().topic(topic, |_: &Due<()>| Ok(())).build_manual(store.clone()).unwrap();
    timer.new_timeout(topic, SECOND, &()).wait().unwrap();
    store.advance_clock(10 * SECOND);
    driver.run_due();
    let stats = timer.stats();
    assert_eq!((stats.expired, stats.topics["t"].expired, stats.topics["t"].done), (1, 1, 0));
}

#[test]
fn figures_of_topics_are_bounded() {
    let store = MemoryStore::new();
    {
        let names: Vec<&'static str> = (0..200).map(|n| &*format!("topic {n:03}").leak()).collect();
        let add = |builder: DurableTimerBuilder, name| builder.topic(Topic::<()>::new(name), |_: &Due<()>| Ok(()));
        let builder = names.iter().fold(DurableTimer::builder(), |builder, name| add(builder, name));
        let (timer, driver) = builder.build_manual(store.clone()).unwrap();
        names.iter().for_each(|name| _ = timer.new_timeout(Topic::new(name), SECOND, &()).wait().unwrap());
        assert_eq!(timer.stats().topics.len(), 200);
        driver.crash();
    }
    let (timer, mut driver) = DurableTimer::builder().topic(OTHER, |_: &Due<()>| Ok(())).build_manual(store).unwrap();
    driver.advance(SECOND);
    let stats = timer.stats();
    assert_eq!((stats.without_handler, stats.topics.len()), (200, 101));
    assert_eq!(stats.topics.values().map(|topic| topic.begun).sum::<u64>(), 100);
}

/// Opens a timer with one place, which the first timeout takes for good.
fn open(limit: fn(DurableTimerBuilder) -> DurableTimerBuilder) -> (DurableTimer, ManualDurableDriver) {
    let builder = DurableTimer::builder().max_running(2).spawn(std::mem::forget);
    let builder = limit(builder.topic_async(t(), |_: Due<()>| async { Ok(()) }));
    builder.topic(OTHER, |_: &Due<()>| Ok(())).build_manual(MemoryStore::new()).unwrap()
}

/// Returns the age of the oldest due timeout in seconds at the last look.
fn age(timer: &DurableTimer, name: &str) -> u64 {
    topic(timer, name).oldest_due.as_secs()
}

/// The keeper sleeps all the time, and nobody calls.
#[test]
fn the_oldest_due_timeout_of_each_topic_is_found() {
    let (timer, mut driver) = open(|builder| builder);
    (1..=4).for_each(|n| _ = timer.new_timeout(t(), n * SECOND, &()).wait().unwrap());
    timer.new_timeout(OTHER, 10 * SECOND, &()).wait().unwrap();
    driver.advance(10 * SECOND);
    assert_eq!((age(&timer, "t"), age(&timer, "other")), (7, 0), "the first two have begun");
    driver.advance(50 * SECOND);
    // The age grows with the system's clock, so it needs another look.
    timer.counts().wait().unwrap();
    assert_eq!((age(&timer, "t"), age(&timer, "other")), (57, 50));
}

/// Each topic has one place, which its first timeout takes for good. They stall half a second
/// apart.
#[test]
fn each_topic_that_stalls_has_its_oldest_due_timeout() {
    let names = ["t0", "t1", "t2", "t3", "t4"];
    let builder = names.iter().fold(DurableTimer::builder().spawn(std::mem::forget), |builder, name| {
        builder.topic_async(Topic::new(name), |_: Due<()>| async { Ok(()) }).max_running(1)
    });
    let (timer, mut driver) = builder.build_manual(MemoryStore::new()).unwrap();
    for (half, name) in (0..).zip(names) {
        (0..2).for_each(|_| _ = timer.new_timeout(Topic::new(name), SECOND / 2 * half, &()).wait().unwrap());
    }
    for stalled in [0, 1, 2, 3, 4, 5, 5] {
        driver.advance(SECOND / 2);
        let stall = names.iter().filter(|name| !topic(&timer, name).oldest_due.is_zero());
        assert_eq!(stall.count(), stalled, "each is found when it is a second old");
    }
}

#[test]
fn a_paused_topic_has_its_oldest_due_timeout() {
    let (timer, mut driver) = open(|builder| builder.max_running(1));
    (1..=4).for_each(|n| _ = timer.new_timeout(t(), n * SECOND, &()).wait().unwrap());
    timer.pause(OTHER).wait().unwrap();
    assert!(topic(&timer, "other").is_paused && !topic(&timer, "t").is_paused);
    timer.new_timeout(OTHER, 10 * SECOND, &()).wait().unwrap();
    driver.advance(60 * SECOND);
    assert_eq!((age(&timer, "t"), age(&timer, "other")), (58, 50));
    timer.resume(OTHER).wait().unwrap();
    driver.advance(10 * SECOND);
    assert_eq!((age(&timer, "t"), age(&timer, "other")), (68, 0));
    assert!(!topic(&timer, "other").is_paused);
}

/// A timer that was told to stop begins nothing, so its timeouts are no concern of an alert.
#[test]
fn a_timer_that_stops_has_no_oldest_due_timeout() {
    let (timer, mut driver) = open(|builder| builder);
    (1..=4).for_each(|n| _ = timer.new_timeout(t(), n * SECOND, &()).wait().unwrap());
    driver.advance(60 * SECOND);
    assert_eq!(age(&timer, "t"), 57);
    timer.stop(SECOND).wait().unwrap();
    assert_eq!(age(&timer, "t"), 0);
}

#[test]
fn the_worst_attempts_are_named_unless_keys_are_hidden() {
    let expiring = Topic::<()>::new("expiring").max_lateness(SECOND);
    let shown = DurableTimer::builder();
    let hidden = DurableTimer::builder().hide_keys();
    for (builder, key) in [(shown, Some("k")), (hidden, None)] {
        let store = MemoryStore::new();
        let builder = builder.topic(t(), |_: &Due<()>| Ok(())).topic(expiring, |_: &Due<()>| Ok(()));
        let (timer, mut driver) = builder.build_manual(store.clone()).unwrap();
        for n in 1..=12 {
            timer.schedule(t(), Schedule::after(n * SECOND).key(format!("k{n}")), &()).wait().unwrap();
        }
        timer.schedule(expiring, Schedule::after(SECOND / 2).key("k"), &()).wait().unwrap();
        store.advance_clock(13 * SECOND);
        driver.run_due();
        let worst = timer.worst();
        assert_eq!(worst.len(), 10);
        let late: Vec<_> = worst.iter().map(|run| run.lateness.total().as_millis()).collect();
        assert_eq!(late, [12_500, 12_000, 11_000, 10_000, 9_000, 8_000, 7_000, 6_000, 5_000, 4_000]);
        assert_eq!((&*worst[0].topic, worst[0].key.as_deref(), timer.stats().expired), ("expiring", key, 1));
        assert_eq!((&*worst[1].topic, worst[1].key.as_deref()), ("t", key.map(|_| "k1")));
    }
}
