//! Lazy start from two threads; the end of the last handle against a running turn.

use super::{check, engine, engine_driven, new_timeout, turn};
use crate::engine::Driven;
use crate::sync::{AtomicU64, Ordering};
use crate::turn::Turner;
use loom::thread;

/// Both calls find the worker started, it is one, and `stop` ends it.
#[test]
fn loom_life_two_threads_start_one_worker() {
    check(|| {
        let engine = engine_driven(None, Driven::ByWorker);
        let other = {
            let engine = engine.clone();
            thread::spawn(move || engine.start())
        };
        assert_eq!(engine.start(), Ok(()));
        assert_eq!(other.join().unwrap(), Ok(()));
        drop(engine.stop());
        assert!(engine.start().is_err());
    });
}

/// The last handle goes while a turn runs: what was scheduled runs or is cancelled, once.
#[test]
fn loom_life_the_last_handle_goes_during_a_turn() {
    check(|| {
        let engine = engine(None);
        let (timeout, fate) = new_timeout(&engine, 5);
        drop(timeout);
        let mut turner = Turner::new(engine.clone());
        let worker = thread::spawn(move || turn(&mut turner, 5));
        engine.abandon();
        let ran = worker.join().unwrap();
        drop(engine);
        assert_eq!((fate.ran(), fate.dropped()), (ran, 1));
    });
}

/// Deciding by a flag that is looked at and then set: two workers.
#[test]
#[should_panic(expected = "one worker")]
fn loom_life_negative_a_flag_that_is_read_and_then_set_starts_two() {
    check(|| {
        let started = loom::sync::Arc::new(AtomicU64::new(0));
        let workers = loom::sync::Arc::new(AtomicU64::new(0));
        let start = |started: &AtomicU64, workers: &AtomicU64| {
            if started.load(Ordering::Acquire) == 0 {
                started.store(1, Ordering::Release);
                workers.fetch_add(1, Ordering::Relaxed);
            }
        };
        let other = {
            let (started, workers) = (started.clone(), workers.clone());
            thread::spawn(move || start(&started, &workers))
        };
        start(&started, &workers);
        other.join().unwrap();
        assert_eq!(workers.load(Ordering::Relaxed), 1, "one worker");
    });
}
