//! 5. `cancel` frees the task and its captures before it returns, on the caller's thread, and what the wheel keeps for
//!    cancelled timeouts is bounded by the live ones, whether or not time passes.

use crate::support::ledger::Ledger;
use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::current;
use timer_core::Timer;

// B100: captures were kept until the deadline, or as long as the timer.
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
        for (timeout, left) in timeouts.iter().zip([3, 2, 1]) {
            assert_eq!(Arc::strong_count(&captured), left + 1);
            assert!(timeout.cancel());
            assert_eq!(Arc::strong_count(&captured), left, "handles and clones of them may live on");
        }
    }
}

#[test]
fn captures_are_dropped_on_the_thread_that_cancels_also_while_others_use_its_shard() {
    let timer = Timer::builder().tick_duration(MICRO).build().unwrap();
    let ledger = Ledger::new();
    let busy = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let stop = OnDrop(&busy);
        for _ in 0..2 {
            scope.spawn(|| {
                while busy.load(SeqCst) {
                    let timeout = accepted(timer.new_timeout(HOUR, |_| {}));
                    // Another thread's shard is as good as one's own.
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

/// Ends a loop also when the test fails.
struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(false, SeqCst);
    }
}

#[test]
fn a_task_that_ran_or_was_handed_back_is_freed_too() {
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
    assert_eq!(Arc::strong_count(&captured), 2, "handed back, not yet dropped");
    drop(unprocessed);
    assert_eq!(Arc::strong_count(&captured), 1);
    drop(handles);
}

/// Resident memory of this process, in bytes.
#[cfg(target_os = "linux")]
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Schedules and cancels timeouts of 2 KB each, two threads' worth of handles; kept until the deadline they were 200 MB.
#[cfg(target_os = "linux")]
fn churn(timer: &Timer, mut between: impl FnMut()) {
    let before = resident();
    for _ in 0..100 {
        for _ in 0..1_000 {
            let ballast = [1u8; 2048];
            let timeout = accepted(timer.new_timeout(30 * SECOND, move |_| assert_eq!(ballast[7], 1)));
            assert!(timeout.cancel());
        }
        between();
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 120 << 20, "{} MB more than before", grown >> 20);
    assert_eq!(timer.pending_timeouts(), 0);
}

// B52: cancelled ones were kept up to two years.
#[cfg(target_os = "linux")]
#[test]
fn a_churn_of_cancelled_timeouts_grows_no_memory_though_time_stands_still() {
    for wheel in [WHEELS[0], WHEELS[2]] {
        let (timer, driver) = manual(wheel);
        churn(&timer, || {});
        assert_eq!(driver.next_expiry(), None);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_churn_of_cancelled_timeouts_grows_no_memory_while_time_passes() {
    let (timer, mut driver) = manual(WHEELS[0]);
    churn(&timer, || assert_eq!(driver.advance(MILLI), 0));
    churn(&Timer::new(), || {});
}
