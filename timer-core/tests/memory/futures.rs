//! The heap that a future takes: one entry while it waits, and nothing more per reset or tick.

use crate::heap::{Mark, alone};
use crate::support::wakers::poll;
use crate::support::*;
use std::task::{Context, Waker};
use std::time::Duration;
use timer_core::{ManualDriver, Timer};

/// A round number of ticks for the wheel, so that it soon knows all buckets that these tests use.
const DELAY: Duration = Duration::from_nanos(1 << 24);

/// The entry: its head of 32 bytes, and the waker.
const ENTRY: usize = 48;

/// Whether what `f` returns is so much on the heap, and the most that it had there is so much: in
/// one of three runs, since the test's own frame prints at times.
fn takes<R>(left: usize, most: usize, mut f: impl FnMut() -> R) -> bool {
    (0..3).any(|_| {
        let mark = Mark::set();
        let result = f();
        let seen = (mark.grown(), mark.peak());
        drop(result);
        seen == (left, most)
    })
}

#[test]
fn one_entry_in_its_life_and_nothing_per_reset() {
    let _alone = alone();
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
    assert!(takes(0, 0, never_waits), "one that never waits");
    let waiting = || {
        let mut sleep = timer.sleep(DELAY);
        assert!(poll(&mut sleep, Waker::noop()).is_pending());
        sleep
    };
    assert!(takes(ENTRY, ENTRY, waiting), "at the first poll that waits");
    assert!(takes(0, ENTRY, || drop(waiting())), "a drop gives it back");
    let mut sleep = waiting();
    let moved = || {
        for _ in 0..100 {
            sleep.reset(DELAY);
            assert!(poll(&mut sleep, Waker::noop()).is_pending());
        }
    };
    assert!(takes(0, 0, moved), "per reset while it waits");
    let used_again = || {
        for _ in 0..100 {
            driver.advance(DELAY);
            assert!(poll(&mut sleep, Waker::noop()).is_ready());
            sleep.reset(DELAY);
            assert!(poll(&mut sleep, Waker::noop()).is_pending());
        }
    };
    assert!(takes(0, 0, used_again), "per reset after completion");
}

fn ticks(timer: &Timer, driver: &mut ManualDriver) {
    let cx = &mut Context::from_waker(Waker::noop());
    let mut waiting = || {
        let mut ticks = timer.interval(DELAY);
        assert!(ticks.poll_tick(cx).is_ready() && ticks.poll_tick(cx).is_pending());
        ticks
    };
    assert!(takes(ENTRY, ENTRY, &mut waiting), "at the first poll that waits");
    assert!(takes(0, ENTRY, || drop(waiting())), "a drop gives it back");
    let mut ticks = waiting();
    let ticked = || {
        for _ in 0..100 {
            driver.advance(DELAY);
            assert!(ticks.poll_tick(cx).is_ready() && ticks.poll_tick(cx).is_pending());
        }
    };
    assert!(takes(0, 0, ticked), "per tick");
}
