//! Calls with all settings of a timeout, on virtual time.

use std::time::{Duration, UNIX_EPOCH};

use timer_durable::store::Store;
use timer_durable::{
    Due, DurableTimer, Error, Fault, IfPending, MemoryStore, Retry, Schedule, ScheduleAnswer, TimeoutId, Topic,
};

use crate::t;

const SECOND: Duration = Duration::from_secs(1);

fn ok(_: &Due<String>) -> Result<(), Retry> {
    Ok(())
}

#[test]
fn a_keyed_call_is_repeated_with_its_id() {
    for fault in [Fault::LoseAnswer, Fault::LoseRequest] {
        let store = MemoryStore::new();
        let (timer, mut driver) = DurableTimer::builder().topic(t(), ok).build_manual(store.clone()).unwrap();
        let first = timer.schedule(t(), Schedule::after(60 * SECOND).key("k"), &"a".to_owned());
        first.wait().unwrap();
        let schedule = Schedule::after(10 * SECOND).key("k").if_pending(IfPending::Replace);
        let call = |schedule| timer.schedule(t(), schedule, &"b".to_owned()).wait();
        store.inject(fault);
        let Err(Error::OutcomeUnknown { id: Some(id), .. }) = call(schedule.clone()) else { panic!("{fault:?}") };
        assert_eq!(call(schedule.id(id)).unwrap(), ScheduleAnswer::Created(id), "D10");
        assert_eq!(timer.counts().wait().unwrap().pending, 1, "D10 after {fault:?}");
        assert_eq!(
            timer.reset(t::<()>(), "k", SECOND).wait().unwrap(),
            timer_durable::ResetAnswer::Reset,
            "it has its key"
        );
        assert_eq!(driver.advance(SECOND), 1);
    }
}

#[test]
fn a_periodic_timeout_begins_at_an_instant() {
    let store = MemoryStore::new();
    let (timer, mut driver) = DurableTimer::builder().topic(t(), ok).build_manual(store.clone()).unwrap();
    let start = UNIX_EPOCH + Duration::from_micros(store.now().unsigned_abs()) + 5 * SECOND;
    let id = TimeoutId::new();
    let schedule = Schedule::at(start).every(10 * SECOND).id(id);
    let answers = [(); 2].map(|()| timer.schedule(t(), schedule.clone(), &"a".to_owned()).wait().unwrap());
    assert_eq!(answers, [ScheduleAnswer::Created(id); 2]);
    assert_eq!((driver.advance(5 * SECOND), driver.advance(25 * SECOND)), (1, 2));
}

#[test]
fn a_topic_that_is_added_twice_is_refused() {
    let builder = || DurableTimer::builder().topic(Topic::new("a"), ok).topic(t(), ok);
    let twice = builder().topic(t(), |_: &Due<()>| Ok(()));
    let future = builder().spawn(drop).topic_async(t(), |_: Due<String>| async { Ok(()) });
    let elsewhere = builder().topic_elsewhere(t::<()>());
    for builder in [twice, future, elsewhere] {
        let error = builder.open(MemoryStore::new()).wait().unwrap_err();
        assert_eq!(error.to_string(), "topic: t was given; allowed is each topic once");
    }
    let manual = builder().topic_elsewhere(t::<()>()).build_manual(MemoryStore::new());
    assert!(matches!(manual, Err(Error::Setting { name: "topic", .. })));
}

#[test]
fn bad_settings_show_when_the_call_is_made() {
    let (timer, _driver) = DurableTimer::builder().topic(t(), ok).build_manual(MemoryStore::new()).unwrap();
    let call = |topic: Topic<String>, schedule| timer.schedule(topic, schedule, &"a".to_owned()).wait();
    let soon = || Schedule::after(SECOND);
    assert!(matches!(call(Topic::new("x"), soon().key("k")), Err(Error::UnknownTopic { .. })));
    assert!(matches!(call(t(), soon().every(Duration::ZERO)), Err(Error::ZeroPeriod)));
    assert!(matches!(call(t(), soon().key("\0")), Err(Error::NulCharacter { .. })));
    assert!(matches!(call(t(), soon().cap(SECOND)), Err(Error::Setting { name: "cap", .. })));
    let many = (0..99)
        .fold(DurableTimer::builder(), |builder, n| builder.topic_elsewhere(Topic::<()>::new(n.to_string().leak())));
    let (many, _driver) = many.build_manual(MemoryStore::new()).unwrap();
    let topic = many.new_timeout(Topic::new("x"), SECOND, &()).wait().unwrap_err().to_string();
    assert!(topic.ends_with(" and others") && topic.len() < 100, "{topic}");
    let named = DurableTimer::builder().name("a\0b").open(MemoryStore::new()).wait().unwrap_err();
    assert_eq!(named.to_string(), "name: \"a\\0b\" was given; allowed is a name without NUL characters");
    assert_eq!(timer.dead_letters(Some("a\0"), None, 9).wait().unwrap(), [], "no timeout has such a topic");
    let long = call(t(), Schedule::after(Duration::MAX));
    assert!(matches!(long, Err(Error::DelayTooLong { .. })));
}
