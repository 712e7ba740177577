//! Events that are reported by `tracing`.

use std::sync::mpsc::channel;
use std::time::Duration;

use timer_durable::{Done, Due, DurableTimer, IfPending, MemoryStore, Schedule, Topic};

use crate::{log, t};

/// A release has dropped two topics, one of which has thousands of periodic timeouts.
#[test]
fn a_topic_without_handler_is_reported_once_a_minute() {
    let store = MemoryStore::new();
    let minute = Duration::from_secs(60);
    let (timer, driver) = DurableTimer::builder().topic_elsewhere(t::<()>()).build_manual(store.clone()).unwrap();
    let call = |n: u64| t().with(Schedule::after(Duration::from_millis(n)).every(minute), &());
    for thousand in 0..2 {
        timer.schedule_many((1..=1_000).map(|n| call(thousand * 1_000 + n))).wait().unwrap();
    }
    driver.crash();
    let builder = DurableTimer::builder().name("dropped").topic(Topic::new("kept"), |_: &Due<()>| Ok(()));
    let events = log::complaints("dropped");
    let (timer, mut driver) = builder.build_manual(store).unwrap();
    driver.advance(2 * minute + minute / 2);
    let fields: Vec<String> = events.try_iter().map(|event| event.fields).collect();
    let timeouts = |fields: &String| fields.split("timeouts=").nth(1).unwrap().trim().parse::<u64>().unwrap();
    let counts: Vec<u64> = fields.iter().map(timeouts).collect();
    assert_eq!(counts.len(), 3, "{fields:?}");
    assert!(counts[1..].iter().sum::<u64>() + counts[0] >= 4_000, "{fields:?}");
    assert_eq!(timer.stats().without_handler, 6_000);
    log::forget("dropped");
}

#[test]
fn a_follow_up_whose_key_is_taken_is_reported() {
    const TAKEN: Topic<()> = Topic::new("follow-up.taken");
    let second = Duration::from_secs(1);
    let (sender, events) = channel();
    // A store does not know the name of its timer.
    log::listen("", move |event| {
        if event.fields.contains("follow-up.taken") {
            let _sent = sender.send(event.message.clone());
        }
    });
    let then =
        move |_: &Due<()>| Ok(Done::then(TAKEN, Schedule::after(second).key("k").if_pending(IfPending::Replace), &()));
    let builder = DurableTimer::builder().topic(t(), then).topic(TAKEN, |_: &Due<()>| Ok(()));
    let (timer, mut driver) = builder.build_manual(MemoryStore::new()).unwrap();
    let pending = timer.schedule(TAKEN, Schedule::after(5 * second).key("k"), &()).wait().unwrap().id();
    timer.new_timeout(t(), second, &()).wait().unwrap();
    assert_eq!(driver.advance(2 * second), 1);
    assert_eq!(timer.get(TAKEN, "k").wait().unwrap().map(|found| found.id), Some(pending));
    let reported: Vec<String> = events.try_iter().collect();
    assert_eq!(reported, ["a follow-up was not created, because another timeout has its key"]);
}
