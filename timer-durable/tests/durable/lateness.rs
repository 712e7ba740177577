//! The planned times of runs on virtual time: the phase of a fixed rate, and the limit of lateness.

use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use timer_durable::{Due, DurableTimer, DurableTimerBuilder, MemoryStore, Retry, Schedule, Topic};

use crate::t;

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);

/// The due times of the attempts that have begun, in seconds since the start of the store's clock.
type Log = Arc<Mutex<Vec<u64>>>;

/// Returns a builder with a handler that notes the due times and lets the attempts with these
/// numbers be repeated after 3 s.
fn builder(log: &Log, topic: Topic<()>, repeated: &'static [u32]) -> DurableTimerBuilder {
    let log = log.clone();
    DurableTimer::builder().topic(topic, move |due: &Due<()>| {
        log.lock().unwrap().push(due.due().duration_since(UNIX_EPOCH).unwrap().as_secs() - 1_000_000_000);
        if repeated.contains(&due.attempt()) { Err(Retry::after(3 * SECOND).because("not yet")) } else { Ok(()) }
    })
}

fn take(log: &Log) -> Vec<u64> {
    std::mem::take(&mut log.lock().unwrap())
}

/// Schedules with a program that knows the topic, and lets a program without it run for a while.
fn wait_for_a_handler(topic: Topic<()>, time: Duration, schedule: impl Fn(&DurableTimer)) -> MemoryStore {
    let store = MemoryStore::new();
    let log = Log::default();
    let (timer, driver) = builder(&log, topic, &[]).build_manual(store.clone()).unwrap();
    schedule(&timer);
    driver.crash();
    drop(timer);
    let (timer, mut driver) = DurableTimer::builder().build_manual(store.clone()).unwrap();
    driver.advance(time);
    assert!(timer.stats().without_handler > 0, "it was put back");
    driver.crash();
    store
}

#[test]
fn a_retry_does_not_shift_a_fixed_rate() {
    let cases: [(&'static [u32], &[u64]); 2] = [
        (&[1, 2], &[10, 13, 16, 20, 30, 40]),
        // Retries that take longer than the period skip a run.
        (&[1, 2, 3, 4], &[10, 13, 16, 19, 22, 30, 40]),
    ];
    for (repeated, runs) in cases {
        let log = Log::default();
        let (timer, mut driver) = builder(&log, t(), repeated).build_manual(MemoryStore::new()).unwrap();
        timer.schedule(t(), Schedule::after(10 * SECOND).key("k").every(10 * SECOND), &()).wait().unwrap();
        driver.advance(45 * SECOND);
        assert_eq!(take(&log), runs);
    }
}

#[test]
fn waiting_for_a_handler_does_not_shift_a_fixed_rate() {
    let store = wait_for_a_handler(Topic::new("t"), 100 * SECOND, |timer| {
        timer.schedule(t(), Schedule::after(7 * SECOND).key("k").every(7 * SECOND), &()).wait().unwrap();
    });
    let log = Log::default();
    let (_timer, mut driver) = builder(&log, Topic::new("t"), &[]).build_manual(store).unwrap();
    driver.advance(45 * SECOND);
    assert_eq!(take(&log), [127, 133, 140], "it was put back at 7 and at 67 s");
}

#[test]
fn a_reset_begins_a_new_phase() {
    let log = Log::default();
    let (timer, mut driver) = builder(&log, Topic::new("t"), &[1]).build_manual(MemoryStore::new()).unwrap();
    timer.schedule(t(), Schedule::after(10 * SECOND).key("k").every(10 * SECOND), &()).wait().unwrap();
    driver.advance(11 * SECOND);
    timer.reset(t::<()>(), "k", 4 * SECOND).wait().unwrap();
    driver.advance(30 * SECOND);
    assert_eq!(take(&log), [10, 15, 25, 35]);
}

#[test]
fn waiting_for_a_handler_counts_towards_the_lateness() {
    let hour = 3600 * SECOND;
    let own = |timer: &DurableTimer| {
        timer.schedule(t(), Schedule::after(10 * SECOND).max_lateness(hour), &()).wait().unwrap();
    };
    let plain = |timer: &DurableTimer| _ = timer.new_timeout(t(), 10 * SECOND, &()).wait().unwrap();
    let run = |topic: Topic<()>, time, schedule: &dyn Fn(&DurableTimer)| {
        let store = wait_for_a_handler(topic, time, schedule);
        let log = Log::default();
        let (timer, mut driver) = builder(&log, topic, &[]).build_manual(store).unwrap();
        driver.advance(120 * SECOND);
        assert_eq!(timer.counts().wait().unwrap().pending, 0);
        (take(&log).len(), timer.stats().expired)
    };
    let limited = || Topic::new("t").max_lateness(hour);
    assert_eq!(run(Topic::new("t"), 2 * DAY, &own), (0, 1), "its own limit");
    assert_eq!(run(limited(), 2 * DAY, &plain), (0, 1), "the limit of its topic");
    assert_eq!(run(limited(), hour / 2, &plain), (1, 0), "within the limit");
    assert_eq!(run(Topic::new("t"), 2 * DAY, &plain), (1, 0), "without a limit");
}

#[test]
fn retries_of_a_handler_do_not_expire() {
    let log = Log::default();
    let topic = Topic::new("t").max_lateness(SECOND);
    let (timer, mut driver) = builder(&log, topic, &[1, 2, 3]).build_manual(MemoryStore::new()).unwrap();
    timer.new_timeout(t(), 10 * SECOND, &()).wait().unwrap();
    driver.advance(45 * SECOND);
    assert_eq!((take(&log), timer.stats().expired), (vec![10, 13, 16, 19], 0));
}

/// The program without the topic puts the timeout back 2,880 times.
#[test]
fn waiting_for_a_handler_after_a_retry_does_not_expire() {
    let store = MemoryStore::new();
    let log = Log::default();
    let topic = Topic::new("t").max_lateness(3600 * SECOND).attempts(2);
    let (timer, mut driver) = builder(&log, topic, &[1]).build_manual(store.clone()).unwrap();
    timer.new_timeout(t(), 10 * SECOND, &()).wait().unwrap();
    driver.advance(11 * SECOND);
    assert_eq!(take(&log), [10]);
    driver.crash();
    drop(timer);
    let (timer, mut driver) = DurableTimer::builder().build_manual(store.clone()).unwrap();
    driver.advance(2 * DAY);
    assert!(timer.stats().without_handler > 2_000);
    driver.crash();
    drop(timer);
    let (timer, mut driver) = builder(&log, topic, &[]).build_manual(store).unwrap();
    driver.advance(120 * SECOND);
    assert_eq!((take(&log).len(), timer.stats().expired, timer.counts().wait().unwrap().dead), (1, 0, 0));
}

#[test]
fn a_periodic_run_that_expires_keeps_the_phase() {
    let store = wait_for_a_handler(Topic::new("t"), 100 * SECOND, |timer| {
        timer.schedule(t(), Schedule::after(7 * SECOND).key("k").every(7 * SECOND), &()).wait().unwrap();
    });
    let log = Log::default();
    let topic = Topic::new("t").max_lateness(5 * SECOND);
    let (timer, mut driver) = builder(&log, topic, &[]).build_manual(store).unwrap();
    driver.advance(45 * SECOND);
    assert_eq!((take(&log), timer.stats().expired), (vec![133, 140], 1));
}

#[test]
fn timeouts_that_fail_together_are_repeated_at_many_instants() {
    let times = Arc::new(Mutex::new(Vec::new()));
    let log = times.clone();
    let fails_once = move |due: &Due<()>| {
        if due.attempt() == 1 {
            return Err(Retry::new("an outage"));
        }
        log.lock().unwrap().push(due.due());
        Ok(())
    };
    let (timer, mut driver) = DurableTimer::builder().topic(t(), fails_once).build_manual(MemoryStore::new()).unwrap();
    (0..1_000).for_each(|_| _ = timer.new_timeout(t(), SECOND, &()).wait().unwrap());
    assert_eq!(driver.advance(3 * SECOND), 2_000);
    let mut times = times.lock().unwrap();
    times.sort_unstable();
    times.dedup();
    assert!(times.len() > 900, "{} instants", times.len());
}
