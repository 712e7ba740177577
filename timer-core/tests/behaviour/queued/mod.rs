//! Timeouts in an executor's queue are pending. They can be cancelled and moved there, they are
//! counted, and `stop_and_wait` waits for them.
//!
//! A cancelled timeout leaves a shell in the queue, which does nothing when it starts. The shell of
//! a timeout that was moved to later runs the task if it is due by then, and otherwise returns the
//! timeout to its wheel.

mod stop_and_wait;

use crate::support::executors::KeepingExecutor;
use crate::support::ledger::Ledger;
use crate::support::wakers::poll;
use crate::support::*;
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::thread::current;
use std::time::Duration;
use timer_core::{ManualDriver, Timeout, Timer};

/// Returns a timer on virtual time and its executor, which keeps the tasks.
fn keeping() -> (Timer, ManualDriver, KeepingExecutor) {
    let pool = KeepingExecutor::default();
    let (timer, driver) = Timer::builder().executor(pool.clone()).build_manual().unwrap();
    (timer, driver, pool)
}

#[test]
fn the_wait_in_a_pool_shows_in_the_statistics() {
    let (timer, mut driver, pool) = keeping();
    let (inner, inside) = (timer.clone(), Arc::new(Mutex::new(None)));
    let seen = inside.clone();
    accepted(timer.new_timeout(SECOND, move |_| *seen.lock().unwrap() = Some(inner.stats())));
    accepted(timer.new_timeout(SECOND, |_| {}));
    assert_eq!(driver.advance(2 * SECOND), 2);
    let stats = timer.stats();
    assert_eq!((stats.queued, stats.running, stats.in_flight, stats.expired), (2, 0, 2, 0));
    assert_eq!((stats.timeout_lag.count(), stats.timeout_lag.max()), (2, Duration::ZERO), "handed over in time");
    assert_eq!(stats.start_lag.count(), 0);
    driver.advance(3 * SECOND);
    assert_eq!(pool.run(), 2);
    let within = inside.lock().unwrap().take().unwrap();
    assert_eq!((within.queued, within.running, within.in_flight, within.expired), (1, 1, 2, 1));
    let stats = timer.stats();
    assert_eq!((stats.queued, stats.running, stats.in_flight), (0, 0, 0));
    assert_eq!(
        (stats.start_lag.count(), stats.start_lag.sum(), stats.timeout_lag.max()),
        (2, 8 * SECOND, Duration::ZERO)
    );
}

#[test]
fn inline_tasks_start_when_they_are_handed_over() {
    let (timer, mut driver) = manual(WHEELS[0]);
    accepted(timer.new_timeout_at(driver.now() - SECOND, |_| {}));
    assert_eq!(driver.advance(Duration::ZERO), 1);
    let stats = timer.stats();
    assert_eq!((stats.start_lag.count(), stats.start_lag.max(), stats.timeout_lag.max()), (1, SECOND, SECOND));
}

#[test]
fn cancel_wins_until_the_task_starts() {
    let (timer, mut driver, pool) = keeping();
    let ledger = Ledger::new();
    let (probe, end) = ledger.probe();
    let once = accepted(timer.new_timeout_task(SECOND, probe));
    let captured = Arc::new(());
    let inner = captured.clone();
    let rate = accepted(timer.schedule_at_fixed_rate(SECOND, SECOND, move |_| panic!("ran with {inner:?}")));
    assert_eq!(driver.advance(SECOND), 2);
    let canceller = std::thread::scope(|scope| {
        let cancel = || {
            assert!(once.cancel() && !once.cancel() && rate.cancel());
            // The hook and the drop have happened before the call returns.
            assert_eq!(
                (end.counts(), end.dropped_on(), Arc::strong_count(&captured)),
                ((0, 1), Some(current().id()), 1)
            );
            current().id()
        };
        scope.spawn(cancel).join().unwrap()
    });
    assert_eq!(end.dropped_on(), Some(canceller));
    let stats = timer.stats();
    assert_eq!((stats.pending, stats.cancelled, stats.expired, stats.queued), (0, 2, 0, 0));
    assert_eq!(pool.run(), 2, "the pool runs two shells");
    let stats = timer.stats();
    assert_eq!((end.counts(), stats.expired, stats.task_panics, stats.start_lag.count()), ((0, 1), 0, 0, 0));
    assert!(once.is_cancelled() && rate.is_cancelled());
    assert_eq!((stats.queued, stats.running), (0, 0));
}

#[test]
fn a_cancelled_task_that_is_lost_counts_once() {
    let (timer, mut driver, pool) = keeping();
    let timeout = accepted(timer.new_timeout(SECOND, |_| panic!("it was cancelled")));
    driver.advance(SECOND);
    assert!(timeout.cancel());
    drop(pool.take());
    assert_eq!(driver.advance(SECOND), 0);
    let stats = timer.stats();
    assert_eq!((stats.pending, stats.cancelled, stats.queued, stats.task_panics), (0, 1, 0, 0));
}

#[test]
fn the_shell_of_a_moved_timeout_runs_nothing_early() {
    let (timer, mut driver, pool) = keeping();
    let runs = Runs::default();
    let [early, late] = [1, 2].map(|id| record(&timer, SECOND, &runs, id));
    assert_eq!(driver.advance(SECOND), 2);
    assert!(early.reset(10 * SECOND) && late.reset(10 * SECOND));
    assert_eq!(early.remaining(), 10 * SECOND);
    let mut shells = pool.take();
    shells.remove(0).run();
    assert_eq!((take_runs(&runs), timer.stats().queued, driver.next_expiry()), (vec![], 1, Some(10 * SECOND)));
    assert_eq!(driver.advance(10 * SECOND - NANO), 0, "never early");
    assert_eq!(driver.advance(NANO), 1, "the timeout is handed over again");
    // The other shell runs only now. Its timeout is due and runs at once.
    shells.remove(0).run();
    assert_eq!(pool.run(), 1);
    let mut ran = take_runs(&runs);
    ran.sort_unstable();
    assert_eq!(ran, [1, 2]);
    let stats = timer.stats();
    assert_eq!((stats.runs, stats.expired, stats.pending, stats.queued), (3, 2, 0, 0));
    assert_eq!(stats.start_lag.max(), Duration::ZERO, "the lag counts from the new deadline");
}

#[test]
fn a_reset_to_later_costs_at_most_one_turn() {
    for out_of_the_pool in [false, true] {
        let (timer, mut driver, pool) = keeping();
        let runs = Runs::default();
        let moved = record(&timer, SECOND, &runs, 1);
        driver.advance(SECOND);
        assert!(moved.reset(3 * SECOND));
        if out_of_the_pool {
            // The timeout is in the wheel again, which learns of an earlier deadline at once and of
            // a later one at the old deadline.
            assert_eq!((pool.run(), driver.next_expiry()), (1, Some(3 * SECOND)));
        }
        assert!(moved.reset(2 * SECOND) && moved.reset(3 * SECOND));
        pool.run();
        let expected = if out_of_the_pool { 2 * SECOND } else { 3 * SECOND };
        assert_eq!(driver.next_expiry(), Some(expected));
        let turns = timer.stats().turns;
        assert_eq!(
            (driver.advance(2 * SECOND), driver.next_expiry()),
            (0, Some(SECOND)),
            "the wheel knows the new deadline"
        );
        assert_eq!((driver.advance(SECOND), pool.run(), take_runs(&runs)), (1, 1, vec![1]));
        assert_eq!(timer.stats().turns - turns, if out_of_the_pool { 2 } else { 1 });
    }
}

#[test]
fn a_timeout_has_one_shell_after_many_moves() {
    let (timer, mut driver, pool) = keeping();
    let timeout = accepted(timer.new_timeout(SECOND, |_| {}));
    driver.advance(SECOND);
    for _ in 0..100 {
        assert!(timeout.reset(SECOND));
        assert_eq!(driver.advance(2 * SECOND), 0, "the timeout is in no wheel");
        assert!(timeout.reset(Duration::ZERO) && !timeout.expire_now());
    }
    assert_eq!((pool.run(), timer.stats().expired), (1, 1));
}

#[test]
fn timeouts_moved_in_a_pool_are_cancelled_after_stop() {
    for lost in [false, true] {
        let (timer, mut driver, pool) = keeping();
        let ledger = Ledger::new();
        let ends: Vec<_> = (0..3)
            .map(|id| {
                let (probe, end) = ledger.probe();
                (accepted(timer.new_timeout_task(id * SECOND, probe)), end)
            })
            .collect();
        assert_eq!(driver.advance(SECOND), 2);
        assert!(ends[0].0.reset(HOUR));
        let left = driver.stop();
        assert_eq!(left.len(), 1, "stop hands back the wheel's timeout and none of the pool's");
        assert_eq!(left[0].timeout(), &ends[2].0);
        drop(left);
        assert_eq!((timer.pending_timeouts(), timer.stats().queued), (2, 2));
        if lost {
            drop(pool.take());
        } else {
            assert_eq!(pool.run(), 2);
        }
        ledger.wait();
        let counts: Vec<_> = ends.iter().map(|(_, end)| end.counts()).collect();
        assert_eq!(counts, [(0, 1), (1, 0), (0, 1)], "cancelled with its hook, run, handed back");
        assert!(ends[0].0.is_cancelled() && ends[1].0.is_expired() && ends[2].0.is_cancelled());
        let stats = timer.stats();
        assert_eq!((stats.pending, stats.expired, stats.cancelled, stats.queued), (0, 1, 2, 0), "lost: {lost}");
    }
}

#[test]
fn tasks_in_a_pool_can_be_cancelled_after_stop() {
    let (timer, mut driver, pool) = keeping();
    let timeout = accepted(timer.new_timeout(SECOND, |_| panic!("it was cancelled")));
    driver.advance(SECOND);
    assert_eq!((driver.stop().len(), timer.pending_timeouts()), (0, 1));
    assert!(timeout.cancel());
    assert_eq!((pool.run(), timer.pending_timeouts(), timer.stats().task_panics), (1, 0, 0));
}

// Checks the sum with every end that a timeout can have.
#[test]
fn scheduled_equals_pending_expired_and_cancelled() {
    for bound in [None, Some(1_000)] {
        let pool = KeepingExecutor::default();
        let builder = Timer::builder().executor(pool.clone());
        let builder = match bound {
            Some(max) => builder.max_pending_timeouts(max),
            None => builder,
        };
        let (timer, mut driver) = builder.build_manual().unwrap();
        let check = |pending: u64, expired: u64, cancelled: u64| {
            let stats = timer.stats();
            let seen = (stats.pending, stats.expired, stats.cancelled);
            assert_eq!((seen, stats.scheduled), ((pending, expired, cancelled), pending + expired + cancelled));
            assert_eq!(timer.pending_timeouts() as u64, pending);
        };
        let all: Vec<_> = (0..10).map(|_| accepted(timer.new_timeout(SECOND, |_| {}))).collect();
        let rate = accepted(timer.schedule_at_fixed_rate(SECOND, SECOND, |_| {}));
        let far: Vec<_> = (0..5).map(|_| accepted(timer.new_timeout(HOUR, |_| {}))).collect();
        accepted(timer.new_timeout(SECOND, |_| crate::support::panics::panic_on_purpose()));
        check(17, 0, 0);
        assert!(all[0].cancel());
        check(16, 0, 1);
        assert_eq!(driver.advance(SECOND), 11);
        check(16, 0, 1);
        assert!(all[1].cancel() && all[2].reset(HOUR));
        check(15, 0, 2);
        pool.run();
        check(7, 8, 2);
        assert!(rate.cancel() && far[0].cancel());
        check(5, 8, 4);
        assert_eq!(driver.stop().len(), 5);
        check(0, 8, 9);
    }
}

/// A waker that cancels a timeout and then reads the number of queued tasks.
struct Cancels {
    timeout: Timeout,
    timer: Timer,
    queued: Mutex<Option<u64>>,
}

impl Wake for Cancels {
    fn wake(self: Arc<Self>) {
        assert!(self.timeout.cancel());
        *self.queued.lock().unwrap() = Some(self.timer.stats().queued);
    }
}

#[test]
fn a_timeout_cancelled_at_hand_over_is_not_counted_as_queued() {
    let (timer, mut driver) = Timer::builder().executor(KeepingExecutor::default()).build_manual().unwrap();
    // The timeout is won for the executor before the waker runs, and counted after it.
    let timeout = accepted(timer.new_timeout(MILLI, |_| {}));
    let cancels = Arc::new(Cancels { timeout, timer: timer.clone(), queued: Mutex::default() });
    let mut sleep = timer.sleep(MILLI);
    let waker = Waker::from(cancels.clone());
    assert!(poll(&mut sleep, &waker).is_pending());
    assert_eq!(driver.advance(MILLI), 2);
    assert_eq!(*cancels.queued.lock().unwrap(), Some(0));
    assert_eq!(timer.stats().in_flight, 0);
}
