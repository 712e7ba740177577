//! Timers that a program drives itself, and resets within a tick that does not end.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::sync::{Arc, AtomicUsize, Ordering};
use crate::{Driver, Timeout, Timer};
use std::time::{Duration, Instant};

const HOUR: Duration = Duration::from_secs(3600);

/// Returns a timer whose timeouts wait for the end of an hour.
fn coarse() -> (Timer, Driver) {
    Timer::builder().tick_duration(HOUR).build_driven().unwrap()
}

#[test]
fn a_reset_to_the_past_is_due_now() {
    let (timer, mut driver) = coarse();
    // Due at once, and linked under a tick that ends much later.
    let timeout = timer.new_timeout(Duration::from_nanos(1), |_| {}).unwrap();
    let deadline = Instant::now();
    assert!(timeout.deadline() < deadline);
    assert!(timeout.reset_at(deadline));
    assert_eq!(driver.turn().expired, 1);
}

#[test]
fn a_reset_without_delay_is_due_now() {
    let (timer, mut driver) = coarse();
    let timeout = timer.new_timeout(Duration::from_nanos(1), |_| {}).unwrap();
    assert!(timeout.reset(Duration::ZERO));
    assert_eq!(driver.turn().expired, 1);
}

#[test]
fn a_task_does_not_wake_the_loop_that_runs_it() {
    let (timer, mut driver) = Timer::builder().build_driven().unwrap();
    let wakes = Arc::new(AtomicUsize::new(0));
    let counted = wakes.clone();
    driver.on_wake(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let again = |me: &Timeout| drop(me.timer().unwrap().new_timeout(Duration::ZERO, |_| {}).unwrap());
    // The loop sleeps until the deadline, and nothing wakes it earlier. A busy machine may call the
    // turn after the deadline.
    let next = (0..100).find_map(|_| {
        timer.new_timeout(Duration::from_millis(200), again).unwrap();
        driver.turn().next_deadline.filter(|next| *next > Instant::now())
    });
    let next = next.unwrap();
    while Instant::now() < next {
        std::thread::yield_now();
    }
    let before = wakes.load(Ordering::Relaxed);
    assert_eq!(driver.turn().expired, 1);
    assert_eq!(wakes.load(Ordering::Relaxed), before, "the loop is awake");
    assert_eq!(driver.turn().expired, 1);
}
