//! Stopping from any thread and at any moment.

use crate::support::ledger::Ledger;
use crate::support::wakers::{Bell, poll};
use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use timer_core::{RejectReason, StopError, Timeout, Timer, TimerTask};

// Guards against netty/netty#14081, in which `stop` returned handles that were not cancelled.
#[test]
fn timeouts_that_stop_hands_back_are_cancelled() {
    let (timer, driver) = manual(WHEELS[0]);
    let far = accepted(timer.new_timeout(Duration::MAX, |_| {}));
    let due = accepted(timer.new_timeout(Duration::ZERO, |_| {}));
    let moved = accepted(timer.new_timeout(SECOND, |_| {}));
    assert!(moved.reset(HOUR));
    let rate = accepted(timer.schedule_at_fixed_rate(SECOND, SECOND, |_| {}));
    let gone = accepted(timer.new_timeout(SECOND, |_| {}));
    assert!(gone.cancel());
    let left = driver.stop();
    assert_eq!(left.len(), 4, "the cancelled timeout is not among them");
    for timeout in [&far, &due, &moved, &rate] {
        assert!(timeout.is_cancelled() && !timeout.is_expired() && !timeout.cancel() && !timeout.reset(SECOND));
        assert!(left.iter().any(|left| left.deadline() == timeout.deadline()));
    }
}

/// A task whose owner waits for an answer.
struct Answer(Sender<&'static str>);

impl TimerTask for Answer {
    fn run(self, _: &Timeout) {
        self.0.send("due").unwrap();
    }

    fn cancelled(self, _: &Timeout) {
        self.0.send("never").unwrap();
    }
}

// Guards against redisson/redisson#2304, in which one owner stopped the timer and another waited
// forever.
#[test]
fn an_owner_learns_of_the_stop_of_another() {
    let timer = Timer::new();
    let (answer, answers) = channel();
    accepted(timer.new_timeout_task(HOUR, Answer(answer.clone())));
    let owner = timer.clone();
    drop(std::thread::spawn(move || owner.stop().unwrap()).join().unwrap());
    assert_eq!(next(&answers), "never");
    let rejected = timer.new_timeout_task(HOUR, Answer(answer)).err().unwrap();
    assert_eq!(rejected.reason, RejectReason::Stopped);
    assert!(answers.try_recv().is_err(), "the error is the only answer");
}

#[test]
fn stop_from_a_task_on_the_worker_is_rejected() {
    let timer = Timer::new();
    let (answer, received) = channel();
    let inner = timer.clone();
    accepted(timer.new_timeout(Duration::ZERO, move |_| answer.send(inner.stop().map(|left| left.len())).unwrap()));
    assert_eq!(next(&received), Err(StopError::OnWorker));
    accepted(timer.new_timeout(HOUR, |_| {}));
    assert_eq!(timer.stop().unwrap().len(), 1);
}

#[test]
fn stop_from_a_task_on_a_pool_stops() {
    let timer = Timer::builder().executor(timer_executor::ThreadPoolExecutor::new(1)).build().unwrap();
    accepted(timer.new_timeout(HOUR, |_| {}));
    let (answer, received) = channel();
    let inner = timer.clone();
    accepted(timer.new_timeout(Duration::ZERO, move |_| answer.send(inner.stop().map(|left| left.len())).unwrap()));
    assert_eq!(next(&received), Ok(1));
    assert_eq!(timer.stop().unwrap().len(), 0);
}

#[test]
fn every_stop_waits_for_the_task_on_the_worker() {
    let timer = Timer::new();
    let (begun, inside) = channel();
    let (release, released) = channel::<()>();
    let quiet = Arc::new(AtomicBool::new(false));
    let done = quiet.clone();
    accepted(timer.new_timeout(Duration::ZERO, move |_| {
        begun.send(()).unwrap();
        next(&released);
        done.store(true, SeqCst);
    }));
    next(&inside);
    let stops: Vec<_> = (0..2)
        .map(|_| {
            let timer = timer.clone();
            let quiet = quiet.clone();
            std::thread::spawn(move || {
                timer.stop().unwrap();
                quiet.load(SeqCst)
            })
        })
        .collect();
    while timer.new_timeout(Duration::MAX, |_| {}).is_ok() {
        std::thread::yield_now();
    }
    release.send(()).unwrap();
    assert!(stops.into_iter().all(|stop| stop.join().unwrap()));
}

#[test]
fn a_stop_that_does_not_wait_leaves_nothing_pending() {
    let timer = Timer::new();
    let (begun, inside) = channel();
    let (release, released) = channel::<()>();
    let ledger = Ledger::new();
    // The deadline is far enough to schedule everything before it, also under valgrind.
    let deadline = Instant::now() + 300 * MILLI;
    // All are in one bucket, so others are behind the blocking task wherever it is.
    let ends: Vec<_> = (0..100)
        .map(|_| {
            let (probe, end) = ledger.probe();
            accepted(timer.new_timeout_task(deadline - Instant::now(), probe));
            end
        })
        .collect();
    accepted(timer.new_timeout_at(deadline, move |_| {
        begun.send(()).unwrap();
        let _ = released.recv();
    }));
    let (bell, waker) = Bell::new();
    let mut sleeps: Vec<_> = (0..10).map(|_| timer.sleep_until(deadline)).collect();
    let waiting = sleeps.iter_mut().filter_map(|sleep| poll(sleep, &waker).is_pending().then_some(())).count();
    next(&inside);
    let report = timer.stop_and_wait(Duration::ZERO).unwrap();
    assert_eq!(report.in_flight, 1);
    drop(report);
    release.send(()).unwrap();
    wait_until(|| timer.pending_timeouts() == 0 && bell.rung() == waiting);
    ledger.wait();
    assert!(ends.iter().all(|end| end.counts().0 + end.counts().1 == 1));
}
