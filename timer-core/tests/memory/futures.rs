//! The heap of a future, one entry while it waits and nothing more per reset or tick.

use crate::heap::{KEPT, Mark, exclusive};
use crate::support::wakers::poll;
use crate::support::*;
use std::task::{Context, Waker};
use std::time::Duration;
use timer_core::{ManualDriver, Timer};

/// A round number of ticks, so that the wheel soon has all buckets that these tests use.
const DELAY: Duration = Duration::from_nanos(1 << 24);

/// Bytes of the entry, a header of 32 bytes and the waker.
const ENTRY: usize = 48;

/// Returns `true` if the result of `f` takes `left` bytes of heap, and `f` takes `most` at its
/// peak, in one of ten runs. The test harness allocates at times.
fn takes<R>(left: usize, most: usize, mut f: impl FnMut() -> R) -> bool {
    (0..10).any(|_| {
        let mark = Mark::set();
        let result = f();
        let seen = (mark.grown(), mark.peak());
        drop(result);
        seen == (left, most) || {
            watch_for(MILLI);
            false
        }
    })
}

#[test]
fn a_future_takes_one_entry_in_its_life() {
    let _alone = exclusive();
    for wheel in [WHEELS[0], WHEELS[2]] {
        let (timer, mut driver) = manual(wheel);
        // The wheel's own tables grow once.
        for _ in 0..5_000 {
            let mut warm = timer.sleep(DELAY);
            assert!(poll(&mut warm, Waker::noop()).is_pending());
            driver.advance(DELAY);
        }
        sleeps(&timer, &mut driver);
        ticks(&timer, &mut driver);
    }
}

fn sleeps(timer: &Timer, driver: &mut ManualDriver) {
    let never_waits = || {
        for _ in 0..100 {
            drop(timer.sleep(DELAY));
            assert!(poll(&mut timer.sleep(Duration::ZERO), Waker::noop()).is_ready());
            assert!(poll(&mut timer.timeout(DELAY, std::future::ready(())), Waker::noop()).is_ready());
        }
    };
    assert!(takes(0, 0, never_waits), "a future that never waits takes nothing");
    let waiting = || {
        let mut sleep = timer.sleep(DELAY);
        assert!(poll(&mut sleep, Waker::noop()).is_pending());
        sleep
    };
    let mut held = Vec::with_capacity(2 * KEPT);
    held.extend((0..KEPT).map(|_| waiting()));
    assert!(takes(ENTRY, ENTRY, || held.push(waiting())), "the first poll that waits takes an entry");
    held.pop();
    assert!(takes(0, 0, || drop(waiting())), "an entry takes the memory of one that was dropped");
    let mut sleep = waiting();
    let moved = || {
        for _ in 0..100 {
            sleep.reset_after(DELAY);
            assert!(poll(&mut sleep, Waker::noop()).is_pending());
        }
    };
    assert!(takes(0, 0, moved), "a reset while it waits takes nothing");
    let used_again = || {
        for _ in 0..100 {
            driver.advance(DELAY);
            assert!(poll(&mut sleep, Waker::noop()).is_ready());
            sleep.reset_after(DELAY);
            assert!(poll(&mut sleep, Waker::noop()).is_pending());
        }
    };
    assert!(takes(0, 0, used_again), "a reset after completion takes nothing");
}

fn ticks(timer: &Timer, driver: &mut ManualDriver) {
    let cx = &mut Context::from_waker(Waker::noop());
    let mut waiting = || {
        let mut ticks = timer.interval(DELAY);
        assert!(ticks.poll_tick(cx).is_ready() && ticks.poll_tick(cx).is_pending());
        ticks
    };
    let mut held = Vec::with_capacity(2 * KEPT);
    held.extend((0..KEPT).map(|_| waiting()));
    assert!(takes(ENTRY, ENTRY, || held.push(waiting())), "the first poll that waits takes an entry");
    let mut ticks = waiting();
    let ticked = || {
        for _ in 0..100 {
            driver.advance(DELAY);
            assert!(ticks.poll_tick(cx).is_ready() && ticks.poll_tick(cx).is_pending());
        }
    };
    assert!(takes(0, 0, ticked), "a tick takes nothing");
}
