//! Faults at each call of a store, on virtual time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use timer_durable::store::{Store, StoreTransaction};
use timer_durable::transaction::Operation;
use timer_durable::{
    Done, Due, DurableTimer, Error, Fault, FaultPoint, MemoryStore, Retry, Schedule, StoreError, Topic,
};

use crate::t;

const SECOND: Duration = Duration::from_secs(1);

type Log = Arc<Mutex<Vec<String>>>;

/// Opens a timer whose handler ends its attempts in a transaction, and logs the answers.
fn open(store: &MemoryStore, log: &Log) -> (DurableTimer, timer_durable::ManualDurableDriver) {
    let log = log.clone();
    let other = store.clone();
    let handle = move |due: &Due<String>| {
        let other = other.clone();
        // Work may use another handle of the store.
        let answer = due.complete_with(move |_| Ok(_ = other.now())).wait();
        log.lock().unwrap().push(format!("{} {answer:?}", due.attempt()));
        answer.map_err(|error| match error {
            Error::Store(StoreError::Fenced) => Retry::new("fenced"),
            error => Retry::after(SECOND).because(error),
        })
    };
    DurableTimer::builder().topic(t(), handle).build_manual(store.clone()).unwrap()
}

#[cfg(feature = "conformance")]
#[test]
fn the_memory_store_conforms() {
    timer_durable::conformance::run(MemoryStore::new);
}

#[test]
fn faults_of_every_call_lose_nothing() {
    let kinds = [Fault::FailBefore, Fault::LoseAnswer, Fault::LoseRequest, Fault::TearAnswer, Fault::Fence];
    for point in [FaultPoint::Write, FaultPoint::Transact, FaultPoint::Load, FaultPoint::Rejoin] {
        for fault in kinds {
            let store = MemoryStore::new();
            let log = Log::default();
            let (timer, mut driver) = open(&store, &log);
            timer.new_timeout(t(), SECOND, &"a".to_owned()).wait().unwrap();
            store.inject_at(point, fault);
            if matches!(point, FaultPoint::Load | FaultPoint::Rejoin) {
                // The keeper joins again, and reads its first page.
                store.inject(Fault::LoseRequest);
                timer.new_timeout(t(), SECOND, &"b".to_owned()).wait().unwrap_err();
            }
            driver.advance(100 * SECOND);
            assert_eq!(timer.counts().wait().unwrap().pending, 0, "D2 after {fault:?} of {point:?}");
            let log = log.lock().unwrap();
            let errors = timer.stats().store_errors;
            let is_met = match point {
                FaultPoint::Write => errors == 1,
                FaultPoint::Transact => log[0].contains("Err("),
                _ => errors == 2,
            };
            assert!(is_met, "{fault:?} of {point:?} has no effect: {log:?}");
            let done = log.iter().filter(|line| line.ends_with("Ok(())")).count();
            let unknown = log.iter().filter(|line| line.contains("OutcomeUnknown")).count();
            assert!(done == 1 || done == 0 && unknown == 1, "D4 after {fault:?} of {point:?}: {log:?}");
        }
    }
}

#[test]
fn a_call_is_repeated_after_its_timeout_has_ended() {
    let store = MemoryStore::new();
    let log = Log::default();
    let (timer, mut driver) = open(&store, &log);
    store.inject(Fault::LoseAnswer);
    let lost = timer.new_timeout(t(), SECOND, &"a".to_owned()).wait();
    let Err(Error::OutcomeUnknown { id: Some(id), .. }) = lost else { panic!("{lost:?}") };
    assert_eq!(driver.advance(2 * SECOND), 1);
    timer.schedule(t(), Schedule::after(SECOND).id(id), &"a".to_owned()).wait().unwrap();
    assert_eq!(driver.advance(2 * SECOND), 0, "D10");
}

#[test]
fn a_fault_of_the_users_transaction_is_told_to_the_handler() {
    let expected = [
        (Fault::FailBefore, "1 Err(Store(Failed("),
        (Fault::LoseAnswer, "1 Err(OutcomeUnknown {"),
        (Fault::LoseRequest, "1 Err(OutcomeUnknown {"),
        (Fault::Fence, "1 Err(Store(Fenced"),
    ];
    for (fault, line) in expected {
        let store = MemoryStore::new();
        let log = Log::default();
        let (timer, mut driver) = open(&store, &log);
        timer.new_timeout(t(), SECOND, &"a".to_owned()).wait().unwrap();
        store.inject_at(FaultPoint::Transact, fault);
        driver.advance(SECOND);
        assert!(log.lock().unwrap()[0].starts_with(line), "{fault:?}: {log:?}");
    }
}

#[test]
fn a_handler_that_returns_after_a_take_over_does_not_end_its_timeout() {
    let store = MemoryStore::new();
    let done = Arc::<Mutex<Vec<u32>>>::default();
    let attempts = done.clone();
    let handle = move |due: &Due<String>| {
        let answer = due.complete_with(|_| Ok(())).wait();
        if answer.is_ok() {
            attempts.lock().unwrap().push(due.attempt());
        }
        // Returns without an error, because another attempt does the work.
        if matches!(answer, Err(Error::Store(StoreError::Fenced))) { Ok(()) } else { answer.map_err(Retry::new) }
    };
    let (timer, mut driver) = DurableTimer::builder().topic(t(), handle).build_manual(store.clone()).unwrap();
    timer.new_timeout(t(), SECOND, &"a".to_owned()).wait().unwrap();
    store.inject_at(FaultPoint::Transact, Fault::Fence);
    driver.advance(100 * SECOND);
    assert_eq!(*done.lock().unwrap(), [2], "D4");
    assert_eq!(timer.counts().wait().unwrap().pending, 0);
}

/// Another client ends the attempts, as `timer.complete` does.
#[test]
fn an_attempt_that_another_client_ends_is_done() {
    let other = Topic::<()>::new("other");
    // The payload, with the numbers of done and refused attempts.
    for (payload, done, refused) in [("fine", 2, 0), ("fails", 1, 0), ("taken over", 0, 1)] {
        let store = MemoryStore::new();
        let client = store.clone();
        let handle = move |due: &Due<String>| {
            let end = Operation::Done { id: due.id(), attempt: due.attempt(), next: None, then: Vec::new() };
            client.clone().execute(&end).map_err(Retry::new)?;
            match due.payload().as_str() {
                "fine" => return Ok(Done::then(other, Schedule::after(SECOND), &())),
                "fails" => return Err(Retry::new("too late")),
                _ => client.inject(Fault::Fence),
            }
            Ok(Done::new())
        };
        let builder = DurableTimer::builder().topic(t(), handle).topic(other, |_: &Due<()>| Ok(()));
        let (timer, mut driver) = builder.build_manual(store).unwrap();
        timer.new_timeout(t(), SECOND, payload).wait().unwrap();
        driver.advance(60 * SECOND);
        let stats = timer.stats();
        assert_eq!((stats.done, stats.refused, stats.failed), (done, refused, 0), "{payload}");
        assert_eq!((stats.running, stats.topics["t"].done), (0, done.min(1)), "{payload}");
    }
}

#[test]
fn a_running_timeout_is_pending_once_after_a_rejoin() {
    let store = MemoryStore::new();
    let (timer, mut driver) = DurableTimer::builder()
        // The handler does not end, because nothing polls its future.
        .spawn(std::mem::forget)
        .topic_async(t(), |_: Due<String>| async { Ok(()) })
        .build_manual(store.clone())
        .unwrap();
    timer.new_timeout(t(), Duration::ZERO, &"a".to_owned()).wait().unwrap();
    driver.advance(SECOND);
    store.inject(Fault::LoseRequest);
    timer.new_timeout(t(), 3600 * SECOND, &"b".to_owned()).wait().unwrap_err();
    driver.advance(60 * SECOND);
    let stats = timer.stats();
    assert_eq!((stats.rejoins, stats.running, stats.pending), (1, 1, Some(1)));
}

#[test]
fn a_slow_commit_delays_what_comes_after_it() {
    let store = MemoryStore::new();
    let log = Log::default();
    let (timer, mut driver) = open(&store, &log);
    let before = store.now();
    timer.new_timeout(t(), 2 * SECOND, &"a".to_owned()).wait().unwrap();
    store.inject(Fault::Delay(5 * SECOND));
    timer.new_timeout(t(), 60 * SECOND, &"b".to_owned()).wait().unwrap();
    assert_eq!(store.now() - before, 5_000_000);
    assert_eq!(driver.run_due(), 1, "it became due during the commit");
    assert_eq!(timer.stats().lag.count(), 1);
}
