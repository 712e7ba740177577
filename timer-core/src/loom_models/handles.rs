//! Models of the handles of one timer. The timer ends with its last handle, not before, and after
//! all work through the other handles.

use super::{Subject, engine_of};
use crate::config::{Config, DrivenBy};
use crate::handle::Timer;
use crate::sync::{Arc, UnsafeCell};
use loom::thread;

/// A timer whose worker is not started, and its first handle.
fn timer() -> (Subject, Timer) {
    let engine = engine_of(Config::default(), None, DrivenBy::Worker);
    let timer = Timer { engine: (*engine).clone() };
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
        let engine = engine.clone();
        let timer = timer.clone();
        thread::spawn(move || clone_and_drop(&engine, timer))
    };
    clone_and_drop(&engine, timer);
    other.join().unwrap();
    assert!(engine.context.is_stopped(), "no handle is left");
}

model!(check_at 3, clones,
    a_handle_is_counted_in_two_steps ["handle is left"] Split "engine/lifecycle.rs" "self.handles.fetch_add(1",
);

/// Each of two threads writes and then drops its handle. A thread that sees the end of the timer
/// also sees the write of the other.
#[allow(clippy::arc_with_non_send_sync, reason = "the checker looks after the cells")]
fn the_end_comes_last() {
    let (engine, timer) = timer();
    let cells = Arc::new([UnsafeCell::new(()), UnsafeCell::new(())]);
    let [mine, theirs] = [(0, timer.clone()), (1, timer)].map(|(index, timer)| {
        let engine = engine.clone();
        let cells = cells.clone();
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

model!(check_at 4, the_end_comes_last,
    a_dropped_handle_orders_nothing ["Causality violation"] Relaxed "engine/lifecycle.rs" "self.handles.fetch_sub(1",
);
