//! Draining: a timer accepts no more timeouts and runs the pending ones before it stops.

use crate::support::wakers::poll;
use crate::support::*;
use std::sync::mpsc;
use std::task::Waker;
use std::time::{Duration, Instant};
use timer_core::executor::ThreadPoolExecutor;
use timer_core::{ManualDriver, RejectReason, StopError, Timeout, Timer};

#[test]
fn pending_timeouts_run_and_others_are_refused() {
    for wheel in WHEELS {
        let (timer, driver) = manual(wheel);
        let (sender, ran) = mpsc::channel();
        let report_run = |name: &'static str| {
            let sender = sender.clone();
            move |me: &Timeout| {
                let refused = me.timer().unwrap().new_timeout(Duration::ZERO, |_: &Timeout| {}).unwrap_err();
                assert_eq!(refused.reason, RejectReason::Stopped);
                sender.send((name, me.timer().unwrap().now())).unwrap();
            }
        };
        let begin = timer.now();
        let period = timer.schedule_at_fixed_rate(SECOND, SECOND, |_| panic!("a periodic task has run")).unwrap();
        timer.new_timeout(HOUR, report_run("hour")).unwrap();
        timer.new_timeout(NANO, report_run("soon")).unwrap();
        let moved = timer.new_timeout(SECOND, report_run("moved")).unwrap();
        timer.new_timeout(2 * SECOND, move |_| assert!(moved.reset(SECOND))).unwrap().reset(MILLI);
        timer.new_timeout(SECOND, |_| panic!("it was cancelled")).unwrap().cancel();
        let late = timer.new_timeout(3 * HOUR, report_run("late")).unwrap();
        let report = driver.drain(2 * HOUR);
        let left: Vec<_> = report.unprocessed.iter().map(|left| left.timeout()).collect();
        assert_eq!((left, report.in_flight), (vec![&period, &late], 0), "{wheel:?}");
        let ran: Vec<_> = ran.try_iter().map(|(name, at)| (name, at - begin)).collect();
        assert_eq!(ran, [("soon", NANO), ("moved", SECOND + MILLI), ("hour", HOUR)], "{wheel:?}");
        assert_eq!((timer.pending_timeouts(), timer.now() - begin, timer.is_stopped()), (0, 2 * HOUR, true));
        let stats = timer.stats();
        assert_eq!((stats.scheduled, stats.expired, stats.cancelled, stats.rejected), (7, 4, 3, 3), "{wheel:?}");
    }
}

#[test]
fn a_drain_ends_with_the_last_timeout() {
    let pool = ThreadPoolExecutor::new(1);
    for builder in [Timer::builder(), Timer::builder().executor(pool)] {
        let timer = builder.build().unwrap();
        let (sender, ran) = mpsc::channel();
        timer.schedule_at_fixed_rate(HOUR, HOUR, |_| {}).unwrap();
        let begin = Instant::now();
        for nth in 1..=20 {
            let sender = sender.clone();
            timer.new_timeout(nth * MILLI, move |_| sender.send(begin.elapsed() >= nth * MILLI).unwrap()).unwrap();
        }
        let mut waiting = timer.sleep(30 * MILLI);
        assert!(poll(&mut waiting, Waker::noop()).is_pending());
        let mut unpolled = timer.sleep(HOUR);
        let drained = {
            let timer = timer.clone();
            std::thread::spawn(move || timer.drain(MAX_WAIT).unwrap())
        };
        while timer.start().is_ok() {
            std::thread::yield_now();
        }
        let refused = timer.new_timeout(HOUR, |_| {}).unwrap_err();
        assert_eq!(refused.reason, RejectReason::Stopped);
        let report = drained.join().unwrap();
        assert!(begin.elapsed() >= 30 * MILLI && begin.elapsed() < MAX_WAIT, "{:?}", begin.elapsed());
        assert_eq!((report.unprocessed.len(), report.in_flight), (1, 0), "the periodic task");
        drop(sender);
        assert_eq!(ran.into_iter().filter(|in_time| *in_time).count(), 20);
        assert!(poll(&mut unpolled, Waker::noop()).is_pending(), "it belongs to the timer of the process");
        assert_eq!(timer.stats().pending, 0);
    }
}

#[test]
fn a_periodic_task_that_runs_ends_with_its_run() {
    let timer = Timer::builder().executor(ThreadPoolExecutor::new(1)).build().unwrap();
    let (started, has_started) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let period = timer.schedule_at_fixed_rate(Duration::ZERO, MILLI, move |_| {
        started.send(()).unwrap();
        let _ = may_go_on.recv();
    });
    let period = period.unwrap();
    next(&has_started);
    let drained = {
        let timer = timer.clone();
        std::thread::spawn(move || timer.drain(MAX_WAIT).unwrap())
    };
    while timer.start().is_ok() {
        std::thread::yield_now();
    }
    drop(go_on);
    let report = drained.join().unwrap();
    assert_eq!((report.unprocessed.len(), report.in_flight, period.is_cancelled()), (0, 0, true));
    all_gone(&has_started);
}

#[test]
fn a_drain_returns_at_its_limit() {
    let timer = Timer::new();
    let timeout = timer.new_timeout(HOUR, |_| {}).unwrap();
    let begin = Instant::now();
    let report = timer.drain(20 * MILLI).unwrap();
    assert!(begin.elapsed() >= 20 * MILLI && begin.elapsed() < MAX_WAIT);
    assert_eq!(report.unprocessed.iter().map(|left| left.timeout()).collect::<Vec<_>>(), [&timeout]);
    assert!(timer.drain(HOUR).unwrap().unprocessed.is_empty(), "a second call has nothing to wait for");
}

#[test]
fn a_drain_that_cannot_end_is_refused() {
    let (timer, _driver): (Timer, ManualDriver) = manual(WHEELS[0]);
    assert_eq!(timer.drain(SECOND).unwrap_err(), StopError::Driven);
    assert_eq!(Timer::global().drain(SECOND).unwrap_err(), StopError::Global);
    let timer = Timer::new();
    let (sender, refused) = mpsc::channel();
    timer
        .new_timeout(Duration::ZERO, move |me| {
            sender.send(me.timer().unwrap().drain(SECOND).unwrap_err()).unwrap();
        })
        .unwrap();
    assert_eq!(next(&refused), StopError::InTask);
}
