//! Panics, and how timers began and ended.

use crate::support::executors::panic_on_purpose;
use crate::support::ledger::Ledger;
use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use timer_core::{RejectReason, Timeout, Timer, TimerTask};

// B39: the wake-up of `stop` was overwritten by the worker's loop, and the join hung.
#[test]
fn stop_ends_the_worker_wherever_it_is() {
    let (done, ended) = channel();
    std::thread::spawn(move || {
        let mut random = Random(39);
        for round in 0..400 {
            let timer = Timer::builder().tick_duration(MICRO).build().unwrap();
            if round % 2 == 0 {
                timer.start().unwrap();
            }
            for _ in 0..random.below(4) {
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
fn of_threads_that_stop_at_once_one_gets_what_is_left_and_all_return() {
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

#[test]
fn the_first_timeouts_of_many_threads_start_one_worker() {
    for _ in 0..50 {
        let timer = Timer::new();
        let (ran, received) = channel();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let (timer, ran) = (&timer, ran.clone());
                let on = move |_: &Timeout| ran.send(std::thread::current().id()).unwrap();
                scope.spawn(move || drop(accepted(timer.new_timeout(Duration::ZERO, on))));
            }
        });
        let ids = [(); 4].map(|()| next(&received));
        assert!(ids.iter().all(|id| *id == ids[0]));
    }
}

// B90: one throwing task in the middle of a tick; the rest of it, and the counts.
#[test]
fn the_rest_of_the_tick_runs_after_a_panic_in_any_place() {
    for wheel in WHEELS {
        for place in [0, 4, 9] {
            let (timer, mut driver) = manual(wheel);
            let runs = Runs::default();
            for id in 0..10 {
                if id == place {
                    accepted(timer.new_timeout(SECOND, |_| panic_on_purpose()));
                } else {
                    note(&timer, SECOND, &runs, id);
                }
            }
            assert_eq!(driver.advance(SECOND), 10);
            assert_eq!(taken(&runs), (0..10).filter(|id| *id != place).collect::<Vec<_>>(), "{wheel:?}");
            let stats = timer.stats();
            assert_eq!((stats.expired, stats.task_panics, stats.pending), (10, 1, 0));
        }
    }
}

// B93: `stop` returned handles that were not cancelled.
#[test]
fn what_stop_hands_back_reads_as_cancelled_whatever_it_was() {
    let (timer, driver) = manual(WHEELS[0]);
    let far = accepted(timer.new_timeout(Duration::MAX, |_| {}));
    let due = accepted(timer.new_timeout(Duration::ZERO, |_| {}));
    let moved = accepted(timer.new_timeout(SECOND, |_| {}));
    assert!(moved.reset(HOUR));
    let rate = accepted(timer.schedule_at_fixed_rate(SECOND, SECOND, |_| {}));
    let gone = accepted(timer.new_timeout(SECOND, |_| {}));
    assert!(gone.cancel());
    let left = driver.stop();
    assert_eq!(left.len(), 4, "not the one that was cancelled");
    for timeout in [&far, &due, &moved, &rate] {
        assert!(timeout.is_cancelled() && !timeout.is_expired() && !timeout.cancel() && !timeout.reset(SECOND));
        assert!(left.iter().any(|left| left.deadline() == timeout.deadline()));
    }
}

/// Somebody waits for an answer.
struct Answer(Sender<&'static str>);

impl TimerTask for Answer {
    fn run(self, _: &Timeout) {
        self.0.send("due").unwrap();
    }

    fn cancelled(self, _: &Timeout) {
        self.0.send("never").unwrap();
    }
}

// B95: the timer was stopped by one of its owners, and another waited for ever.
#[test]
fn whoever_waits_for_a_timer_that_another_owner_stops_is_told() {
    let timer = Timer::new();
    let (answer, answers) = channel();
    accepted(timer.new_timeout_task(HOUR, Answer(answer.clone())));
    let owner = timer.clone();
    drop(std::thread::spawn(move || owner.stop().unwrap()).join().unwrap());
    assert_eq!(next(&answers), "never");
    let rejected = timer.new_timeout_task(HOUR, Answer(answer)).err().unwrap();
    assert_eq!(rejected.reason, RejectReason::Stopped);
    assert!(answers.try_recv().is_err(), "the error is the answer");
}

// B97: shutdown walked the wheel to the end of time.
#[test]
fn stop_with_many_far_timeouts_takes_no_longer_for_how_far_they_are() {
    for wheel in WHEELS {
        let (timer, driver) = manual(wheel);
        let (dropped, mut random) = (Arc::new(()), Random(97));
        for id in 0..20_000 {
            let capture = dropped.clone();
            let delay = if id % 2 == 0 { Duration::MAX } else { Duration::from_nanos(random.next()) };
            accepted(timer.new_timeout(delay, move |_| drop(capture)));
        }
        let left = driver.stop();
        assert_eq!((left.len(), timer.stats().turns), (20_000, 0), "{wheel:?}");
        drop(left);
        assert_eq!((Arc::strong_count(&dropped), timer.pending_timeouts()), (1, 0));
    }
}

// B100: the first request's context was kept alive by the shared timer.
#[test]
fn nothing_of_the_first_caller_stays_with_the_worker() {
    let timer = Timer::new();
    let context = Arc::new(());
    let inner = context.clone();
    let first = accepted(timer.new_timeout(HOUR, move |_| drop(inner)));
    let (ran, received) = channel();
    accepted(timer.new_timeout(Duration::ZERO, move |_| ran.send(()).unwrap()));
    next(&received);
    assert!(first.cancel());
    assert_eq!(Arc::strong_count(&context), 1);
}

// B91: the worker's death went unnoticed; here nothing that a caller passes in ends it.
#[test]
fn whatever_panics_the_next_timeout_runs() {
    struct Everywhere(Arc<AtomicU32>);
    impl TimerTask for Everywhere {
        fn run(self, _: &Timeout) {
            panic_on_purpose();
        }
    }
    impl Drop for Everywhere {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
            if !std::thread::panicking() {
                panic_on_purpose();
            }
        }
    }
    let timer = Timer::new();
    let drops = Arc::new(AtomicU32::new(0));
    let ledger = Ledger::new();
    for _ in 0..10 {
        accepted(timer.new_timeout_task(Duration::ZERO, Everywhere(drops.clone())));
        let bomb = Everywhere(drops.clone());
        accepted(timer.new_timeout(Duration::ZERO, move |_| drop(bomb)));
        let (probe, _) = ledger.probe();
        accepted(timer.new_timeout_task(MILLI, probe));
    }
    ledger.wait();
    let stats = timer.stats();
    assert_eq!((drops.load(SeqCst), stats.task_panics, stats.expired), (20, 20, 30));
}
