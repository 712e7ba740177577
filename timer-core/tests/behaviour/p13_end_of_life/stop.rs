//! Stopping from any thread and at any moment.

use crate::support::ledger::Ledger;
use crate::support::wakers::{Bell, poll};
use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use timer_core::{RejectReason, StopError, Timeout, Timer, TimerTask};

// Guards against B39, in which the worker's loop overwrote the wake-up of `stop`, and the join
// hung.
#[test]
fn stop_ends_the_worker_wherever_it_is() {
    let (done, ended) = channel();
    std::thread::spawn(move || {
        let mut random = Rng::with_seed(39);
        for round in 0..400 {
            let timer = Timer::builder().tick_duration(MICRO).build().unwrap();
            if round % 2 == 0 {
                timer.start().unwrap();
            }
            for _ in 0..random.u64(..4) {
                accepted(timer.new_timeout(random.duration(60 * MICRO), |_| {}));
            }
            spin(random.duration(120 * MICRO));
            if round % 5 == 0 {
                drop(timer);
            } else {
                drop(timer.stop().unwrap());
                assert_eq!(timer.pending_timeouts(), 0);
            }
        }
        done.send(()).unwrap();
    });
    next(&ended);
}

#[test]
fn one_of_several_stops_gets_all_timeouts() {
    for _ in 0..50 {
        let timer = Timer::new();
        for _ in 0..20 {
            accepted(timer.new_timeout(HOUR, |_| {}));
        }
        let left: Vec<usize> = std::thread::scope(|scope| {
            let stops: Vec<_> = (0..4).map(|_| scope.spawn(|| timer.stop().unwrap().len())).collect();
            stops.into_iter().map(|stop| stop.join().unwrap()).collect()
        });
        assert_eq!((left.iter().sum::<usize>(), left.iter().max()), (20, Some(&20)));
    }
}

// Guards against B93, in which `stop` returned handles that were not cancelled.
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

// Guards against B95, in which one owner stopped the timer and another waited forever.
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

// Guards against B97, in which the shutdown walked the wheel to the end of time.
#[test]
fn stop_takes_no_longer_for_far_timeouts() {
    for wheel in WHEELS {
        let (timer, driver) = manual(wheel);
        let (dropped, mut random) = (Arc::new(()), Rng::with_seed(97));
        for id in 0..20_000 {
            let capture = dropped.clone();
            let delay = if id % 2 == 0 { Duration::MAX } else { Duration::from_nanos(random.u64(..)) };
            accepted(timer.new_timeout(delay, move |_| drop(capture)));
        }
        let left = driver.stop();
        assert_eq!((left.len(), timer.stats().turns), (20_000, 0), "{wheel:?}");
        drop(left);
        assert_eq!((Arc::strong_count(&dropped), timer.pending_timeouts()), (1, 0));
    }
}

// Guards against B03, in which `stop` left a count and did not call the cancel callbacks.
#[test]
fn timeouts_that_stop_hands_back_do_not_run() {
    let timer = Timer::builder().tick_duration(10 * MICRO).build().unwrap();
    let ledger = Ledger::new();
    let mut ends = Vec::new();
    for id in 0..1_000 {
        let (probe, end) = ledger.probe();
        ends.push((end, accepted(timer.new_timeout_task(id * 5 * MICRO, probe))));
    }
    let left = timer.stop().unwrap();
    let counts = || {
        let all = ends.iter().map(|(end, _)| end.counts());
        all.fold((0, 0), |sum, (ran, cancelled)| (sum.0 + ran as usize, sum.1 + cancelled as usize))
    };
    let ran_before = counts().0;
    assert_eq!(counts().1, 0, "handed back, and its hook not yet called");
    assert_eq!((ran_before + left.len(), timer.pending_timeouts()), (1_000, 0));
    assert_eq!(timer.stats().cancelled, left.len() as u64);
    assert!(left.iter().all(|left| left.timeout().is_cancelled() && left.deadline() == left.timeout().deadline()));
    assert_eq!(timer.stop().unwrap().len(), 0, "a second stop gets nothing");
    watch_for(10 * MILLI);
    assert_eq!(counts(), (ran_before, 0));
    let mut left = left.into_iter();
    let half = left.len() / 2;
    left.by_ref().take(half).for_each(|left| left.run());
    drop(left);
    ledger.wait();
    assert_eq!(counts(), (ran_before + half, 1_000 - ran_before - half));
    assert!(ends.iter().all(|(end, timeout)| end.counts().0 + end.counts().1 == 1 && !timeout.cancel()));
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
            let (timer, quiet) = (timer.clone(), quiet.clone());
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
