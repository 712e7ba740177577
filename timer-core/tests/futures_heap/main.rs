//! What a future takes from the heap: one entry in its life, and nothing per reset or tick. One test, so that no other is counted.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use peak_alloc::PeakAlloc;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;
use timer_core::{Timer, WheelKind};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// A round number of ticks for the wheel, so that it soon knows all buckets that these tests use.
const DELAY: Duration = Duration::from_nanos(1 << 24);

/// The entry: its head of 32 bytes, and the waker.
const ENTRY: usize = 48;

/// Whether `f` takes nothing from the heap: in one of three runs, since the test's own frame prints at times.
fn takes_nothing(mut f: impl FnMut()) -> bool {
    (0..3).any(|_| {
        let ((), left, most) = heap(&mut f);
        (left, most) == (0, 0)
    })
}

/// What `f` leaves on the heap, and the most that it had there meanwhile.
fn heap<R>(f: impl FnOnce() -> R) -> (R, usize, usize) {
    HEAP.reset_peak_usage();
    let before = HEAP.current_usage();
    let result = f();
    (result, HEAP.current_usage().saturating_sub(before), HEAP.peak_usage().saturating_sub(before))
}

#[test]
fn one_entry_in_its_life_and_nothing_per_reset() {
    let mut cx = Context::from_waker(Waker::noop());
    for wheel in [WheelKind::Hierarchical, WheelKind::Hashed { ticks_per_wheel: 8 }] {
        let (timer, mut driver) = Timer::builder().wheel(wheel).build_manual().unwrap();
        // The wheel's own tables grow once.
        for _ in 0..5_000 {
            let mut warm = timer.sleep(DELAY);
            assert!(pin!(&mut warm).poll(&mut cx).is_pending());
            driver.advance(DELAY);
        }
        assert!(
            takes_nothing(|| {
                for _ in 0..100 {
                    drop(timer.sleep(DELAY));
                    let mut zero = timer.sleep(Duration::ZERO);
                    assert!(pin!(&mut zero).poll(&mut cx).is_ready());
                    assert!(pin!(timer.timeout(DELAY, async {})).poll(&mut cx).is_ready());
                }
            }),
            "one that never waits"
        );

        let mut sleep = timer.sleep(DELAY);
        let (_, left, most) = heap(|| assert!(pin!(&mut sleep).poll(&mut cx).is_pending()));
        assert_eq!((left, most), (ENTRY, ENTRY), "at the first poll that waits");
        assert!(
            takes_nothing(|| {
                for _ in 0..100 {
                    sleep.reset(DELAY);
                    assert!(pin!(&mut sleep).poll(&mut cx).is_pending());
                }
            }),
            "per reset while it waits"
        );
        assert!(
            takes_nothing(|| {
                for _ in 0..100 {
                    driver.advance(DELAY);
                    assert!(pin!(&mut sleep).poll(&mut cx).is_ready());
                    sleep.reset(DELAY);
                    assert!(pin!(&mut sleep).poll(&mut cx).is_pending());
                }
            }),
            "per reset after completion"
        );

        let mut ticks = timer.interval(DELAY);
        assert!(ticks.poll_tick(&mut cx).is_ready() && ticks.poll_tick(&mut cx).is_pending());
        assert!(
            takes_nothing(|| {
                for _ in 0..100 {
                    driver.advance(DELAY);
                    assert!(ticks.poll_tick(&mut cx).is_ready());
                    assert!(ticks.poll_tick(&mut cx).is_pending());
                }
            }),
            "per tick"
        );
        let before = HEAP.current_usage();
        drop((sleep, ticks));
        assert_eq!(before - HEAP.current_usage(), 2 * ENTRY, "a drop gives it back");
    }
}
