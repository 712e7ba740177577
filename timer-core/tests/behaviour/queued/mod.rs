//! Timeouts in an executor's queue are pending. They can be cancelled and moved there, they are
//! counted, and `stop_and_wait` waits for them.
//!
//! A timeout that is cancelled or moved there leaves its place to the next one at once.

mod places;
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
    let inner = timer.clone();
    let inside = Arc::new(Mutex::new(None));
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
    assert_eq!(pool.run(), 2, "the pool runs two spare tasks");
    let stats = timer.stats();
    assert_eq!((end.counts(), stats.expired, stats.task_panics, stats.start_lag.count()), ((0, 1), 0, 0, 0));
    assert!(once.is_cancelled() && rate.is_cancelled());
    assert_eq!((stats.queued, stats.running), (0, 0));
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
