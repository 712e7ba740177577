//! `stop_and_wait` waits for the tasks in an executor.

use crate::support::executors::KeepingExecutor;
use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use timer_core::{StopError, Timer};
use timer_executor::ThreadPoolExecutor;

#[test]
fn stop_and_wait_ends_a_hundred_tasks_on_two_threads() {
    let timer = Timer::builder().executor(ThreadPoolExecutor::new(2)).build().unwrap();
    let ended = Arc::new(AtomicUsize::new(0));
    let deadline = Instant::now() + 20 * MILLI;
    for _ in 0..100 {
        let ended = ended.clone();
        let slow = move |_: &_| {
            watch_for(2 * MILLI);
            ended.fetch_add(1, SeqCst);
        };
        accepted(timer.new_timeout_at(deadline, slow));
    }
    wait_until(|| timer.stats().timeout_lag.count() == 100);
    let report = timer.stop_and_wait(MAX_WAIT).unwrap();
    assert_eq!((report.unprocessed.len(), report.in_flight, ended.load(SeqCst)), (0, 0, 100));
    let stats = timer.stats();
    assert_eq!((stats.pending, stats.expired, stats.in_flight), (0, 100, 0));
    // All tasks were handed over in time, and the last one of a thread has waited for 49 others.
    assert!(stats.start_lag.max() >= 80 * MILLI, "{stats:?}");
    assert_eq!((stats.timeout_lag.count(), stats.start_lag.count()), (100, 100));
}

#[test]
fn stop_and_wait_returns_at_its_limit() {
    let pool = KeepingExecutor::default();
    let timer = Timer::builder().executor(pool.clone()).build().unwrap();
    accepted(timer.new_timeout(Duration::ZERO, |_| {}));
    let far = accepted(timer.new_timeout(HOUR, |_| {}));
    wait_until(|| timer.stats().queued == 1);
    let report = timer.stop_and_wait(20 * MILLI).unwrap();
    assert_eq!((report.unprocessed.len(), report.in_flight), (1, 1));
    assert_eq!(report.unprocessed[0].timeout(), &far);
    let again = timer.stop_and_wait(Duration::ZERO).unwrap();
    assert_eq!((again.unprocessed.len(), again.in_flight), (0, 1));
    assert_eq!(timer.stop().unwrap().len(), 0);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| timer.stop_and_wait(MAX_WAIT).unwrap().in_flight);
        watch_for(5 * MILLI);
        assert!(!waits.is_finished(), "a task is in flight");
        assert_eq!(pool.run(), 1);
        assert_eq!(waits.join().unwrap(), 0);
    });
}

#[test]
fn stop_and_wait_does_not_wait_for_a_spare_task() {
    let pool = KeepingExecutor::default();
    let timer = Timer::builder().executor(pool.clone()).build().unwrap();
    let timeout = accepted(timer.new_timeout(Duration::ZERO, |_| {}));
    wait_until(|| timer.stats().queued == 1);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| timer.stop_and_wait(MAX_WAIT).unwrap().in_flight);
        assert!(timeout.cancel());
        assert_eq!(waits.join().unwrap(), 0, "the spare task in the queue does not count");
    });
    assert_eq!(pool.run(), 1);
}

#[test]
fn a_blocked_worker_does_not_hold_stop_and_wait() {
    let timer = Timer::new();
    let (begun, inside) = channel();
    let (release, released) = channel();
    accepted(timer.new_timeout(Duration::ZERO, move |_| {
        begun.send(()).unwrap();
        next(&released);
    }));
    let far = accepted(timer.new_timeout(HOUR, |_| {}));
    next(&inside);
    let report = timer.stop_and_wait(10 * MILLI).unwrap();
    assert_eq!((report.unprocessed.len(), report.in_flight), (1, 1), "the task still blocks the worker");
    assert!(far.is_cancelled());
    release.send(()).unwrap();
    assert_eq!(timer.stop_and_wait(MAX_WAIT).unwrap().in_flight, 0);
    assert_eq!(timer.stats().running, 0);
}

#[test]
fn stop_and_wait_from_a_task_is_rejected() {
    let pools: [Timer; 2] = [Timer::new(), Timer::builder().executor(ThreadPoolExecutor::new(1)).build().unwrap()];
    for timer in pools {
        let (report, reports) = channel();
        let inner = timer.clone();
        accepted(timer.new_timeout(Duration::ZERO, move |_| {
            let direct = inner.stop_and_wait(MAX_WAIT).err();
            // A task of another timer that runs within this one is in the same situation.
            let (other, mut driver) = manual(WHEELS[0]);
            let nested = inner.clone();
            let inner_report = report.clone();
            accepted(other.new_timeout(SECOND, move |_| {
                inner_report.send(nested.stop_and_wait(MAX_WAIT).err()).unwrap();
            }));
            driver.advance(SECOND);
            report.send(direct).unwrap();
        }));
        assert_eq!([next(&reports), next(&reports)], [Some(StopError::InTask); 2]);
        assert!(accepted(timer.new_timeout(HOUR, |_| {})).cancel(), "nothing was stopped");
        assert_eq!(timer.stop_and_wait(MAX_WAIT).unwrap().in_flight, 0);
    }
}

#[test]
fn stop_and_wait_of_a_driven_timer_is_rejected() {
    let (timer, driver) = manual(WHEELS[0]);
    assert_eq!(timer.stop_and_wait(MAX_WAIT).err(), Some(StopError::Driven));
    assert!(accepted(timer.new_timeout(HOUR, |_| {})).cancel());
    drop(driver);
}
