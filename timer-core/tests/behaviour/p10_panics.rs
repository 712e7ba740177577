//! Promise 10. A panic of a task is caught, counted and traced. The worker, the pool and the other
//! tasks of the tick go on. A periodic task that panics does not run again.

use crate::support::executors::good_executors;
use crate::support::ledger::Ledger;
use crate::support::panics::{BadHook, Bomb, panic_on_purpose};
use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::time::Duration;
use timer_core::{Timeout, Timer, TimerTask};
use tracing::Level;

// Guards against B90, in which one throwing task ended the timer.
#[test]
fn a_panic_ends_neither_the_tick_nor_the_timer() {
    for (what, executor) in good_executors() {
        let timer = Timer::builder().executor(executor).build().unwrap();
        let (ran, received) = channel();
        for round in 0..3 {
            for id in 0..9 {
                let ran = ran.clone();
                let task = move |_: &Timeout| {
                    if id % 3 == 1 {
                        panic_on_purpose();
                    }
                    ran.send(id).unwrap();
                };
                accepted(timer.new_timeout(MILLI, task));
            }
            let mut ids: Vec<i32> = (0..6).map(|_| next(&received)).collect();
            ids.sort_unstable();
            assert_eq!(ids, [0, 2, 3, 5, 6, 8], "{what}, round {round}");
        }
        drop(ran);
        all_gone(&received);
        drop(timer.stop().unwrap());
        // A pool may still be busy with the last one, whose capture is dropped before the panic is
        // counted.
        while timer.stats().task_panics < 9 {
            watch_for(MILLI);
        }
        let stats = timer.stats();
        assert_eq!((stats.task_panics, stats.expired, stats.pending), (9, 27, 0), "{what}");
    }
}

#[test]
fn a_panic_is_traced_with_the_timers_name() {
    let complaints = log::complaints("panics-traced");
    let timer = named("panics-traced");
    let timeout = accepted(timer.new_timeout(Duration::ZERO, |_| panic_on_purpose()));
    let event = next(&complaints);
    assert_eq!((event.level, event.timer.as_str()), (Level::ERROR, "panics-traced"));
    assert!(event.fields.contains("on purpose"), "{event:?}");
    assert!(timeout.is_expired() && !timeout.cancel());
}

#[test]
fn captures_that_panic_with_their_task_do_no_harm() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let captured = Arc::new(());
    let (first, runs) = (captured.clone(), Runs::default());
    let panics = move |_: &Timeout| {
        let _first = &first;
        panic_on_purpose()
    };
    accepted(timer.new_timeout(SECOND, panics));
    accepted(timer.new_timeout(SECOND, |_| drop(Bomb)));
    let bomb = Bomb;
    accepted(timer.new_timeout(SECOND, move |_| drop(bomb)));
    accepted(timer.new_timeout(SECOND, |_| std::panic::panic_any(Payload)));
    record(&timer, SECOND, &runs, 1);
    assert_eq!(driver.advance(SECOND), 5);
    assert_eq!((take_runs(&runs), Arc::strong_count(&captured), timer.stats().task_panics), (vec![1], 1, 4));
}

/// A payload that panics when it is dropped.
struct Payload;

impl Drop for Payload {
    fn drop(&mut self) {
        panic_on_purpose();
    }
}

#[test]
fn a_panicking_rate_ends_and_reads_as_expired() {
    for (what, executor) in good_executors() {
        let timer = Timer::builder().tick_duration(100 * MICRO).executor(executor).build().unwrap();
        let (ran, received) = channel();
        let mut run = 0;
        let task = move |_: &Timeout| {
            run += 1;
            ran.send(run).unwrap();
            if run == 3 {
                panic_on_purpose();
            }
        };
        let rate = accepted(timer.schedule_at_fixed_rate(Duration::ZERO, 200 * MICRO, task));
        assert_eq!([(); 3].map(|()| next(&received)), [1, 2, 3], "{what}");
        all_gone(&received);
        while timer.pending_timeouts() > 0 || timer.stats().task_panics < 1 {
            watch_for(MILLI);
        }
        assert!(rate.is_expired() && !rate.cancel() && !rate.reset(Duration::ZERO), "{what}");
        let stats = timer.stats();
        assert_eq!((stats.runs, stats.task_panics, stats.expired), (3, 1, 1), "{what}");
    }
}

#[test]
fn a_cancel_in_a_run_that_panics_ends_it_once() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let rate = accepted(timer.schedule_at_fixed_rate(SECOND, SECOND, |me| {
        assert!(me.cancel());
        panic_on_purpose();
    }));
    assert_eq!(driver.advance(HOUR), 1);
    assert!(rate.is_cancelled() && !rate.is_expired());
    let stats = timer.stats();
    assert_eq!((stats.pending, stats.cancelled, stats.expired, stats.task_panics), (0, 1, 0, 1));
}

#[test]
fn a_panic_in_a_hook_goes_to_the_canceller() {
    let (timer, driver) = manual(WHEELS[0]);
    let timeout = accepted(timer.new_timeout_task(SECOND, BadHook));
    let cancelled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| timeout.cancel()));
    assert!(cancelled.is_err() && timeout.is_cancelled() && !timeout.cancel());
    assert_eq!((timer.pending_timeouts(), timer.stats().task_panics), (0, 0));
    accepted(timer.new_timeout_task(SECOND, BadHook));
    let bomb = Bomb;
    accepted(timer.new_timeout(SECOND, move |_| drop(bomb)));
    drop(driver.stop());
    assert_eq!((timer.pending_timeouts(), timer.stats().task_panics), (0, 2));
}

// Guards against B91, in which an unforeseen panic ended the worker, and the timer still accepted
// timeouts.
#[test]
fn a_panicking_subscriber_does_not_end_the_worker() {
    log::listen("panics-in-log", |_| panic_on_purpose());
    let timer = Timer::builder().name("panics-in-log").shards(1).build().unwrap();
    let (ran, received) = channel();
    for _ in 0..3 {
        let ran = ran.clone();
        accepted(timer.new_timeout(Duration::ZERO, |_| panic_on_purpose()));
        accepted(timer.new_timeout(Duration::ZERO, move |_| ran.send(()).unwrap()));
        next(&received);
    }
    assert_eq!(timer.stop().unwrap().len(), 0);
    assert_eq!(timer.stats().task_panics, 3);
    log::forget("panics-in-log");
}

// Guards against B90, with a throwing task in the middle of a tick.
#[test]
fn the_tick_goes_on_after_a_panic_in_any_place() {
    for wheel in WHEELS {
        for place in [0, 4, 9] {
            let (timer, mut driver) = manual(wheel);
            let runs = Runs::default();
            for id in 0..10 {
                if id == place {
                    accepted(timer.new_timeout(SECOND, |_| panic_on_purpose()));
                } else {
                    record(&timer, SECOND, &runs, id);
                }
            }
            assert_eq!(driver.advance(SECOND), 10);
            assert_eq!(take_runs(&runs), (0..10).filter(|id| *id != place).collect::<Vec<_>>(), "{wheel:?}");
            let stats = timer.stats();
            assert_eq!((stats.expired, stats.task_panics, stats.pending), (10, 1, 0));
        }
    }
}

// Guards against B91. No panic of a caller's code ends the worker.
#[test]
fn the_next_timeout_runs_whatever_panics() {
    struct PanicsEverywhere(Arc<AtomicU32>);
    impl TimerTask for PanicsEverywhere {
        fn run(self, _: &Timeout) {
            panic_on_purpose();
        }
    }
    impl Drop for PanicsEverywhere {
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
        accepted(timer.new_timeout_task(Duration::ZERO, PanicsEverywhere(drops.clone())));
        let bomb = PanicsEverywhere(drops.clone());
        accepted(timer.new_timeout(Duration::ZERO, move |_| drop(bomb)));
        let (probe, _) = ledger.probe();
        accepted(timer.new_timeout_task(MILLI, probe));
    }
    ledger.wait();
    // The probes may be in another shard than the last of the others.
    wait_until(|| (drops.load(SeqCst), timer.stats().task_panics) == (20, 20));
    assert_eq!(timer.stats().expired, 30);
}
