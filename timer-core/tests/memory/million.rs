//! A million timeouts that all end, because they are cancelled in any order or because they are
//! due.

use crate::heap::*;
use crate::support::*;
use std::time::Duration;
use timer_core::{Timer, WheelKind};

/// A hashed wheel with as many lists as one can have.
const WIDE: WheelKind = WheelKind::Hashed { ticks_per_wheel: 1 << 20 };

/// The room for four timeouts that each list of [`WIDE`] may keep, in the shards of two CPUs.
const WIDE_ROOM: usize = 2 * (1 << 14) * 64;

#[test]
fn cancels_in_random_order_free_everything_at_once() {
    let _alone = exclusive();
    for wheel in [DEFAULT_WHEELS[0], DEFAULT_WHEELS[1], WIDE] {
        let (timer, _driver) = manual(wheel);
        cancelled_in_random_order(wheel, &timer);
        cancelled_in_random_order(wheel, &Timer::builder().wheel(wheel).build().unwrap());
    }
}

fn cancelled_in_random_order(wheel: WheelKind, timer: &Timer) {
    timer.start().unwrap();
    let mark = Mark::set();
    let mut timeouts = schedule_many(timer, MILLION, 30 * SECOND, HOUR);
    let full = mark.grown();
    Rng::with_seed(7).shuffle(&mut timeouts);
    // No turn runs and nothing waits. The last `cancel` must have freed the last of the memory.
    let handles = timeouts.capacity() * size_of_val(&timeouts[0]);
    while let Some(timeout) = timeouts.pop() {
        assert!(timeout.cancel());
    }
    assert_eq!(timer.pending_timeouts(), 0);
    println!("{MILLION} pending: {} bytes each, {wheel:?}", (full - handles) / MILLION);
    let room = if wheel == WIDE { WIDE_ROOM } else { 0 };
    assert_at_most("  cancelled, left", mark.grown().saturating_sub(handles), TABLES + NOISE + room);
}

#[test]
fn timeouts_that_are_cancelled_after_a_cascade_leave_little() {
    let _alone = exclusive();
    // The timeouts are on finer levels each time.
    for elapsed in [30 * SECOND, 31 * SECOND, 60 * SECOND] {
        let (timer, mut driver) = manual(WheelKind::Hierarchical);
        let mark = Mark::set();
        let mut timeouts = schedule_many(&timer, MILLION, 30 * SECOND, 40 * SECOND);
        driver.advance(elapsed);
        timeouts.retain(|timeout| !timeout.is_expired());
        Rng::with_seed(8).shuffle(&mut timeouts);
        // No turn runs. The cancels themselves must free the memory.
        for timeout in timeouts.drain(10..) {
            assert!(timeout.cancel());
        }
        drop(timeouts);
        assert_eq!(timer.pending_timeouts(), 10);
        assert_at_most(&format!("10 timeouts after a cascade at {elapsed:?}"), mark.grown(), 1 << 20);
    }
}

/// Checks that timeouts which are due within `spread` leave nothing in the wheel or an executor.
fn expires(label: &str, wheel: WheelKind, timer: &Timer, spread: Duration, wait: impl FnOnce(Duration)) {
    let mark = Mark::set();
    let timeouts = schedule_many(timer, MILLION, MILLI, spread);
    drop(timeouts);
    let full = mark.grown();
    wait(spread + MILLI);
    let left = mark.falls_to(TABLES + NOISE);
    assert_eq!(timer.stats().expired, MILLION as u64);
    println!("{label}, {wheel:?}: {MILLION} due within {spread:?}, {full} bytes, peak {}, left {left}", mark.peak());
}

#[test]
fn a_million_expired_timeouts_leave_nothing() {
    let _alone = exclusive();
    for wheel in DEFAULT_WHEELS {
        // If all are due at once, the turn's own lists are as long as possible.
        for spread in [NANO, 20 * SECOND] {
            let (timer, mut driver) = manual(wheel);
            expires("virtual time", wheel, &timer, spread, |end| assert_eq!(driver.advance(end), MILLION));
        }
    }
}
