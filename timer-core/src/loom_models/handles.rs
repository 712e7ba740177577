//! Models of the handles of one timer. The timer ends with its last handle, not before, and after
//! all work through the other handles. The timer of the process cannot be stopped.

use super::{Subject, check, check_at, engine_of, fails};
use crate::config::{Config, DrivenBy};
use crate::error::StopError;
use crate::handle::Timer;
use crate::sync::{Arc, AtomicBool, How, Ordering, UnsafeCell};
use loom::thread;

/// A timer whose worker is not started, and its first handle.
fn timer() -> (Subject, Timer) {
    let engine = engine_of(Config::default(), None, DrivenBy::Worker);
    let timer = Timer::from_engine((*engine).clone());
    (engine, timer)
}

/// Each of two threads clones its handle and drops both.
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
fn negative_a_handle_is_counted_in_two_steps() {
    fails("timer/lifecycle.rs", "self.lifecycle.handles.fetch_add(1", How::Split, clones);
}

/// Each of two threads writes and then drops its handle. A thread that sees the end of the timer
/// also sees the write of the other.
#[allow(clippy::arc_with_non_send_sync, reason = "the checker looks after the cells")]
fn the_end_comes_last() {
    let (engine, timer) = timer();
    let cells = Arc::new([UnsafeCell::new(()), UnsafeCell::new(())]);
    let [mine, theirs] = [(0, timer.clone()), (1, timer)].map(|(index, timer)| {
        let (engine, cells) = (engine.clone(), cells.clone());
        move || {
            cells[index].with_mut(|_| ());
            drop(timer);
            if engine.context.is_stopped() {
                cells[1 - index].with(|_| ());
            }
        }
    });
    let other = thread::spawn(theirs);
    mine();
    other.join().unwrap();
}

#[test]
fn the_end_comes_after_all_other_work() {
    check_at(4, the_end_comes_last);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn negative_a_dropped_handle_orders_nothing() {
    fails("timer/lifecycle.rs", "self.lifecycle.handles.fetch_sub(1", How::Relaxed, the_end_comes_last);
}

/// A thread that finds the timer published as that of the process cannot stop it. The flag stands
/// for the `OnceLock` of the process, which orders the same operations.
fn the_global_timer() {
    let (engine, timer) = timer();
    let is_published = Arc::new(AtomicBool::new(false));
    let other = {
        let is_published = is_published.clone();
        thread::spawn(move || {
            if is_published.load(Ordering::Acquire) {
                assert_eq!(timer.stop().err(), Some(StopError::Global), "the global timer was stopped");
            }
            std::mem::forget(timer);
        })
    };
    engine.make_global();
    is_published.store(true, Ordering::Release);
    other.join().unwrap();
    assert!(!engine.context.is_stopped());
}

#[test]
fn the_global_timer_is_not_stopped() {
    check(the_global_timer);
}

#[test]
#[should_panic(expected = "the global timer was stopped")]
fn negative_a_global_timer_is_not_marked() {
    fails("timer/lifecycle.rs", "self.lifecycle.global.store(true", How::Skip, the_global_timer);
}
