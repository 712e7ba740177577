//! Calls about many timeouts.

use std::time::Duration;

use futures::executor::block_on;
use timer_durable::{Due, DurableTimer, Error, Fault, Filter, IfPending, MemoryStore, NewTimeout, Schedule, TimeoutId};

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
fn all_timeouts_of_a_call_are_scheduled_or_none() {
    let (timer, mut driver, store) = build();
    timer.schedule(t(), Schedule::after(LONG).key("b"), "p").wait().unwrap();
    let refused = ["a", "b"].map(|key| new(key, IfPending::Refuse));
    assert!(matches!(timer.schedule_many(refused).wait(), Err(Error::KeyTaken { .. })));
    assert_eq!(timer.counts().wait().unwrap().pending, 1);
    let (before, keys) = (store.commits(), ["a", "b", "c"]);
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
