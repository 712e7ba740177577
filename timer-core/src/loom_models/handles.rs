//! Handles of one timer: it ends with the last one, not before, and after all that was done with
//! the others. The timer of the process does not end.

use super::{Subject, check, check_at, engine_of, fails};
use crate::config::{Config, DrivenBy};
use crate::error::StopError;
use crate::handle::Timer;
use crate::sync::{Arc, How, UnsafeCell};
use loom::thread;

/// A timer whose worker is not started, and its first handle.
fn timer() -> (Subject, Timer) {
    let engine = engine_of(Config::default(), None, DrivenBy::Worker);
    let timer = Timer::from_engine((*engine).clone());
    (engine, timer)
}

/// Each of two threads makes a handle of its own one, and drops both.
fn clones() {
    fn clone_and_drop(engine: &Subject, timer: Timer) {
        let more = timer.clone();
        drop(timer);
        assert!(!engine.context.is_stopped(), "a handle is left");
        drop(more);
    }
    let (engine, timer) = timer();
    let other = {
        let (engine, timer) = (engine.clone(), timer.clone());
        thread::spawn(move || clone_and_drop(&engine, timer))
    };
    clone_and_drop(&engine, timer);
    other.join().unwrap();
    assert!(engine.context.is_stopped(), "no handle is left");
}

#[test]
fn clones_on_two_threads() {
    check_at(3, clones);
}

#[test]
#[should_panic(expected = "handle is left")]
fn negative_one_more_by_load_and_store() {
    fails("timer/lifecycle.rs", "self.lifecycle.handles.fetch_add(1", How::Split, clones);
}

/// Each of two threads writes, and drops its handle; one that sees the timer's end sees what the
/// other has written.
#[allow(clippy::arc_with_non_send_sync, reason = "the checker looks after the cells")]
fn the_end_comes_last() {
    let (engine, timer) = timer();
    let cells = Arc::new([UnsafeCell::new(()), UnsafeCell::new(())]);
    let [mine, theirs] = [(0, timer.clone()), (1, timer)].map(|(at, timer)| {
        let (engine, cells) = (engine.clone(), cells.clone());
        move || {
            cells[at].with_mut(|_| ());
            drop(timer);
            if engine.context.is_stopped() {
                cells[1 - at].with(|_| ());
            }
        }
    });
    let other = thread::spawn(theirs);
    mine();
    other.join().unwrap();
}

#[test]
fn the_end_comes_after_all_that_was_done() {
    check_at(4, the_end_comes_last);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn negative_one_less_orders_nothing() {
    fails("timer/lifecycle.rs", "self.lifecycle.handles.fetch_sub(1", How::Relaxed, the_end_comes_last);
}

/// The flag is set before the timer is given to any thread; here it is given by the start of one.
fn the_global_timer() {
    let (engine, timer) = timer();
    engine.make_global();
    let other = thread::spawn(move || {
        let refused = timer.stop();
        std::mem::forget(timer);
        refused
    });
    assert_eq!(other.join().unwrap().err(), Some(StopError::Global));
    assert!(!engine.context.is_stopped());
}

#[test]
fn the_global_timer_is_not_stopped() {
    check(the_global_timer);
}

#[test]
#[should_panic]
fn negative_a_global_timer_that_does_not_say_so() {
    fails("timer/lifecycle.rs", "self.lifecycle.global.store(true", How::Skip, the_global_timer);
}
