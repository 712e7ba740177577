//! Handlers that run as futures, and payloads that panic, through the public API.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use timer_durable::{Due, DurableTimer, MemoryStore, Payload, PayloadError, Retry, Topic};

use crate::t;

/// A future that a runtime has been asked to run.
type SpawnedFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

#[test]
fn a_future_ends_its_attempt() {
    let spawned: Arc<Mutex<Vec<SpawnedFuture>>> = Arc::default();
    let runtime = spawned.clone();
    let (timer, mut driver) = DurableTimer::builder()
        .spawn(move |future| runtime.lock().unwrap().push(future))
        .topic_async(Topic::new("t").attempts(3).backoff(Duration::ZERO, Duration::ZERO), |due: Due<()>| async move {
            match due.attempt() {
                1 => Err(Retry::new("not yet")),
                2 => panic!("a bad future"),
                _ => Ok(()),
            }
        })
        .build_manual(MemoryStore::new())
        .unwrap();
    timer.new_timeout(t(), Duration::ZERO, &()).wait().unwrap();
    for attempt in 1..=3 {
        assert_eq!(driver.run_due(), 1);
        assert_eq!(timer.stats().running, 1, "attempt {attempt} runs until its future is ready");
        let future = spawned.lock().unwrap().pop().unwrap();
        let ended = std::panic::catch_unwind(AssertUnwindSafe(|| futures::executor::block_on(future)));
        assert_eq!(ended.is_err(), attempt == 2);
    }
    driver.run_due();
    let stats = timer.stats();
    assert_eq!((stats.begun, stats.retried, stats.done, stats.running), (3, 2, 1, 0));
}

#[test]
fn a_future_that_is_dropped_fails_its_attempt() {
    let (timer, mut driver) = DurableTimer::builder()
        .spawn(drop)
        .topic_async(Topic::new("t").attempts(1), |_: Due<()>| async { Ok(()) })
        .build_manual(MemoryStore::new())
        .unwrap();
    timer.new_timeout(t(), Duration::ZERO, &()).wait().unwrap();
    driver.run_due();
    assert_eq!((timer.counts().wait().unwrap().pending, timer.counts().wait().unwrap().dead), (0, 1), "D2");
}

#[test]
fn an_async_topic_needs_a_runtime() {
    let builder = DurableTimer::builder().topic_async(t(), |_: Due<()>| async { Ok(()) });
    // Settings that follow must not hide the error.
    let builder = builder.max_running(64).spawn(drop);
    let error = builder.build_manual(MemoryStore::new()).unwrap_err();
    assert!(error.to_string().contains("async topics need `spawn` before them"), "{error}");
}

/// A payload whose codec has a fault.
struct FaultyPayload;

impl Payload for FaultyPayload {
    const FORMAT: i16 = 100;

    fn encode(&self) -> Result<Vec<u8>, PayloadError> {
        Ok(Vec::new())
    }

    fn decode(bytes: Vec<u8>, _: i16) -> Result<Self, PayloadError> {
        assert_ne!(bytes.len(), 0, "it is empty");
        Ok(Self)
    }
}

#[test]
fn a_payload_whose_decoding_panics_is_a_dead_letter_with_the_reason() {
    let [function, future] = ["function", "future"].map(|name| Topic::new(name).attempts(1));
    let (timer, mut driver) = DurableTimer::builder()
        .spawn(drop)
        .topic(function, |_: &Due<FaultyPayload>| Ok(()))
        .topic_async(future, |_: Due<FaultyPayload>| async { Ok(()) })
        .build_manual(MemoryStore::new())
        .unwrap();
    for topic in [function, future] {
        timer.new_timeout(topic, Duration::ZERO, &FaultyPayload).wait().unwrap();
        driver.run_due();
        let letters = timer.dead_letters(Some(topic.name()), None, 9).wait().unwrap();
        assert!(
            letters[0].reason.contains("decoding it panicked") && letters[0].reason.contains("it is empty"),
            "{letters:?}"
        );
    }
}
