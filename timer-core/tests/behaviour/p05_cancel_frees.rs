//! Promise 5. `cancel` frees the task and its captures on the caller's thread before it returns.
//! The memory that the wheel keeps for cancelled timeouts is bounded by the live ones, even if no
//! time passes.
//!
//! The binary `memory` measures that the heap follows the live timeouts.

use crate::support::ledger::Ledger;
use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::thread::current;
use std::time::Duration;
use timer_core::Timer;

// Guards against B100, in which captures were kept until the deadline, for the life of the timer,
// or from the first call by its worker.
#[test]
fn captures_are_gone_when_cancel_returns() {
    for wheel in WHEELS {
        let timer = Timer::builder().wheel(wheel).build().unwrap();
        let captured = Arc::new(());
        let (once, rate, delay) = (captured.clone(), captured.clone(), captured.clone());
        let timeouts = [
            accepted(timer.new_timeout(HOUR, move |_| drop(once))),
            accepted(timer.schedule_at_fixed_rate(HOUR, HOUR, move |_| drop(rate.clone()))),
            accepted(timer.schedule_with_fixed_delay(HOUR, HOUR, move |_| drop(delay.clone()))),
        ];
        let (ran, received) = channel();
        accepted(timer.new_timeout(Duration::ZERO, move |_| ran.send(()).unwrap()));
        next(&received);
        for (timeout, left) in timeouts.iter().zip([3, 2, 1]) {
            assert_eq!(Arc::strong_count(&captured), left + 1);
            assert!(timeout.cancel());
            assert_eq!(Arc::strong_count(&captured), left, "handles keep no captures");
        }
    }
}

#[test]
fn captures_are_dropped_on_the_cancellers_thread() {
    let timer = Timer::builder().tick_duration(MICRO).build().unwrap();
    let ledger = Ledger::new();
    let busy = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let stop = OnDrop(&busy);
        for _ in 0..2 {
            scope.spawn(|| {
                while busy.load(SeqCst) {
                    let timeout = accepted(timer.new_timeout(HOUR, |_| {}));
                    // The canceller may be on another thread's shard.
                    std::thread::scope(|inner| drop(inner.spawn(|| timeout.cancel())));
                }
            });
        }
        for _ in 0..500 {
            let (probe, end) = ledger.probe();
            let timeout = accepted(timer.new_timeout_task(HOUR, probe));
            let canceller = scope.spawn(move || {
                assert!(timeout.cancel());
                assert_eq!((end.counts(), end.dropped_on()), ((0, 1), Some(current().id())));
            });
            canceller.join().unwrap();
        }
        drop(stop);
    });
    ledger.wait();
}

/// Ends a loop, also if the test fails.
struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(false, SeqCst);
    }
}

#[test]
fn tasks_that_ran_or_were_handed_back_are_freed() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let captured = Arc::new(());
    let (ran, left) = (captured.clone(), captured.clone());
    let handles = [
        accepted(timer.new_timeout(SECOND, move |_| drop(ran))),
        accepted(timer.new_timeout(HOUR, move |_| drop(left))),
    ];
    driver.advance(SECOND);
    assert_eq!(Arc::strong_count(&captured), 2);
    let unprocessed = driver.stop();
    assert_eq!(Arc::strong_count(&captured), 2, "the task is handed back and not yet dropped");
    drop(unprocessed);
    assert_eq!(Arc::strong_count(&captured), 1);
    drop(handles);
}

// Guards against B52, in which a timeout that was cancelled before its placement was placed all the
// same, for up to two years.
#[test]
fn the_timer_does_not_wait_for_cancelled_timeouts() {
    for wheel in WHEELS {
        let (timer, driver) = manual(wheel);
        accepted(timer.new_timeout(2 * YEAR, |_| {})).cancel();
        assert_eq!(driver.next_expiry(), None, "{wheel:?}");
        let near = accepted(timer.new_timeout(SECOND, |_| {}));
        accepted(timer.new_timeout(2 * SECOND, |_| {}));
        assert!(near.cancel());
        assert_eq!(driver.next_expiry(), Some(2 * SECOND), "{wheel:?}");
    }
}
