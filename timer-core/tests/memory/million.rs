//! A million timeouts that all go: by `cancel`, in any order, or because they are due.

use crate::heap::*;
use crate::support::executors::good;
use crate::support::*;
use std::time::{Duration, Instant};
use timer_core::{Timer, WheelKind};

/// What a pool may keep for later, in bytes: the queues of its threads, which are not the timer's.
const POOLS: usize = 1 << 20;

/// So many slots that most of them hold one timeout or none: 43 MB, were all tables kept.
const WIDE: WheelKind = WheelKind::Hashed { ticks_per_wheel: 1 << 20 };

#[test]
fn cancelled_in_random_order_nothing_is_left_at_once() {
    let _alone = alone();
    for wheel in [BOTH[0], BOTH[1], WIDE] {
        let (timer, _driver) = manual(wheel);
        cancelled_in_random_order(wheel, &timer);
        cancelled_in_random_order(wheel, &Timer::builder().wheel(wheel).build().unwrap());
    }
}

fn cancelled_in_random_order(wheel: WheelKind, timer: &Timer) {
    timer.start().unwrap();
    let mark = Mark::set();
    let mut timeouts = many(timer, MILLION, 30 * SECOND, HOUR);
    let full = mark.grown();
    Rng::with_seed(7).shuffle(&mut timeouts);
    // No turn is taken and nothing is waited for: the last `cancel` has given back the last of it.
    let handles = timeouts.capacity() * size_of_val(&timeouts[0]);
    while let Some(timeout) = timeouts.pop() {
        assert!(timeout.cancel());
    }
    assert_eq!(timer.pending_timeouts(), 0);
    println!("{MILLION} pending: {} bytes each, {wheel:?}", (full - handles) / MILLION);
    at_most("  cancelled, left", mark.grown().saturating_sub(handles), TABLES + NOISE);
}

#[test]
fn cancelled_handles_keep_no_captures() {
    let _alone = alone();
    for wheel in BOTH {
        let (timer, _driver) = manual(wheel);
        let mark = Mark::set();
        let timeouts = many(&timer, MILLION, 30 * SECOND, HOUR);
        assert!(timeouts.iter().all(|timeout| timeout.cancel()));
        // The handle itself, and the entry it shows, emptied.
        at_most(&format!("a cancelled handle, {wheel:?}"), mark.grown() / MILLION, 128);
    }
}

/// Everything is due within `spread`, and nothing is left of it: neither in the wheel nor where it
/// was handed on.
fn expires(what: &str, wheel: WheelKind, timer: &Timer, spread: Duration, wait: impl FnOnce(Duration)) {
    let mark = Mark::set();
    let timeouts = many(timer, MILLION, MILLI, spread);
    drop(timeouts);
    let full = mark.grown();
    wait(spread + MILLI);
    let left = mark.falls_to(TABLES + NOISE);
    assert_eq!(timer.stats().expired, MILLION as u64);
    println!("{what}, {wheel:?}: {MILLION} due within {spread:?}, {full} bytes, peak {}, left {left}", mark.peak());
}

#[test]
fn expired_it_leaves_nothing() {
    let _alone = alone();
    for wheel in BOTH {
        // All at once, so that the turn's own lists are as long as they get; and a bit at a time.
        for spread in [NANO, 20 * SECOND] {
            let (timer, mut driver) = manual(wheel);
            expires("virtual time", wheel, &timer, spread, |end| assert_eq!(driver.advance(end), MILLION));
        }
    }
}

#[test]
fn expired_on_any_executor_it_leaves_nothing() {
    let _alone = alone();
    for wheel in BOTH {
        for (name, executor) in good() {
            let timer = Timer::builder().wheel(wheel).executor(executor).build().unwrap();
            // The pool's threads and the worker are not what is counted.
            let (ran, warm) = std::sync::mpsc::channel::<()>();
            for _ in 0..100 {
                let ran = ran.clone();
                accepted(timer.new_timeout(NANO, move |_| drop(ran)));
            }
            drop(ran);
            all_gone(&warm);
            expired_by_the_worker(name, wheel, &timer);
        }
    }
}

fn expired_by_the_worker(name: &str, wheel: WheelKind, timer: &Timer) {
    let before = timer.stats().expired;
    let mark = Mark::set();
    // Three in four come in a burst of one tick, if they are scheduled before.
    let spread = if cfg!(debug_assertions) { 200 * MILLI } else { SECOND };
    let timeouts = many(timer, MILLION / 4, MILLI, spread);
    let burst = many(timer, MILLION - MILLION / 4, spread, MICRO);
    drop((timeouts, burst));
    let begun = Instant::now();
    while timer.stats().expired < before + MILLION as u64 {
        assert!(begun.elapsed() < LONG, "not all have run");
        watch_for(MILLI);
    }
    let left = mark.falls_to(TABLES + POOLS + NOISE);
    println!("{name}, {wheel:?}: {MILLION} have run, peak {}, left {left}", mark.peak());
}
