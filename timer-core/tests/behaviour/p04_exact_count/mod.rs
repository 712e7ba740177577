//! Promise 4. `pending_timeouts` is exact when no call is in progress. It falls once, when the task
//! starts, is cancelled or is handed back. A rejected call changes nothing.

mod bound;

use crate::support::executors::KeepingExecutor;
use crate::support::panics::panic_on_purpose;
use crate::support::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use timer_core::{RejectReason, Timeout, Timer, TimerStats};

/// Returns every count that a call can change.
fn counts(stats: &TimerStats) -> [u64; 6] {
    [stats.pending, stats.scheduled, stats.expired, stats.cancelled, stats.runs, stats.task_panics]
}

/// Returns timers with both ways of counting, without a bound and with one.
fn unbounded_and_bounded() -> [(Timer, timer_core::ManualDriver); 2] {
    [Timer::builder().build_manual().unwrap(), Timer::builder().max_pending_timeouts(100).build_manual().unwrap()]
}

#[test]
fn each_end_counts_once() {
    for (timer, mut driver) in unbounded_and_bounded() {
        let cancelled = accepted(timer.new_timeout(SECOND, |_| {}));
        let expired = accepted(timer.new_timeout(SECOND, |_| {}));
        let panicked = accepted(timer.new_timeout(SECOND, |_| panic_on_purpose()));
        let left = accepted(timer.new_timeout(HOUR, |_| {}));
        assert_eq!(timer.pending_timeouts(), 4);
        assert!(cancelled.cancel());
        assert_eq!(timer.pending_timeouts(), 3);
        assert!(!cancelled.cancel() && !cancelled.reset(SECOND));
        assert_eq!(timer.pending_timeouts(), 3);
        assert_eq!(driver.advance(SECOND), 2);
        assert_eq!(timer.pending_timeouts(), 1);
        for ended in [&cancelled, &expired, &panicked] {
            assert!(!ended.cancel() && !ended.reset(SECOND));
        }
        assert_eq!(timer.pending_timeouts(), 1);
        let unprocessed = driver.stop();
        assert_eq!((unprocessed.len(), timer.pending_timeouts()), (1, 0));
        drop(unprocessed);
        assert!(!left.cancel() && left.is_cancelled());
        assert_eq!(counts(&timer.stats()), [0, 4, 2, 2, 2, 1]);
    }
}

#[test]
fn a_periodic_task_is_one_timeout_until_it_ends() {
    for (timer, mut driver) in unbounded_and_bounded() {
        let rate = accepted(timer.schedule_at_fixed_rate(SECOND, SECOND, |_| {}));
        let mut runs = 0;
        let last = accepted(timer.schedule_with_fixed_delay(SECOND, SECOND, move |_| {
            runs += 1;
            if runs == 3 {
                panic_on_purpose();
            }
        }));
        assert_eq!(driver.advance(2 * SECOND), 4);
        assert_eq!(timer.pending_timeouts(), 2);
        assert_eq!(driver.advance(10 * SECOND), 11);
        assert_eq!(timer.pending_timeouts(), 1, "a panic ends a periodic task");
        assert!(last.is_expired() && !last.cancel());
        assert!(rate.cancel() && !rate.cancel());
        assert_eq!(counts(&timer.stats()), [0, 2, 1, 1, 15, 1]);
    }
}

#[test]
fn the_count_falls_when_the_task_starts() {
    for bound in [None, Some(2)] {
        let pool = KeepingExecutor::default();
        let builder = Timer::builder().executor(pool.clone());
        let builder = bound.map_or(Timer::builder().executor(pool.clone()), |max| builder.max_pending_timeouts(max));
        let (timer, mut driver) = builder.build_manual().unwrap();
        let (inner, seen) = (timer.clone(), Arc::new(AtomicUsize::new(usize::MAX)));
        let inside = seen.clone();
        let once = accepted(timer.new_timeout(SECOND, move |_| inside.store(inner.pending_timeouts(), SeqCst)));
        let rate = accepted(timer.schedule_at_fixed_rate(SECOND, SECOND, |_| {}));
        assert_eq!(driver.advance(SECOND), 2, "both tasks are handed over");
        let stats = timer.stats();
        assert_eq!((stats.pending, stats.expired, stats.runs, stats.queued), (2, 0, 2, 2));
        assert!(!once.is_expired() && !rate.is_expired());
        let full = timer.new_timeout(HOUR, |_| {}).map(|timeout| timeout.cancel());
        assert_eq!(full.is_err(), bound.is_some(), "a task in a pool's queue keeps its permit");
        assert_eq!(pool.run(), 2);
        let stats = timer.stats();
        assert_eq!((seen.load(SeqCst), stats.pending, stats.expired, stats.queued), (1, 1, 1, 0));
        assert!(once.is_expired() && rate.cancel());
        assert_eq!(timer.pending_timeouts(), 0);
    }
}

#[test]
fn rejected_calls_change_no_counter_but_their_own() {
    let (timer, driver) = Timer::builder().max_pending_timeouts(2).build_manual().unwrap();
    let held = [(); 2].map(|()| accepted(timer.new_timeout(HOUR, |_| {})));
    let before = timer.stats();
    let full = RejectReason::TooManyPending { max: 2 };
    for _ in 0..100 {
        assert_eq!(timer.new_timeout(Duration::ZERO, |_| {}).unwrap_err().reason, full);
        assert_eq!(timer.schedule_at_fixed_rate(SECOND, SECOND, |_| {}).unwrap_err().reason, full);
    }
    assert!(held[0].cancel());
    assert_eq!(
        timer.schedule_at_fixed_rate(SECOND, Duration::ZERO, |_| {}).unwrap_err().reason,
        RejectReason::ZeroPeriod
    );
    assert_eq!(
        timer.schedule_with_fixed_delay(SECOND, Duration::ZERO, |_| {}).unwrap_err().reason,
        RejectReason::ZeroPeriod
    );
    drop(accepted(timer.new_timeout(HOUR, |_| {})));
    let mut after = timer.stats();
    assert_eq!(after.rejected, 202);
    (after.scheduled, after.cancelled) = (after.scheduled - 1, after.cancelled - 1);
    assert_eq!(counts(&before), counts(&after));
    drop(driver.stop());
    let before = timer.stats();
    // Guards against B02, in which scheduling on a stopped timer raised the count for good.
    for _ in 0..100 {
        assert_eq!(timer.new_timeout(SECOND, |_| {}).unwrap_err().reason, RejectReason::Stopped);
        assert_eq!(timer.new_timeout_at(std::time::Instant::now(), |_| {}).unwrap_err().reason, RejectReason::Stopped);
    }
    assert_eq!(counts(&before), counts(&timer.stats()));
    assert_eq!(timer.stats().rejected, 402);
}

#[test]
fn a_rejected_task_comes_back_unharmed() {
    let (timer, driver) = Timer::builder().build_manual().unwrap();
    drop(driver);
    let (ran, received) = channel();
    let rejected = timer.new_timeout(SECOND, move |_: &Timeout| ran.send(()).unwrap()).unwrap_err();
    let (other, mut driver) = manual(WHEELS[0]);
    accepted(other.new_timeout(Duration::ZERO, rejected.into_task()));
    driver.advance(Duration::ZERO);
    next(&received);
}

// The counters of starts must be read after the counters of ends, because a timeout that ends
// between the two readings would be subtracted without having been added.
#[test]
fn the_count_never_misses_pending_timeouts() {
    let timer = Timer::new();
    let held = [(); 3].map(|()| accepted(timer.new_timeout(HOUR, |_| {})));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(SeqCst) {
                    assert!(accepted(timer.new_timeout(HOUR, |_| {})).cancel());
                }
            });
        }
        let (mut fewest, begun) = (u64::MAX, Instant::now());
        while timer.stats().scheduled < 300_000 && begun.elapsed() < MAX_WAIT {
            fewest = fewest.min(timer.stats().pending);
            (0..500).for_each(|_| fewest = fewest.min(timer.pending_timeouts() as u64));
        }
        over.store(true, SeqCst);
        assert!(fewest >= 3, "only {fewest:?} of 3 pending timeouts were counted");
    });
    assert_eq!(timer.pending_timeouts(), held.len());
}

// Guards against B01, in which a cancel between placement and expiry in the same tick was
// subtracted twice, so the bound could be exceeded.
#[test]
fn siblings_that_a_task_cancels_count_once() {
    for bound in [None, Some(11)] {
        for wheel in WHEELS {
            let builder = Timer::builder().wheel(wheel);
            let builder = match bound {
                Some(max) => builder.max_pending_timeouts(max),
                None => builder,
            };
            let (timer, mut driver) = builder.build_manual().unwrap();
            let siblings: Arc<Mutex<Vec<timer_core::Timeout>>> = Arc::default();
            let (inner, cancelled) = (timer.clone(), siblings.clone());
            accepted(timer.new_timeout(SECOND, move |_| {
                for (left, sibling) in cancelled.lock().unwrap().iter().enumerate().rev() {
                    assert!(sibling.cancel());
                    assert_eq!(inner.pending_timeouts(), left);
                }
            }));
            let ten = (0..10).map(|_| accepted(timer.new_timeout(SECOND, |_| panic!("cancelled"))));
            siblings.lock().unwrap().extend(ten);
            assert_eq!(driver.advance(SECOND), 1);
            let stats = timer.stats();
            assert_eq!((stats.pending, stats.cancelled, stats.expired, stats.task_panics), (0, 10, 1, 0), "{wheel:?}");
            let taken = std::iter::from_fn(|| timer.new_timeout(HOUR, |_| {}).ok()).take(20).count();
            assert_eq!(taken, bound.unwrap_or(20), "the number of free permits");
        }
    }
}

// Guards against B05, in which cancelling all timeouts left a count, and the destructor complained.
#[test]
fn cancelling_all_timeouts_leaves_no_count() {
    for _ in 0..2 {
        let (timer, driver) = manual(WHEELS[0]);
        let timeouts: Vec<_> = (0..1_000).map(|id| accepted(timer.new_timeout(id * MILLI, |_| {}))).collect();
        assert!(timeouts.iter().all(|timeout| timeout.cancel()));
        assert!(timeouts.iter().all(|timeout| !timeout.cancel()));
        assert_eq!((timer.pending_timeouts(), driver.next_expiry()), (0, None));
        assert_eq!(driver.stop().len(), 0);
    }
}

// Guards against B08, in which the replaced handle of a periodic job was never cancelled, and 45
// million piled up.
#[test]
fn a_rate_replaced_a_thousand_times_counts_once() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let mut current = accepted(timer.schedule_at_fixed_rate(SECOND, SECOND, |_| {}));
    for _ in 0..1_000 {
        driver.advance(SECOND / 3);
        assert!(current.cancel());
        current = accepted(timer.schedule_at_fixed_rate(SECOND, SECOND, |_| {}));
        assert_eq!(timer.pending_timeouts(), 1);
    }
    assert_eq!((driver.advance(10 * SECOND), driver.next_expiry()), (10, Some(SECOND)));
}

// An idle timeout is moved with every packet and must remain one timeout.
#[test]
fn a_timeout_moved_a_thousand_times_counts_once() {
    for wheel in WHEELS {
        let (timer, mut driver) = manual(wheel);
        let idle = accepted(timer.new_timeout(SECOND, |_| {}));
        for _ in 0..1_000 {
            assert_eq!(driver.advance(SECOND / 2), 0);
            assert!(idle.reset(SECOND));
            assert_eq!(timer.pending_timeouts(), 1);
        }
        assert_eq!(driver.advance(SECOND - NANO), 0);
        assert_eq!(driver.advance(NANO), 1);
        let stats = timer.stats();
        assert_eq!((stats.scheduled, stats.expired, stats.pending), (1, 1, 0));
        assert_eq!(driver.advance(Duration::MAX), 0, "{wheel:?}");
    }
}

// The rank of a quantile must not be rounded down, because the median of three would then be the
// first.
#[test]
fn the_median_of_three_lags_is_the_second() {
    let (timer, mut driver) = manual(WHEELS[0]);
    for late in [1, 2, 4] {
        accepted(timer.new_timeout_at(driver.now() - late * MILLI, |_| {}));
    }
    assert_eq!(driver.advance(Duration::ZERO), 3);
    let lag = timer.stats().timeout_lag;
    assert_eq!((lag.count(), lag.sum(), lag.max()), (3, 7 * MILLI, 4 * MILLI));
    let quantile = |q| lag.quantile(q);
    let about = |lag: Duration, millis: u32| lag >= millis * MILLI && lag <= millis * MILLI + 20 * MICRO * millis;
    assert!(about(quantile(0.5), 2) && about(quantile(0.33), 1) && about(quantile(0.34), 2), "{lag:?}");
    assert!(about(quantile(0.67), 4) && about(quantile(1.0), 4) && about(quantile(0.0), 1), "{lag:?}");
}

// Guards against B49, in which timeouts came late and no figure showed it.
#[test]
fn lateness_shows_in_the_lags() {
    let (timer, mut driver) = Timer::builder().tick_duration(100 * MICRO).build_driven().unwrap();
    accepted(timer.new_timeout(MILLI, |_| {}));
    accepted(timer.new_timeout(MILLI, |_| {}));
    spin(6 * MILLI);
    assert_eq!(driver.turn().expired, 2);
    let stats = timer.stats();
    assert_eq!((stats.tick_lag.count(), stats.timeout_lag.count()), (1, 2));
    for lag in [stats.tick_lag, stats.timeout_lag] {
        assert!(lag.max() >= 4 * MILLI && lag.quantile(0.5) >= 4 * MILLI && lag.mean() >= 4 * MILLI, "{lag:?}");
    }
}
