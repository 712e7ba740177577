//! The answers of handlers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use timer_durable::{
    Done, Due, DurableTimer, DurableTimerBuilder, Later, ManualDurableDriver, MemoryStore, Retry, Schedule, Topic,
};

use crate::t;

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);
const NEXT: Topic<String> = Topic::new("next");

/// The payloads and attempts with which a handler was called.
type Calls = Arc<Mutex<Vec<(String, u32)>>>;

/// Returns a handler of follow-ups, which notes its calls.
fn noting(calls: &Calls) -> impl Fn(&Due<String>) -> Result<(), Retry> + use<> {
    let calls = calls.clone();
    move |due| {
        calls.lock().unwrap().push((due.payload().clone(), due.attempt()));
        Ok(())
    }
}

fn build(builder: DurableTimerBuilder) -> (DurableTimer, ManualDurableDriver) {
    builder.build_manual(MemoryStore::new()).unwrap()
}

/// Every answer compiles in both kinds of topics, without a type.
#[allow(clippy::unit_arg, reason = "handlers of users have this form")]
#[test]
fn each_answer_has_its_plain_form() {
    let next = |due: &Due<String>| Done::then(NEXT, Schedule::after(SECOND), due.payload());
    let (timer, mut driver) = build(
        DurableTimer::builder()
            .spawn(futures::executor::block_on)
            .topic(Topic::new("ok"), |due: &Due<String>| Ok(println!("{}", due.payload())))
            .topic(Topic::new("done"), move |due: &Due<String>| Ok(next(due)))
            .topic(Topic::new("both"), |due: &Due<String>| -> Result<Done, Retry> {
                match due.attempt() {
                    1 => Err(Retry::after(SECOND)),
                    2 => Err(Retry::after(SECOND).because("not yet")),
                    3 => Err(Later::after(SECOND)),
                    4 => Err(Later::after(SECOND).payload(&"later".to_owned())),
                    5 => due.payload().parse::<u32>().map(|_| Done::new()).map_err(Retry::from),
                    _ => Err(Retry::dead("reason")),
                }
            })
            .topic_async(Topic::new("async ok"), |_: Due<String>| async { Ok(()) })
            .topic_async(Topic::new("async done"), |due: Due<String>| async move {
                if due.attempt() == 1 {
                    return Err(Later::after(SECOND));
                }
                Ok(Done::then(NEXT, Schedule::after(SECOND), due.payload()))
            })
            .topic(NEXT, |_: &Due<String>| Ok(())),
    );
    for topic in ["ok", "done", "both", "async ok", "async done"].map(Topic::<String>::new) {
        timer.new_timeout(topic, SECOND, "now").wait().unwrap();
    }
    let stats = |timer: &DurableTimer| {
        (timer.stats().done, timer.stats().retried, timer.stats().postponed, timer.stats().buried)
    };
    driver.advance(60 * SECOND);
    assert_eq!((stats(&timer), timer.counts().wait().unwrap().pending), ((6, 3, 3, 1), 0), "{:?}", timer.stats());
    assert_eq!(timer.dead_letters(None, None, 9).wait().unwrap()[0].payload, b"later");
}

#[test]
fn one_timeout_reminds_three_times() {
    let calls = Calls::default();
    let noted = calls.clone();
    let remind = t::<String>().attempts(2).max_lateness(SECOND);
    let handler = move |due: &Due<String>| {
        noted.lock().unwrap().push((due.payload().clone(), due.attempt()));
        let fails = due.attempt() % 2 == 1;
        match (due.payload().as_str(), fails) {
            (_, true) => Err(Retry::after(SECOND)),
            ("7", _) => Err(Later::after(6 * DAY).payload(&"1".to_owned())),
            ("1", _) => Err(Later::after(DAY).payload(&"0".to_owned())),
            _ => Ok(()),
        }
    };
    let (timer, mut driver) = build(DurableTimer::builder().topic(remind, handler));
    timer.new_timeout(remind, DAY, "7").wait().unwrap();
    assert_eq!([DAY + SECOND, 6 * DAY - SECOND, 10 * SECOND, 2 * DAY].map(|time| driver.advance(time)), [2, 0, 2, 2]);
    let seen = ["7", "7", "1", "1", "0", "0"].into_iter().zip(1..).map(|(days, attempt)| (days.to_owned(), attempt));
    assert_eq!(*calls.lock().unwrap(), seen.collect::<Vec<_>>(), "no attempt of the earlier reminders counts");
    assert_eq!((timer.stats().postponed, timer.stats().expired, timer.stats().buried), (2, 0, 0));
}

#[test]
fn later_delays_one_run_of_a_series() {
    let later = |due: &Due<()>| if due.attempt() == 2 { Err(Later::after(4 * SECOND)) } else { Ok(()) };
    let (timer, mut driver) = build(DurableTimer::builder().topic(t(), later));
    timer.schedule(t(), Schedule::after(10 * SECOND).every(10 * SECOND), &()).wait().unwrap();
    let runs = [10, 10, 3, 1, 5, 1].map(|seconds| driver.advance(seconds * SECOND));
    assert_eq!(runs, [1, 1, 0, 1, 0, 1], "at 10, 20, 24 and 30 s");
}

#[test]
fn follow_ups_are_written_with_the_end() {
    let calls = Calls::default();
    let first = |due: &Due<String>| {
        let next = Done::then(NEXT, Schedule::after(SECOND), "one")
            .and_then(NEXT, Schedule::after(SECOND).key("k"), "two")
            .and_then(NEXT, Schedule::after(SECOND).key("k"), "three");
        if due.attempt() == 1 { Err(Retry::after(SECOND)) } else { Ok(next.end_series()) }
    };
    let (timer, mut driver) = build(DurableTimer::builder().topic(t(), first).topic(NEXT, noting(&calls)));
    timer.schedule(t(), Schedule::after(SECOND).every(SECOND), "first").wait().unwrap();
    assert_eq!(driver.advance(60 * SECOND), 4, "the series ends with its first run");
    let mut seen: Vec<String> = calls.lock().unwrap().iter().map(|(payload, _)| payload.clone()).collect();
    seen.sort();
    assert_eq!(seen, ["one", "two"], "the third one meets the key of the second");
}

#[test]
fn a_follow_up_that_is_not_allowed_fails_the_attempt() {
    let long = "x".repeat(100);
    for (done, why) in [
        (
            Done::then(Topic::new("nobody"), Schedule::after(SECOND), "x"),
            "the topic `nobody` of a follow-up has no handler here",
        ),
        (Done::then(NEXT, Schedule::after(SECOND), &*long), "the payload of a follow-up is too long: 100 bytes"),
        (
            Done::then(NEXT, Schedule::after(SECOND).key("a\0b"), "x"),
            "the follow-up in `next`: a key with a NUL character",
        ),
        (Done::then(NEXT, Schedule::after(Duration::MAX), "x"), "the follow-up in `next`: "),
    ] {
        let handler = move |_: &Due<()>| Ok(done.clone());
        let topics = DurableTimer::builder().topic(t().attempts(1), handler).topic(NEXT, |_: &Due<String>| Ok(()));
        let (timer, mut driver) = build(topics.max_payload(64));
        timer.new_timeout(t(), SECOND, &()).wait().unwrap();
        driver.advance(SECOND);
        let letters = timer.dead_letters(None, None, 9).wait().unwrap();
        assert!(letters[0].reason.starts_with(why), "{}", letters[0].reason);
    }
}
