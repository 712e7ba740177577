//! Models of a periodic task that is cancelled, reset or stopped during a run.

use super::{
    Outcome, assert_sound, beside, engine, heartbeat, set_time, time_at, turn, turn_at, turn_elsewhere, turn_out,
};
use crate::deadline::Deadline;
use crate::entry::{Period, Periodic, Timeout};
use loom::thread;
use std::sync::mpsc::channel;
use std::time::Duration;

/// The cancel comes before, during or after the run. It wins in each case, and the task is dropped
/// once and never runs again.
fn cancel_and_run() {
    let engine = engine();
    let (timeout, outcome) = heartbeat(&engine);
    set_time(&engine, 5);
    let canceller = thread::spawn(move || timeout.cancel());
    let mut dispatcher = engine.dispatcher();
    let _ = turn(&mut dispatcher);
    assert!(canceller.join().unwrap(), "a periodic timeout is there to be cancelled at any moment");
    let ran = outcome.ran();
    assert!(ran <= 1);
    assert_eq!(turn_out(&mut dispatcher), 0);
    assert_eq!((outcome.ran(), outcome.dropped()), (ran, 1), "the cancel is lost");
    assert_eq!((engine.pending(), engine.stats().cancelled), (0, 1));
    assert_sound(&engine);
}

model!(check, cancel_and_run,
    a_blind_store_loses_the_cancel Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

/// A run publishes a reference while the only handle is dropped, and the timeout is cancelled by
/// that reference.
fn a_reference_from_a_run_beside_the_drop_of_the_handle() {
    let engine = engine();
    let (counter, outcome) = Outcome::counter();
    let (publish, published) = channel();
    let task = move |timeout: &Timeout| {
        counter.run();
        publish.send(timeout.clone()).unwrap();
    };
    let deadline = Deadline::up(time_at(&engine.context, 5));
    let timeout = engine.schedule(Periodic { task, period: Period::Rate(10) }, |_| deadline);
    set_time(&engine, 5);
    let dropper = thread::spawn(move || drop(timeout));
    assert_eq!(turn(&mut engine.dispatcher()), 1);
    let timeout = published.recv().unwrap();
    assert!(timeout.cancel() && timeout.is_cancelled());
    assert_eq!((outcome.ran(), outcome.dropped()), (1, 1));
    dropper.join().unwrap();
    assert_sound(&engine);
}

model!(check, a_reference_from_a_run_beside_the_drop_of_the_handle,
    a_reference_is_dropped_in_two_steps Split "entry/mod.rs" "match header.refs.compare_exchange_weak",
);

/// The timer is stopped while the run ends. The timeout is either returned by `stop` or cancelled.
fn linked_again_and_stop() {
    let engine = engine();
    let (timeout, outcome) = heartbeat(&engine);
    set_time(&engine, 5);
    let worker = turn_elsewhere(&engine);
    let handed_back = engine.stop();
    let stopped_with = handed_back.len();
    drop(handed_back);
    let _ = worker.join().unwrap();
    assert!(stopped_with <= 1);
    assert_sound(&engine);
    let cancelled = engine.stats().cancelled;
    let unclaimed = !timeout.is_cancelled();
    drop(engine);
    assert!(timeout.is_cancelled(), "lost");
    assert_eq!((outcome.dropped(), cancelled), (1, u64::from(!unclaimed)));
}

model!(check, linked_again_and_stop,
    locking_in_two_steps Split "sync/lock.rs" "self.word.compare_exchange(old, new",
);

/// The run links its entry by a request, because a caller holds the lock. `stop` takes the request
/// or refuses it.
fn a_run_that_goes_on_and_stop_and_a_caller() {
    let engine = engine();
    let (timeout, outcome) = heartbeat(&engine);
    set_time(&engine, 5);
    let worker = turn_elsewhere(&engine);
    let caller = beside(&engine, move |engine| super::try_new(&engine, 50).0.is_ok());
    drop(engine.stop());
    let _ = worker.join().unwrap();
    let _ = caller.join().unwrap();
    assert_sound(&engine);
    drop(engine);
    assert!(timeout.is_cancelled() && outcome.dropped() == 1, "lost");
}

model!(check_heavy, a_run_that_goes_on_and_stop_and_a_caller,
    locking_in_two_steps Split "sync/lock.rs" "self.word.compare_exchange(old, new",
);

/// A reset during the run sets the deadline of the next run. A reset after the run moves it.
fn reset_and_run() {
    let engine = engine();
    let (timeout, outcome) = heartbeat(&engine);
    set_time(&engine, 5);
    let caller = beside(&timeout, move |timeout| timeout.reset(Duration::from_nanos(2)));
    let mut dispatcher = engine.dispatcher();
    let _ = turn(&mut dispatcher);
    assert!(caller.join().unwrap());
    let before = outcome.ran();
    assert!(before <= 1 && engine.next() <= 7, "missed");
    let _ = turn_at(&mut dispatcher, 7);
    assert_eq!((outcome.ran(), engine.pending()), (before + 1, 1));
    assert!(timeout.cancel());
    assert_eq!(outcome.dropped(), 1);
    assert_sound(&engine);
}

model!(check, reset_and_run, a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak");
