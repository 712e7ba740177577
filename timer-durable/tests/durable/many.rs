//! Calls about many timeouts.

use std::time::{Duration, SystemTime};

use futures::executor::block_on;
use timer_durable::store::Store;
use timer_durable::{
    Counts, DeadFilter, Due, DurableTimer, Error, Fault, Filter, IfPending, MemoryStore, NewTimeout, Retry, Schedule,
    TimeoutId, Topic,
};

use crate::t;

const LONG: Duration = Duration::from_secs(60);

fn build() -> (DurableTimer, timer_durable::ManualDurableDriver, MemoryStore) {
    let store = MemoryStore::new();
    let builder = DurableTimer::builder().topic(t(), |_: &Due<String>| Ok(()));
    let (timer, driver) = builder.build_manual(store.clone()).unwrap();
    (timer, driver, store)
}

fn new(key: &str, if_pending: IfPending) -> NewTimeout {
    t::<String>().with(Schedule::after(LONG).key(key).if_pending(if_pending), "p")
}

fn keep(key: &str) -> NewTimeout {
    new(key, IfPending::Keep)
}

#[test]
fn dead_letters_are_kept_for_as_long_as_their_topic_says() {
    const DAY: Duration = Duration::from_secs(86_400);
    let bury = |_: &Due<String>| -> Result<(), Retry> { Err(Retry::dead("broken")) };
    let kept = Topic::<String>::new("kept");
    let short = Topic::<String>::new("short").keep_dead(30 * DAY);
    let store = MemoryStore::new();
    let open = || DurableTimer::builder().topic(kept, bury).topic(short, bury).build_manual(store.clone()).unwrap();
    let (timer, mut driver) = open();
    let new = |delay| [kept, short].map(|topic| timer.new_timeout(topic, delay, "x").wait().unwrap());
    let dead = |timer: &DurableTimer| {
        let letters = timer.dead_letters(None, None, 9_999).wait().unwrap();
        ["kept", "short"].map(|topic| letters.iter().filter(|letter| letter.topic == topic).count())
    };
    // More than one commit deletes.
    (0..1_001).for_each(|_| _ = new(Duration::ZERO));
    new(2 * DAY);
    driver.run_due();
    driver.advance(2 * DAY);
    assert_eq!(dead(&timer), [1_002, 1_002]);
    driver.advance(28 * DAY - Duration::from_secs(1));
    assert_eq!(dead(&timer), [1_002, 1_002], "its time is not over");
    driver.advance(Duration::from_secs(3_601));
    assert_eq!(dead(&timer), [1_002, 1], "those of the other topic stay");
    driver.crash();
    drop(timer);
    store.advance_clock(2 * DAY);
    let (timer, mut driver) = open();
    driver.run_due();
    assert_eq!(dead(&timer), [1_002, 0], "a start looks at once");
}

#[test]
fn many_dead_letters_are_requeued_and_purged() {
    let bury = |_: &Due<String>| -> Result<(), Retry> { Err(Retry::dead("broken")) };
    let other = Topic::<String>::new("other");
    let builder = DurableTimer::builder().topic(t(), bury).topic(other, bury);
    let store = MemoryStore::new();
    let (timer, mut driver) = builder.build_manual(store.clone()).unwrap();
    let new = |topic, key: &str| timer.schedule(topic, Schedule::after(Duration::ZERO).key(key), "x").wait().unwrap();
    (0..250).for_each(|n| _ = new(t(), &format!("{}/{n}", n % 2)));
    new(other, "0/0");
    driver.run_due();
    new(t(), "0/0");
    driver.run_due();
    let all = DeadFilter::new();
    let even = all.clone().topic("t").key_prefix("0/");
    let counts = timer.requeue_many(&even).wait().unwrap();
    assert_eq!((counts.requeued, counts.key_taken), (125, 1), "two have the same key");
    assert_eq!(timer.counts().wait().unwrap().dead, 127);
    let now = SystemTime::UNIX_EPOCH + Duration::from_micros(store.now().unsigned_abs());
    assert_eq!(block_on(timer.purge_many(&all.clone().died(..now))).unwrap(), 0, "all have died now");
    assert_eq!(timer.purge_many(&all.clone().topic("other")).wait().unwrap(), 1);
    assert_eq!(driver.run_due(), 125);
    assert_eq!(timer.purge_many(&all.died(now..)).wait().unwrap(), 251);
    assert_eq!(timer.counts().wait().unwrap(), Counts::default());
}

#[test]
fn all_timeouts_of_a_call_are_scheduled_or_none() {
    let (timer, mut driver, store) = build();
    timer.schedule(t(), Schedule::after(LONG).key("b"), "p").wait().unwrap();
    let refused = ["a", "b"].map(|key| new(key, IfPending::Refuse));
    assert!(matches!(timer.schedule_many(refused).wait(), Err(Error::KeyTaken { .. })));
    assert_eq!(timer.counts().wait().unwrap().pending, 1);
    let before = store.commits();
    let keys = ["a", "b", "c"];
    let answers = block_on(timer.schedule_many(keys.map(keep))).unwrap();
    assert_eq!((store.commits() - before, answers.len()), (1, 3));
    assert_eq!(timer.get(t::<String>(), "b").wait().unwrap().unwrap().id, answers[1].id(), "it was kept");
    store.inject(Fault::LoseAnswer);
    let ids = [TimeoutId::new(), TimeoutId::new()];
    let calls = || ids.map(|id| t::<String>().with(Schedule::after(LONG).id(id), "p"));
    assert!(matches!(timer.schedule_many(calls()).wait(), Err(Error::OutcomeUnknown { .. })));
    timer.schedule_many(calls()).wait().unwrap();
    assert_eq!(driver.advance(LONG), 5);
}

#[test]
fn a_call_beyond_its_limits_is_refused() {
    let (timer, _driver, store) = build();
    let before = store.commits();
    let error = |result: Result<_, Error>| result.map(drop).unwrap_err().to_string();
    let many = (0..1_001).map(|n| keep(&n.to_string()));
    assert_eq!(error(timer.schedule_many(many).wait()), "timeouts: 1001 was given; allowed is 1 to 1000");
    assert_eq!(error(timer.schedule_many([]).wait()), "timeouts: 0 was given; allowed is 1 to 1000");
    assert_eq!(error(timer.schedule_many(["k", "k"].map(keep)).wait()), "key: k was given; allowed is each key once");
    let large = "p".repeat(1 << 20);
    let many = (0..17).map(|_| t::<String>().with(Schedule::after(LONG), &*large));
    assert!(error(timer.schedule_many(many).wait()).contains("at most 16777216 are allowed"));
    assert_eq!(store.commits(), before);
}

#[test]
fn many_timeouts_are_cancelled_by_prefix_or_by_key() {
    let (timer, _driver, _store) = build();
    for first in [0, 600] {
        timer.schedule_many((first..first + 600).map(|n| keep(&format!("{}/{n}", n % 2)))).wait().unwrap();
    }
    timer.new_timeout(t(), LONG, "p").wait().unwrap();
    let counts = timer.cancel_many(t::<String>(), "1/").wait().unwrap();
    assert_eq!((counts.cancelled, counts.running), (600, 0));
    let counts = block_on(timer.cancel_keys(t::<String>(), ["0/0", "0/2", "1/1"])).unwrap();
    assert_eq!(counts.cancelled, 2, "one is gone");
    assert_eq!(timer.cancel_keys(t::<String>(), (0..600).map(|n| format!("0/{n}"))).wait().unwrap().cancelled, 298);
    assert_eq!(block_on(timer.cancel_many(t::<String>(), "")).unwrap().cancelled, 300);
    assert_eq!(timer.list(&Filter::new(), None, 9).wait().unwrap().len(), 1, "it has no key");
}

#[test]
fn a_cancel_of_many_leaves_running_timeouts_alone() {
    let (sender, counts) = std::sync::mpsc::channel();
    let timer = std::sync::Arc::new(std::sync::OnceLock::<DurableTimer>::new());
    let inside = timer.clone();
    let handle = move |_: &Due<String>| {
        sender.send(inside.get().unwrap().cancel_many(t::<String>(), "k").wait().unwrap()).unwrap();
        Ok(())
    };
    let (built, mut driver) = DurableTimer::builder().topic(t(), handle).build_manual(MemoryStore::new()).unwrap();
    let timer = timer.get_or_init(|| built);
    timer.schedule(t(), Schedule::after(Duration::ZERO).key("k1"), "p").wait().unwrap();
    timer.schedule(t(), Schedule::after(LONG).key("k2"), "p").wait().unwrap();
    driver.run_due();
    let counts = counts.try_recv().unwrap();
    assert_eq!((counts.cancelled, counts.running), (1, 1));
    driver.crash();
}
