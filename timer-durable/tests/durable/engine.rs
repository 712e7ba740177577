//! The engine on virtual time, with a store in memory that fails when told to.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use timer_durable::{
    CancelAnswer, Due, DurableTimer, DurableTimerBuilder, Error, Fault, IfPending, ManualDurableDriver, MemoryStore,
    RequeueAnswer, Retry, Schedule, ScheduleAnswer, StoreError, Topic,
};

use crate::t;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// A list of the attempts that have run, as `payload attempt`.
pub(crate) type Log = Arc<Mutex<Vec<String>>>;

pub(crate) fn logging(log: &Log) -> impl Fn(&Due<String>) -> Result<(), Retry> + Send + Sync + 'static {
    let log = log.clone();
    move |due| {
        log.lock().unwrap().push(format!("{} {}", due.payload(), due.attempt()));
        Ok(())
    }
}

pub(crate) fn builder(log: &Log) -> DurableTimerBuilder {
    DurableTimer::builder().topic(t(), logging(log))
}

pub(crate) fn open(store: &MemoryStore) -> (DurableTimer, ManualDurableDriver, Log) {
    let log = Log::default();
    let (timer, driver) = builder(&log).build_manual(store.clone()).unwrap();
    (timer, driver, log)
}

pub(crate) fn take(log: &Log) -> Vec<String> {
    std::mem::take(&mut log.lock().unwrap())
}

pub(crate) fn text(text: &str) -> String {
    text.to_owned()
}

#[test]
fn a_timeout_runs_once_at_its_time() {
    let (timer, mut driver, log) = open(&MemoryStore::new());
    timer.new_timeout(t(), 5 * SECOND, &text("a")).wait().unwrap();
    assert_eq!(driver.advance(5 * SECOND - Duration::from_micros(1)), 0, "D5");
    assert_eq!(driver.advance(Duration::from_micros(1)), 1, "D6");
    assert_eq!(driver.advance(1000 * SECOND), 0);
    assert_eq!(take(&log), ["a 1"]);
    assert_eq!(timer.counts().wait().unwrap().pending, 0, "D2");
}

#[test]
fn timeouts_survive_a_crash() {
    let store = MemoryStore::new();
    let (timer, driver, _) = open(&store);
    timer.new_timeout(t(), 5 * SECOND, &text("a")).wait().unwrap();
    driver.crash();
    drop(timer);
    let (_timer, mut driver, log) = open(&store);
    assert_eq!(driver.advance(5 * SECOND), 1, "D1");
    assert_eq!(take(&log), ["a 1"]);
}

#[test]
fn an_attempt_that_a_crash_interrupts_runs_again() {
    let store = MemoryStore::new();
    let held = Arc::new(Mutex::new(Vec::new()));
    let runtime = held.clone();
    let (timer, mut driver) = DurableTimer::builder()
        .spawn(move |future| runtime.lock().unwrap().push(future))
        .topic_async(t(), |_: Due<String>| async { Ok(()) })
        .build_manual(store.clone())
        .unwrap();
    timer.new_timeout(t(), SECOND, &text("a")).wait().unwrap();
    assert_eq!(driver.advance(SECOND), 1);
    assert_eq!(timer.stats().running, 1, "its future is not polled");
    driver.crash();
    drop((timer, held));
    let (_timer, mut driver, log) = open(&store);
    driver.advance(100 * SECOND);
    assert_eq!(take(&log), ["a 2"], "D3 and D7");
}

#[test]
fn a_cancelled_timeout_never_runs() {
    let (timer, mut driver, log) = open(&MemoryStore::new());
    timer.schedule(t(), Schedule::after(SECOND).key("k"), &text("a")).wait().unwrap();
    let id = timer.new_timeout(t(), SECOND, &text("b")).wait().unwrap();
    assert_eq!(timer.cancel(t::<()>(), "k").wait().unwrap(), CancelAnswer::Cancelled);
    assert_eq!(timer.cancel(t::<()>(), "k").wait().unwrap(), CancelAnswer::Unknown);
    assert_eq!(timer.cancel_by_id(id).wait().unwrap(), CancelAnswer::Cancelled);
    assert_eq!(driver.advance(10 * SECOND), 0, "D9");
    assert_eq!(take(&log), Vec::<String>::new());
}

#[test]
fn work_of_the_user_and_the_end_are_one() {
    let store = MemoryStore::new();
    let log = Log::default();
    let seen = log.clone();
    let close = move |due: &Due<String>| -> Result<(), Retry> {
        let works = due.attempt() == 3;
        let seen = seen.clone();
        let attempt = due.attempt();
        let answer = due.complete_with(move |_| {
            seen.lock().unwrap().push(format!("work {attempt}"));
            if works { Ok(()) } else { Err("the order is locked".into()) }
        });
        match (answer.wait(), attempt) {
            (Err(Error::Work(why)), 1 | 2) => Err(Retry::after(SECOND).because(why)),
            (Ok(()), 3) => panic!("after its end"),
            (answer, _) => panic!("attempt {attempt}: {answer:?}"),
        }
    };
    let (timer, mut driver) = DurableTimer::builder().topic(t(), close).build_manual(store).unwrap();
    timer.new_timeout(t(), SECOND, &text("a")).wait().unwrap();
    assert_eq!(driver.advance(3600 * SECOND), 3, "D4");
    assert_eq!(take(&log), ["work 1", "work 2", "work 3"]);
    let counts = timer.counts().wait().unwrap();
    assert_eq!((counts.pending, counts.dead), (0, 0), "a handler that fails after its end changes nothing");
}

#[test]
fn a_running_timeout_is_not_cancelled() {
    let answers = Arc::new(Mutex::new(Vec::new()));
    let (timer, mut driver) = {
        let answers = answers.clone();
        let timer: Arc<Mutex<Option<DurableTimer>>> = Arc::default();
        let inner = timer.clone();
        let (built, driver) = DurableTimer::builder()
            .topic(t(), move |_: &Due<()>| {
                let timer = inner.lock().unwrap().take().unwrap();
                answers.lock().unwrap().push(timer.cancel(t::<()>(), "k").wait().unwrap());
                Ok(())
            })
            .build_manual(MemoryStore::new())
            .unwrap();
        *timer.lock().unwrap() = Some(built.clone());
        (built, driver)
    };
    timer.schedule(t(), Schedule::after(SECOND).key("k"), &()).wait().unwrap();
    assert_eq!(driver.advance(SECOND), 1);
    assert_eq!(*answers.lock().unwrap(), [CancelAnswer::Running], "D9");
}

#[test]
fn a_call_names_its_effect_on_a_key() {
    let (timer, mut driver, log) = open(&MemoryStore::new());
    let schedule = |delay: u32, text, if_pending| {
        timer.schedule(t(), Schedule::after(delay * SECOND).key("k").if_pending(if_pending), text)
    };
    let first = schedule(10, "a", IfPending::Keep).wait().unwrap().id();
    assert_eq!(schedule(5, "b", IfPending::Keep).wait().unwrap(), ScheduleAnswer::Kept(first), "D10");
    assert!(matches!(schedule(5, "b", IfPending::Refuse).wait(), Err(Error::KeyTaken { id }) if id == first));
    assert_eq!(schedule(5, "b", IfPending::Later).wait().unwrap(), ScheduleAnswer::Kept(first));
    assert_eq!(schedule(5, "b", IfPending::Earlier).wait().unwrap(), ScheduleAnswer::Moved(first));
    assert_eq!(driver.advance(5 * SECOND), 1);
    assert_eq!(take(&log), ["a 1"]);
    schedule(10, "a", IfPending::Keep).wait().unwrap();
    schedule(20, "c", IfPending::Replace).wait().unwrap();
    assert_eq!((driver.advance(10 * SECOND), driver.advance(10 * SECOND)), (0, 1));
    assert_eq!(take(&log), ["c 1"]);
}

#[test]
fn a_failed_attempt_is_repeated_and_buried() {
    let topic = Topic::new("t").attempts(3).backoff_by(|tries| SECOND * tries);
    let fails = |_: &Due<String>| -> Result<(), Retry> { Err(Retry::new("no")) };
    let (timer, mut driver) = DurableTimer::builder().topic(topic, fails).build_manual(MemoryStore::new()).unwrap();
    timer.new_timeout(t(), Duration::ZERO, &text("a")).wait().unwrap();
    assert_eq!([driver.advance(SECOND), driver.advance(SECOND), driver.advance(SECOND)], [2, 0, 1], "after 0, 1, 3 s");
    let letters = timer.dead_letters(None, None, 9).wait().unwrap();
    assert_eq!((letters.len(), &*letters[0].reason, letters[0].attempt), (1, "no", 3));
    assert_eq!(timer.requeue(letters[0].id).wait().unwrap(), RequeueAnswer::Requeued);
    assert_eq!(driver.run_due(), 1);
    assert_eq!(driver.advance(100 * SECOND), 2, "its attempts count anew");
    assert!(timer.purge(letters[0].id).wait().unwrap());
    assert_eq!(timer.counts().wait().unwrap(), timer_durable::Counts::default());
}

#[test]
fn a_long_reason_is_cut() {
    let fails = |_: &Due<String>| -> Result<(), Retry> { Err(Retry::dead("é".repeat(1 << 20))) };
    let (timer, mut driver) = DurableTimer::builder().topic(t(), fails).build_manual(MemoryStore::new()).unwrap();
    timer.new_timeout(t(), Duration::ZERO, &text("a")).wait().unwrap();
    driver.run_due();
    let letters = timer.dead_letters(None, None, 9).wait().unwrap();
    assert_eq!(letters[0].reason, "é".repeat(1 << 15));
    let odd = Retry::new(format!("a{}", "é".repeat(1 << 20)));
    assert_eq!(odd.reason().len(), (1 << 16) - 1);
}

#[test]
fn a_handler_that_panics_harms_its_timeout_only() {
    let log = Log::default();
    let panics = |due: &Due<String>| -> Result<(), Retry> { panic!("{} is bad", due.payload()) };
    let builder = builder(&log).topic(Topic::new("bad").attempts(1), panics);
    let (timer, mut driver) = builder.build_manual(MemoryStore::new()).unwrap();
    timer.new_timeout(Topic::new("bad"), Duration::ZERO, &text("x")).wait().unwrap();
    timer.new_timeout(t(), Duration::ZERO, &text("a")).wait().unwrap();
    driver.run_due();
    assert_eq!(take(&log), ["a 1"], "D11");
    let letters = timer.dead_letters(Some("bad"), None, 9).wait().unwrap();
    assert!(letters[0].reason.contains("x is bad"), "{letters:?}");
}

#[test]
fn a_payload_that_cannot_be_read_is_kept() {
    let log = Log::default();
    let (timer, mut driver) = DurableTimer::builder()
        .topic(Topic::new("t").attempts(1), logging(&log))
        .build_manual(MemoryStore::new())
        .unwrap();
    timer.new_timeout(t(), Duration::ZERO, &vec![0xff_u8, 0xfe]).wait().unwrap();
    driver.run_due();
    let letters = timer.dead_letters(None, None, 9).wait().unwrap();
    assert_eq!(letters[0].payload, [0xff, 0xfe], "D11");
    assert!(letters[0].reason.contains("cannot be read"));
}

#[test]
fn a_topic_without_handler_waits_for_one() {
    let store = MemoryStore::new();
    let (timer, mut driver) = DurableTimer::builder().topic_elsewhere(t::<()>()).build_manual(store.clone()).unwrap();
    timer.new_timeout(t(), Duration::ZERO, &text("a")).wait().unwrap();
    driver.advance(600 * SECOND);
    assert_eq!(timer.stats().without_handler, 11, "it is looked at once a minute");
    driver.crash();
    drop(timer);
    let (timer, mut driver, log) = open(&store);
    assert_eq!(driver.advance(61 * SECOND), 1);
    assert_eq!(take(&log).len(), 1);
    assert_eq!(timer.counts().wait().unwrap().dead, 0, "attempts without a handler do not count");
}

#[test]
fn a_periodic_timeout_runs_at_a_fixed_rate() {
    let (timer, mut driver, log) = open(&MemoryStore::new());
    timer.schedule(t(), Schedule::after(10 * SECOND).key("daily").every(10 * SECOND), &text("a")).wait().unwrap();
    assert_eq!(driver.advance(35 * SECOND), 3);
    assert_eq!(take(&log), ["a 1", "a 2", "a 3"]);
    assert_eq!(timer.cancel(t::<()>(), "daily").wait().unwrap(), CancelAnswer::Cancelled);
    assert_eq!(driver.advance(100 * SECOND), 0);
    assert!(matches!(
        timer.schedule(t(), Schedule::after(Duration::ZERO).every(Duration::ZERO), "").wait(),
        Err(Error::ZeroPeriod)
    ));
}

#[test]
fn an_error_is_never_a_success() {
    let store = MemoryStore::new();
    let (timer, mut driver, log) = open(&store);
    store.inject(Fault::FailBefore);
    let failed = timer.new_timeout(t(), SECOND, &text("a"));
    assert!(matches!(failed.wait(), Err(Error::Store(StoreError::Failed(_)))), "D16");
    for fault in [Fault::LoseAnswer, Fault::LoseRequest] {
        store.inject(fault);
        let Err(Error::OutcomeUnknown { id: Some(id), .. }) = timer.new_timeout(t(), SECOND, &text("b")).wait() else {
            panic!("{fault:?}");
        };
        timer.schedule(t(), Schedule::after(SECOND).id(id), &text("b")).wait().unwrap();
    }
    assert_eq!(driver.advance(10 * SECOND), 2, "D10: no call made two timeouts");
    assert_eq!(take(&log), ["b 1", "b 1"]);
}

#[test]
fn a_lost_end_is_written_again() {
    for fault in [Fault::FailBefore, Fault::LoseAnswer, Fault::LoseRequest, Fault::Fence] {
        let store = MemoryStore::new();
        let (timer, mut driver, log) = open(&store);
        timer.new_timeout(t(), SECOND, &text("a")).wait().unwrap();
        store.advance_clock(SECOND);
        // The begin succeeds, and the commit of the end fails.
        store.inject(Fault::StepClock(0));
        store.inject(fault);
        driver.run_due();
        driver.advance(100 * SECOND);
        assert_eq!(take(&log), ["a 1"], "{fault:?}");
        assert_eq!(timer.counts().wait().unwrap().pending, 0, "{fault:?}");
    }
}

#[test]
fn a_lost_begin_begins_again() {
    for (fault, attempt) in
        [(Fault::FailBefore, "a 1"), (Fault::LoseRequest, "a 1"), (Fault::Fence, "a 1"), (Fault::LoseAnswer, "a 2")]
    {
        let store = MemoryStore::new();
        let (timer, mut driver, log) = open(&store);
        timer.new_timeout(t(), SECOND, &text("a")).wait().unwrap();
        store.inject(fault);
        driver.advance(100 * SECOND);
        assert_eq!(take(&log), [attempt], "D3 after {fault:?}");
        assert_eq!(timer.counts().wait().unwrap().pending, 0, "D2 after {fault:?}");
    }
}

#[test]
fn a_clock_that_steps_back_starts_nothing_early() {
    let store = MemoryStore::new();
    let (timer, mut driver, log) = open(&store);
    timer.new_timeout(t(), 10 * SECOND, &text("a")).wait().unwrap();
    store.step_clock(-5_000_000);
    assert_eq!(driver.advance(9 * SECOND), 0, "D5");
    assert_eq!(driver.advance(5 * SECOND), 0, "D5: it is due a second later");
    assert_eq!(driver.advance(SECOND), 1);
    assert_eq!(take(&log), ["a 1"]);
}

#[test]
fn memory_is_bounded_by_the_capacity() {
    let log = Log::default();
    let (timer, mut driver) = builder(&log).capacity(16).build_manual(MemoryStore::new()).unwrap();
    for n in (1..=200_u32).rev() {
        timer.new_timeout(t(), n * SECOND, &n.to_string()).wait().unwrap();
        assert!(timer.stats().in_memory <= 16, "D12");
    }
    assert_eq!(driver.advance(200 * SECOND), 200);
    let expected: Vec<String> = (1..=200).map(|n| format!("{n} 1")).collect();
    assert_eq!(take(&log), expected, "in the order of their due times");
}

#[test]
fn timeouts_of_later_days_are_loaded_in_time() {
    const DAY: Duration = Duration::from_secs(86_400);
    let store = MemoryStore::new();
    let log = Log::default();
    let open = || builder(&log).capacity(8).build_manual(store.clone()).unwrap();
    let (timer, driver) = open();
    let ids: Vec<_> = (1..=20_u32).map(|n| timer.new_timeout(t(), n * DAY, &n.to_string()).wait().unwrap()).collect();
    driver.crash();
    let (timer, mut driver) = open();
    ids[..5].iter().for_each(|id| assert_eq!(timer.cancel_by_id(*id).wait().unwrap(), CancelAnswer::Cancelled));
    assert_eq!(timer.stats().in_memory, 0, "the rest is days away");
    for n in 6..=20 {
        assert_eq!(driver.advance_to_next(), Some(1));
        assert_eq!(take(&log), [format!("{n} 1")]);
    }
    assert_eq!(driver.advance_to_next(), None);
}

#[test]
fn idle_timers_take_no_turns() {
    let (timer, mut driver, _log) = open(&MemoryStore::new());
    timer.new_timeout(t(), 3600 * SECOND, &text("a")).wait().unwrap();
    let turns = timer.stats().turns;
    driver.advance(1800 * SECOND);
    assert_eq!(timer.stats().turns, turns, "D14");
}

#[test]
fn a_stopped_timer_refuses_calls() {
    let (timer, _driver, _log) = open(&MemoryStore::new());
    assert_eq!(timer.stop(SECOND).wait().unwrap().unfinished, 0);
    assert!(matches!(timer.new_timeout(t(), SECOND, &text("a")).wait(), Err(Error::Stopped)));
    assert_eq!(timer.stop(SECOND).wait().unwrap().unfinished, 0);
}

#[test]
fn bad_arguments_are_errors_that_say_what_is_allowed() {
    let log = Log::default();
    let (timer, _driver) = builder(&log).max_payload(4).build_manual(MemoryStore::new()).unwrap();
    let payload = timer.new_timeout(t(), SECOND, &text("12345")).wait().unwrap_err();
    assert_eq!(payload.to_string(), "a payload of 5 bytes was given; at most 4 are allowed");
    let topic = timer.new_timeout(Topic::new("x"), SECOND, &text("")).wait().unwrap_err();
    assert_eq!(topic.to_string(), "the topic `x` has no handler here; there are t");
    let key = timer.schedule(t(), Schedule::after(SECOND).key("k".repeat(256)), &text("")).wait().unwrap_err();
    assert!(key.to_string().contains("a key of 256 bytes was given; at most 255 are allowed"));
    let delay = timer.new_timeout(t(), Duration::MAX, &text("")).wait().unwrap_err();
    assert!(delay.to_string().starts_with("a delay of "), "{delay}");
    let setting = DurableTimer::builder().max_running(0).build_manual(MemoryStore::new()).unwrap_err();
    assert!(setting.to_string().starts_with("max_running: 0 was given; allowed is at least 1"), "{setting}");
    let setting = DurableTimer::builder().overdue_rate(0).build_manual(MemoryStore::new()).unwrap_err();
    assert!(setting.to_string().starts_with("overdue_rate: 0 was given; allowed is at least 1"), "{setting}");
}
