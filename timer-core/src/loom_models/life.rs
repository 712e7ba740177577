//! Models of the start and the end of a timer. Two threads start one worker, the worker ends, and
//! the last handle meets a turn and an upgrade.

use super::{Subject, assert_sound, beside, engine, engine_of, new, set_time, turn_elsewhere};
use crate::config::{Config, DrivenBy};
use crate::handle::{Timer, WeakTimer};
use crate::sync::Arc;
use crate::worker;
use std::time::Duration;

fn with_worker() -> Subject {
    engine_of(Config::default(), None, DrivenBy::Worker)
}

/// Both calls return after one worker was started, and `stop` ends it.
fn two_threads_start_one_worker() {
    let engine = with_worker();
    let other = beside(&engine, move |engine| worker::start(&engine));
    assert_eq!(worker::start(&engine), Ok(()));
    assert_eq!(other.join().unwrap(), Ok(()));
    drop(engine.stop());
    assert!(worker::start(&engine).is_err());
    assert_sound(&engine);
}

model!(check_heavy, two_threads_start_one_worker,
    the_worker_is_not_woken Skip "alarm.rs" "|until| Some(sooner(until))",
);

/// Two threads stop a timer with a worker. Both return after its end.
fn stopped_twice() {
    let engine = with_worker();
    assert_eq!(worker::start(&engine), Ok(()));
    let other = beside(&engine, move |engine| drop(engine.stop()));
    drop(engine.stop());
    other.join().unwrap();
}

model!(check_heavy, stopped_twice,
    the_worker_is_not_woken_by_stop ["deadlock"] Skip "alarm.rs" "|until| Some(sooner(until))",
);

/// The worker notifies a thread that waits for its end without joining it.
fn stopped_and_waited_for() {
    let engine = with_worker();
    assert_eq!(worker::start(&engine), Ok(()));
    let report = engine.stop_and_wait(Duration::from_secs(1)).unwrap();
    assert_eq!((report.unprocessed.len(), report.in_flight), (0, 0));
}

model!(check, stopped_and_waited_for,
    the_workers_end_is_not_notified ["deadlock"] Skip "engine/lifecycle.rs" "worker_ended.notify_all()",
);

/// The last handle is dropped during a turn. The timeout runs or is cancelled, once.
fn the_last_handle_goes_during_a_turn() {
    let engine = engine();
    let (timeout, outcome) = new(&engine, 5);
    drop(timeout);
    set_time(&engine, 5);
    let worker = turn_elsewhere(&engine);
    engine.abandon();
    drop(engine);
    let ran = worker.join().unwrap();
    assert_eq!((outcome.ran(), outcome.dropped()), (ran, 1));
}

model!(check, the_last_handle_goes_during_a_turn, unlocking_in_two_steps Split "sync/lock.rs" "word.fetch_sub(LOCKED");

/// The last handle is dropped while another thread upgrades a weak handle. Either the upgrade comes
/// first and the timer lives on, or it returns `None`.
fn last_handle_and_upgrade() {
    let engine = with_worker();
    let timer = Timer { engine: (*engine).clone() };
    let weak: WeakTimer = timer.downgrade();
    let upgrader = beside(&engine, move |engine| {
        let Some(timer) = weak.upgrade() else { return };
        assert!(!engine.context.is_stopped(), "a handle to a stopped timer");
        drop(timer);
    });
    drop(timer);
    upgrader.join().unwrap();
    assert!(engine.context.is_stopped(), "no handle is left");
    assert_eq!(Arc::strong_count(&engine), 1);
}

model!(check, last_handle_and_upgrade,
    an_upgrade_by_load_and_store Split "engine/lifecycle.rs" "fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)",
    a_handle_is_dropped_in_two_steps Split "engine/lifecycle.rs" "self.handles.fetch_sub(1",
);
