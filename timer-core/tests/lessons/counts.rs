//! Counts that went wrong.

use crate::support::ledger::Ledger;
use crate::support::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use timer_core::Timer;

// B01: a cancel between placement and expiry in the same tick counted down twice, so the bound could be exceeded.
#[test]
fn siblings_of_the_tick_that_are_cancelled_by_its_first_task_count_once() {
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
            assert_eq!(taken, bound.unwrap_or(20), "neither more nor fewer than the bound");
        }
    }
}

// B03: `stop` left the count, and cancel callbacks were not called.
#[test]
fn stop_leaves_no_count_and_tells_each_task_once() {
    let timer = Timer::new();
    let ledger = Ledger::new();
    let ends: Vec<_> = (0..100)
        .map(|_| {
            let (probe, end) = ledger.probe();
            accepted(timer.new_timeout_task(HOUR, probe));
            end
        })
        .collect();
    let left = timer.stop().unwrap();
    assert_eq!((left.len(), timer.pending_timeouts(), timer.stats().cancelled), (100, 0, 100));
    assert!(ends.iter().all(|end| end.counts() == (0, 0)), "handed back, not yet told");
    drop(left);
    ledger.wait();
    assert!(ends.iter().all(|end| end.counts() == (0, 1)));
}

// B05: cancelling all left the count, and the destructor complained.
#[test]
fn all_cancelled_then_dropped_and_again() {
    for _ in 0..2 {
        let (timer, driver) = manual(WHEELS[0]);
        let timeouts: Vec<_> = (0..1_000).map(|id| accepted(timer.new_timeout(id * MILLI, |_| {}))).collect();
        assert!(timeouts.iter().all(|timeout| timeout.cancel()));
        assert!(timeouts.iter().all(|timeout| !timeout.cancel()));
        assert_eq!((timer.pending_timeouts(), driver.next_expiry()), (0, None));
        assert_eq!(driver.stop().len(), 0);
    }
}

// B06: scheduled again from a late callback, the count was 0 with the driver still armed.
#[test]
fn the_driver_is_armed_exactly_if_something_is_pending() {
    for wheel in WHEELS {
        let (timer, mut driver) = manual(wheel);
        let (inner, seat) = (timer.clone(), Arc::new(Mutex::new(None)));
        let again = seat.clone();
        accepted(timer.new_timeout(SECOND, move |_| {
            *again.lock().unwrap() = Some(accepted(inner.new_timeout(SECOND, |_| {})));
        }));
        driver.advance(SECOND);
        assert_eq!((timer.pending_timeouts(), driver.next_expiry()), (1, Some(SECOND)));
        assert!(seat.lock().unwrap().take().unwrap().cancel());
        assert_eq!((timer.pending_timeouts(), driver.next_expiry()), (0, None), "{wheel:?}");
    }
}

// B08: the handle of a periodic job that was replaced was never cancelled; 45 million piled up.
#[test]
fn a_periodic_task_that_is_replaced_a_thousand_times_is_one() {
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

// The way of an idle timeout: moved with every packet, in one piece, and still one.
#[test]
fn a_timeout_that_is_moved_a_thousand_times_is_one() {
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

// The rank of a quantile was rounded down: the median of three was the first.
#[test]
fn the_median_of_three_lags_is_the_second() {
    let (timer, mut driver) = manual(WHEELS[0]);
    for late in [1, 2, 4] {
        accepted(timer.new_timeout_at(driver.now() - late * MILLI, |_| {}));
    }
    assert_eq!(driver.advance(Duration::ZERO), 3);
    let lag = timer.stats().timeout_lag;
    assert_eq!((lag.count(), lag.sum(), lag.max()), (3, 7 * MILLI, 4 * MILLI));
    let of = |q| lag.quantile(q);
    let about = |lag: Duration, millis: u32| lag >= millis * MILLI && lag <= millis * MILLI + 20 * MICRO * millis;
    assert!(about(of(0.5), 2) && about(of(0.33), 1) && about(of(0.34), 2), "{lag:?}");
    assert!(about(of(0.67), 4) && about(of(1.0), 4) && about(of(0.0), 1), "{lag:?}");
}
