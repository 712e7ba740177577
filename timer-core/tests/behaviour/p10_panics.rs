//! Promise 10. A panic of a task is caught, counted and traced. The worker, the pool and the other
//! tasks of the tick go on. A periodic task that panics does not run again.

use crate::support::panics::{BadHook, Bomb, panic_on_purpose};
use crate::support::*;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;
use timer_core::{Timeout, Timer};
use tracing::Level;

#[test]
fn a_panic_is_traced_with_the_timers_name() {
    let complaints = log::complaints("panics-traced");
    let timer = named("panics-traced");
    let timeout = accepted(timer.new_timeout(Duration::ZERO, |_| panic_on_purpose()));
    let event = next(&complaints);
    assert_eq!((event.level, event.timer.as_str()), (Level::ERROR, "panics-traced"));
    assert!(event.fields.contains("on purpose"), "{event:?}");
    assert!(timeout.is_expired() && !timeout.cancel());
}

#[test]
fn captures_that_panic_with_their_task_do_no_harm() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let captured = Arc::new(());
    let first = captured.clone();
    let runs = Runs::default();
    let panics = move |_: &Timeout| {
        let _first = &first;
        panic_on_purpose()
    };
    accepted(timer.new_timeout(SECOND, panics));
    accepted(timer.new_timeout(SECOND, |_| drop(Bomb)));
    let bomb = Bomb;
    accepted(timer.new_timeout(SECOND, move |_| drop(bomb)));
    accepted(timer.new_timeout(SECOND, |_| std::panic::panic_any(Payload)));
    record(&timer, SECOND, &runs, 1);
    assert_eq!(driver.advance(SECOND), 5);
    assert_eq!((take_runs(&runs), Arc::strong_count(&captured), timer.stats().task_panics), (vec![1], 1, 4));
}

/// A payload that panics when it is dropped.
struct Payload;

impl Drop for Payload {
    fn drop(&mut self) {
        panic_on_purpose();
    }
}

#[test]
fn a_panic_in_a_hook_goes_to_the_canceller() {
    let (timer, driver) = manual(WHEELS[0]);
    let timeout = accepted(timer.new_timeout_task(SECOND, BadHook));
    let cancelled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| timeout.cancel()));
    assert!(cancelled.is_err() && timeout.is_cancelled() && !timeout.cancel());
    assert_eq!((timer.pending_timeouts(), timer.stats().task_panics), (0, 0));
    accepted(timer.new_timeout_task(SECOND, BadHook));
    let bomb = Bomb;
    accepted(timer.new_timeout(SECOND, move |_| drop(bomb)));
    drop(driver.stop());
    assert_eq!((timer.pending_timeouts(), timer.stats().task_panics), (0, 2));
}

// Guards against a fault in which an unforeseen panic ended the worker, and the timer still
// accepted timeouts.
#[test]
fn a_panicking_subscriber_does_not_end_the_worker() {
    log::listen("panics-in-log", |_| panic_on_purpose());
    let timer = Timer::builder().name("panics-in-log").shards(1).build().unwrap();
    let (ran, received) = channel();
    for _ in 0..3 {
        let ran = ran.clone();
        accepted(timer.new_timeout(Duration::ZERO, |_| panic_on_purpose()));
        accepted(timer.new_timeout(Duration::ZERO, move |_| ran.send(()).unwrap()));
        next(&received);
    }
    assert_eq!(timer.stop().unwrap().len(), 0);
    assert_eq!(timer.stats().task_panics, 3);
    log::forget("panics-in-log");
}
