//! Tasks that an executor loses before or after the end of the timer.

use crate::support::executors::KeepingExecutor;
use crate::support::ledger::Ledger;
use crate::support::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use timer_core::{ManualDriver, Timer};

/// Returns a timer on virtual time and its executor, which keeps the tasks.
fn keeping() -> (Timer, ManualDriver, KeepingExecutor) {
    let pool = KeepingExecutor::default();
    let (timer, driver) = Timer::builder().executor(pool.clone()).build_manual().unwrap();
    (timer, driver, pool)
}

fn lose_all(pool: &KeepingExecutor) {
    let tasks = pool.take();
    assert!(!tasks.is_empty());
    drop(tasks);
}

#[test]
fn lost_tasks_run_although_the_timer_is_stopped() {
    for lost_first in [true, false] {
        let (timer, mut driver, pool) = keeping();
        let ledger = Ledger::new();
        let (probe, end) = ledger.probe();
        let once = accepted(timer.new_timeout_task(MILLI, probe));
        assert_eq!(driver.advance(MILLI), 1);
        if lost_first {
            lose_all(&pool);
        }
        assert!(driver.stop().is_empty());
        if !lost_first {
            lose_all(&pool);
        }
        ledger.wait();
        assert_eq!(end.counts(), (1, 0), "lost first: {lost_first}");
        assert!(once.is_expired() && !once.is_cancelled());
        assert_eq!(timer.pending_timeouts(), 0);
    }
}

#[test]
fn tasks_lost_after_stop_have_an_end() {
    for bound in [None, Some(5)] {
        let pool = KeepingExecutor::default();
        let builder = Timer::builder().executor(pool.clone());
        let builder = match bound {
            Some(bound) => builder.max_pending_timeouts(bound),
            None => builder,
        };
        let (timer, mut driver) = builder.build_manual().unwrap();
        let ledger = Ledger::new();
        let (probe, end) = ledger.probe();
        accepted(timer.new_timeout_task(MILLI, probe));
        let periodic = accepted(timer.schedule_at_fixed_rate(MILLI, MILLI, |_| {}));
        assert_eq!(driver.advance(MILLI), 2);
        assert_eq!(timer.pending_timeouts(), 2);
        assert_eq!(driver.stop().len(), 0);
        lose_all(&pool);
        ledger.wait();
        assert_eq!(end.counts(), (1, 0), "with a bound of {bound:?}");
        assert!(periodic.is_cancelled(), "{periodic:?}");
        assert_eq!(timer.pending_timeouts(), 0, "with a bound of {bound:?}");
    }
}

#[test]
fn a_lost_task_that_holds_its_timer_is_not_kept() {
    let (timer, mut driver, pool) = keeping();
    let captured = Arc::new(());
    let (held, inner) = (timer.clone(), captured.clone());
    accepted(timer.new_timeout(MILLI, move |_| drop((held, inner))));
    driver.advance(MILLI);
    lose_all(&pool);
    drop((driver, timer));
    assert_eq!(Arc::strong_count(&captured), 1);
}

#[test]
fn lost_tasks_are_dropped_with_the_driver() {
    let (timer, mut driver, pool) = keeping();
    let captured = Arc::new(());
    let inner = captured.clone();
    accepted(timer.new_timeout(Duration::ZERO, move |_| drop(inner)));
    driver.advance(Duration::ZERO);
    lose_all(&pool);
    drop(driver);
    assert_eq!((Arc::strong_count(&captured), timer.pending_timeouts()), (1, 0));
}

#[test]
fn a_lost_task_runs_although_no_timeout_waits() {
    let (timer, mut driver, pool) = keeping();
    let ledger = Ledger::new();
    let (probe, end) = ledger.probe();
    accepted(timer.new_timeout_task(Duration::ZERO, probe));
    driver.advance(Duration::ZERO);
    assert_eq!(driver.next_expiry(), None);
    lose_all(&pool);
    assert_eq!(driver.next_expiry(), Some(Duration::ZERO));
    assert_eq!(driver.advance_to_next(), None);
    assert_eq!((end.counts(), timer.pending_timeouts(), driver.elapsed()), ((1, 0), 0, Duration::ZERO));
}

#[test]
fn a_lost_task_runs_before_time_advances() {
    let (timer, mut driver, pool) = keeping();
    let (start, seen) = (driver.now(), Arc::new(Mutex::new(None)));
    let (inner, inside) = (timer.clone(), seen.clone());
    accepted(timer.new_timeout(Duration::ZERO, move |_| {
        let now = accepted(inner.new_timeout(Duration::ZERO, |_| ())).deadline();
        *inside.lock().unwrap() = Some(now - start);
    }));
    driver.advance(Duration::ZERO);
    lose_all(&pool);
    driver.advance(SECOND);
    assert_eq!(*seen.lock().unwrap(), Some(Duration::ZERO));
}
