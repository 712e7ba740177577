//! Models of the start and the end of a timer. Two threads start one worker, the worker ends, and
//! the last handle meets a turn and an upgrade.

use super::{Subject, assert_sound, check, check_heavy, engine, engine_of, fails, new, set_time, turn_elsewhere};
use crate::config::{Config, DrivenBy};
use crate::handle::{Timer, WeakTimer};
use crate::sync::{Arc, How};
use crate::worker;
use loom::thread;
use std::time::Duration;

fn with_worker() -> Subject {
    engine_of(Config::default(), None, DrivenBy::Worker)
}

/// Both calls return after one worker was started, and `stop` ends it.
#[test]
fn two_threads_start_one_worker() {
    check_heavy(|| {
        let engine = with_worker();
        let other = {
            let engine = engine.clone();
            thread::spawn(move || worker::start(&engine))
        };
        assert_eq!(worker::start(&engine), Ok(()));
        assert_eq!(other.join().unwrap(), Ok(()));
        drop(engine.stop());
        assert!(worker::start(&engine).is_err());
        assert_sound(&engine);
    });
}

/// Two threads stop a timer with a worker. Both return after its end.
fn stopped_twice() {
    let engine = with_worker();
    assert_eq!(worker::start(&engine), Ok(()));
    let other = {
        let engine = engine.clone();
        thread::spawn(move || drop(engine.stop()))
    };
    drop(engine.stop());
    other.join().unwrap();
}

#[test]
fn a_timer_with_a_worker_is_stopped_twice() {
    check_heavy(stopped_twice);
}

#[test]
#[should_panic(expected = "deadlock")]
fn negative_the_worker_is_not_woken_by_stop() {
    fails("alarm.rs", "|until| Some(sooner(until))", How::Skip, stopped_twice);
}

/// The worker notifies a thread that waits for its end without joining it.
fn stopped_and_waited_for() {
    let engine = with_worker();
    assert_eq!(worker::start(&engine), Ok(()));
    let report = engine.stop_and_wait(Duration::from_secs(1)).unwrap();
    assert_eq!((report.unprocessed.len(), report.in_flight), (0, 0));
}

#[test]
fn stop_and_wait_for_the_worker() {
    check(stopped_and_waited_for);
}

#[test]
#[should_panic(expected = "deadlock")]
fn negative_the_workers_end_is_not_notified() {
    fails("engine/lifecycle.rs", "worker_ended.notify_all()", How::Skip, stopped_and_waited_for);
}

/// The last handle is dropped during a turn. The timeout runs or is cancelled, once.
#[test]
fn the_last_handle_goes_during_a_turn() {
    check(|| {
        let engine = engine();
        let (timeout, outcome) = new(&engine, 5);
        drop(timeout);
        set_time(&engine, 5);
        let worker = turn_elsewhere(&engine);
        engine.abandon();
        drop(engine);
        let ran = worker.join().unwrap();
        assert_eq!((outcome.ran(), outcome.dropped()), (ran, 1));
    });
}

/// The last handle is dropped while another thread upgrades a weak handle. Either the upgrade comes
/// first and the timer lives on, or it returns `None`.
fn last_handle_and_upgrade() {
    let engine = with_worker();
    let timer = Timer { engine: (*engine).clone() };
    let weak: WeakTimer = timer.downgrade();
    let upgrader = {
        let engine = engine.clone();
        thread::spawn(move || {
            let Some(timer) = weak.upgrade() else { return };
            assert!(!engine.context.is_stopped(), "a handle to a stopped timer");
            drop(timer);
        })
    };
    drop(timer);
    upgrader.join().unwrap();
    assert!(engine.context.is_stopped(), "no handle is left");
    assert_eq!(Arc::strong_count(&engine), 1);
}

#[test]
fn the_last_handle_and_an_upgrade() {
    check(last_handle_and_upgrade);
}

#[test]
#[should_panic]
fn negative_an_upgrade_by_load_and_store() {
    fails(
        "engine/lifecycle.rs",
        "fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)",
        How::Split,
        last_handle_and_upgrade,
    );
}

#[test]
#[should_panic]
fn negative_a_handle_is_dropped_in_two_steps() {
    fails("engine/lifecycle.rs", "self.lifecycle.handles.fetch_sub(1", How::Split, last_handle_and_upgrade);
}
