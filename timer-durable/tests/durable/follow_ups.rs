//! Handlers that schedule the next timeout of their key.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use timer_durable::{
    Due, DurableTimer, Error, Fault, IfPending, ManualDurableDriver, MemoryStore, Retry, Schedule, ScheduleAnswer,
    TimeoutId, WeakDurableTimer,
};

use crate::t;

const SECOND: Duration = Duration::from_secs(1);

type Answers = Arc<Mutex<Vec<(TimeoutId, Result<ScheduleAnswer, String>)>>>;

/// The calls of a handler, by payload and attempt.
type Calls = fn(&DurableTimer, &Due<String>) -> Vec<Result<ScheduleAnswer, Error>>;

struct Bench {
    timer: DurableTimer,
    driver: ManualDurableDriver,
    store: MemoryStore,
    answers: Answers,
}

/// Opens a timer whose handler makes calls and notes the answers. The first attempt of a payload
/// that begins with `fails` fails.
fn open(calls: Calls) -> Bench {
    let store = MemoryStore::new();
    let answers = Answers::default();
    let own = Arc::<OnceLock<WeakDurableTimer>>::default();
    let handle = own.clone();
    let noted = answers.clone();
    let handler = move |due: &Due<String>| {
        let timer = handle.get().unwrap().upgrade().unwrap();
        for answer in calls(&timer, due) {
            noted.lock().unwrap().push((due.id(), answer.map_err(|error| error.to_string())));
        }
        let fails = due.payload().starts_with("fails") && due.attempt() == 1;
        if fails { Err(Retry::after(SECOND).because("not yet")) } else { Ok(()) }
    };
    let (timer, driver) = DurableTimer::builder().topic(t(), handler).build_manual(store.clone()).unwrap();
    own.set(timer.downgrade()).unwrap();
    Bench { timer, driver, store, answers }
}

fn keyed(timer: &DurableTimer, payload: &str, if_pending: IfPending) -> Result<ScheduleAnswer, Error> {
    timer.schedule(t(), Schedule::after(10 * SECOND).key("k").if_pending(if_pending), payload).wait()
}

#[test]
fn a_handler_schedules_the_next_timeout_of_its_key() {
    for if_pending in [IfPending::Keep, IfPending::Replace, IfPending::Earlier, IfPending::Later, IfPending::Refuse] {
        let mut bench = match if_pending {
            IfPending::Keep => open(|timer, due| next(timer, due, IfPending::Keep)),
            IfPending::Replace => open(|timer, due| next(timer, due, IfPending::Replace)),
            IfPending::Earlier => open(|timer, due| next(timer, due, IfPending::Earlier)),
            IfPending::Later => open(|timer, due| next(timer, due, IfPending::Later)),
            _ => open(|timer, due| next(timer, due, IfPending::Refuse)),
        };
        keyed(&bench.timer, "first", IfPending::Keep).unwrap();
        assert_eq!(bench.driver.advance(10 * SECOND), 1);
        assert_eq!(bench.timer.counts().wait().unwrap().pending, 1, "{if_pending:?}");
        assert_eq!(bench.driver.advance(10 * SECOND), 1);
        assert_eq!(bench.timer.counts().wait().unwrap().pending, 0, "{if_pending:?}");
        let answers = bench.answers.lock().unwrap().clone();
        let [(own, Ok(ScheduleAnswer::Created(next)))] = answers[..] else { panic!("{if_pending:?}: {answers:?}") };
        assert_ne!(own, next, "{if_pending:?}");
    }

    fn next(timer: &DurableTimer, due: &Due<String>, if_pending: IfPending) -> Vec<Result<ScheduleAnswer, Error>> {
        if due.payload() == "first" { vec![keyed(timer, "second", if_pending)] } else { Vec::new() }
    }
}

#[test]
fn a_second_call_of_the_handler_meets_the_first_one() {
    let mut bench = open(|timer, due| match due.payload().as_str() {
        "first" => {
            let call = |delay: u32, if_pending| {
                timer.schedule(t(), Schedule::after(delay * SECOND).key("k").if_pending(if_pending), &delay.to_string())
            };
            vec![
                call(10, IfPending::Keep).wait(),
                call(5, IfPending::Keep).wait(),
                call(5, IfPending::Refuse).wait(),
                call(5, IfPending::Later).wait(),
                call(5, IfPending::Earlier).wait(),
                call(20, IfPending::Replace).wait(),
            ]
        }
        _ => Vec::new(),
    });
    keyed(&bench.timer, "first", IfPending::Keep).unwrap();
    bench.driver.advance(10 * SECOND);
    assert_eq!((bench.driver.advance(19 * SECOND), bench.driver.advance(SECOND)), (0, 1));
    let answers: Vec<_> = bench.answers.lock().unwrap().iter().map(|(_, answer)| answer.clone()).collect();
    let Ok(ScheduleAnswer::Created(id)) = answers[0] else { panic!("{answers:?}") };
    assert_eq!(answers[1], Ok(ScheduleAnswer::Kept(id)));
    assert!(answers[2].as_ref().is_err_and(|error| error.contains(&id.to_string())), "{answers:?}");
    assert_eq!(answers[3..5], [Ok(ScheduleAnswer::Kept(id)), Ok(ScheduleAnswer::Moved(id))]);
    assert!(matches!(answers[5], Ok(ScheduleAnswer::Created(new)) if new != id), "{answers:?}");
}

#[test]
fn a_failed_attempt_schedules_nothing() {
    let mut bench = open(|timer, due| match due.attempt() {
        1 => vec![keyed(timer, "second", IfPending::Replace)],
        _ => Vec::new(),
    });
    keyed(&bench.timer, "fails once", IfPending::Keep).unwrap();
    assert_eq!(bench.driver.advance(60 * SECOND), 2, "both attempts of the first one");
    assert_eq!(bench.timer.counts().wait().unwrap().pending, 0);
}

#[test]
fn a_lost_end_is_written_again_with_the_next_timeout() {
    for fault in [Fault::FailBefore, Fault::LoseRequest, Fault::LoseAnswer] {
        let mut bench = open(|timer, due| match due.payload().as_str() {
            "first" => vec![keyed(timer, "second", IfPending::Keep)],
            _ => Vec::new(),
        });
        keyed(&bench.timer, "first", IfPending::Keep).unwrap();
        bench.store.inject_at(timer_durable::FaultPoint::Write, Fault::Delay(Duration::ZERO));
        bench.store.inject(fault);
        let ran = bench.driver.advance(19 * SECOND) + bench.driver.advance(60 * SECOND);
        assert_eq!(ran, 2, "{fault:?}: {:?}", bench.answers);
        assert_eq!(bench.timer.counts().wait().unwrap().pending, 0, "D2 after {fault:?}");
    }
}

#[test]
fn a_periodic_timeout_keeps_its_key_unless_it_is_replaced() {
    let mut bench = open(|timer, due| match due.attempt() {
        1 => vec![keyed(timer, "other", IfPending::Keep)],
        2 => vec![keyed(timer, "other", IfPending::Replace)],
        _ => Vec::new(),
    });
    let periodic = bench.timer.schedule(t(), Schedule::after(SECOND).key("k").every(SECOND), "series");
    let id = periodic.wait().unwrap().id();
    assert_eq!(bench.driver.advance(5 * SECOND), 2, "the second run ends the series");
    let answers = bench.answers.lock().unwrap().clone();
    assert_eq!(answers[0].1, Ok(ScheduleAnswer::Kept(id)));
    assert!(matches!(answers[1].1, Ok(ScheduleAnswer::Created(new)) if new != id), "{answers:?}");
    assert_eq!(bench.timer.counts().wait().unwrap().pending, 1);
}

#[test]
fn an_async_handler_schedules_the_next_timeout_of_its_key() {
    let own = Arc::<OnceLock<WeakDurableTimer>>::default();
    let handle = own.clone();
    let handler = move |due: Due<String>| {
        let timer = handle.get().unwrap().upgrade().unwrap();
        async move {
            if due.payload() == "first" {
                // The driver answers the call when the handler has returned.
                drop(timer.schedule(t(), Schedule::after(SECOND).key("k"), "second"));
            }
            Ok(())
        }
    };
    let (timer, mut driver) = DurableTimer::builder()
        .spawn(futures::executor::block_on)
        .topic_async(t(), handler)
        .build_manual(MemoryStore::new())
        .unwrap();
    own.set(timer.downgrade()).unwrap();
    keyed(&timer, "first", IfPending::Keep).unwrap();
    assert_eq!(driver.advance(20 * SECOND), 2);
    assert_eq!(timer.counts().wait().unwrap().pending, 0);
}
