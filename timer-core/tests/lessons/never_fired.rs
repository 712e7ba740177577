//! What never ran, or far too late.

use crate::support::ledger::{End, Ledger, Maker};
use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::time::Duration;
use timer_core::{Timeout, Timer};

// B34, B38: a new earliest timeout did not interrupt the sleep for a far one.
#[test]
fn a_near_timeout_of_another_thread_interrupts_the_sleep_for_a_far_one() {
    for tick in [MILLI, 10 * MICRO] {
        let timer = Timer::builder().tick_duration(tick).build().unwrap();
        let (go, told) = channel::<Duration>();
        let (ran, received) = channel();
        let inner = timer.clone();
        let other = std::thread::spawn(move || {
            for delay in told {
                let ran = ran.clone();
                accepted(inner.new_timeout(delay, move |_| ran.send(()).unwrap()));
            }
        });
        for _ in 0..200 {
            let far = accepted(timer.new_timeout(HOUR, |_| {}));
            go.send(MILLI).unwrap();
            next(&received);
            assert!(far.cancel());
        }
        drop(go);
        other.join().unwrap();
    }
}

// B33: the next wake-up was written without a look at what was being inserted. The moments around the worker's going to
// sleep are hit by a delay that is as short as its turn is long.
#[test]
fn a_timeout_that_comes_while_the_worker_goes_to_sleep_is_not_slept_over() {
    let timer = Timer::builder().tick_duration(MICRO).build().unwrap();
    accepted(timer.new_timeout(HOUR, |_| {}));
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let timer = &timer;
            scope.spawn(move || {
                let mut random = Random(seed);
                let (ran, received) = channel();
                for _ in 0..1_500 {
                    let ran = ran.clone();
                    accepted(timer.new_timeout(random.duration(20 * MICRO), move |_| ran.send(()).unwrap()));
                    if random.below(2) == 0 {
                        spin(random.duration(30 * MICRO));
                    }
                    next(&received);
                }
            });
        }
    });
}

// B33, as a driver sees it: its loop sleeps until what it was told, or until it is called.
#[test]
fn a_loop_that_sleeps_as_its_driver_says_sleeps_over_nothing() {
    let (timer, mut driver) = Timer::builder().tick_duration(10 * MICRO).build_driven().unwrap();
    let (call, called) = channel::<()>();
    driver.set_waker(move || call.send(()).unwrap());
    let (ran, received) = channel();
    let caller = timer.clone();
    let other = std::thread::spawn(move || {
        let mut random = Random(33);
        for _ in 0..300 {
            let ran = ran.clone();
            accepted(caller.new_timeout(random.duration(200 * MICRO), move |_| ran.send(()).unwrap()));
            next(&received);
        }
        // Ends the loop below.
        accepted(caller.new_timeout(Duration::ZERO, |_| {}));
    });
    let mut expired = 0;
    while expired < 301 {
        let turn = driver.turn();
        expired += turn.expired;
        let pause = turn.next.map_or(LONG, |next| next.saturating_duration_since(std::time::Instant::now()));
        if expired < 301 && !pause.is_zero() {
            let woken = called.recv_timeout(pause);
            assert!(woken.is_ok() || pause < LONG, "slept for a minute with nobody calling");
        }
    }
    other.join().unwrap();
}

// B35: no delay in a loop hung, or took a tick each time.
#[test]
fn ten_thousand_timeouts_without_delay_run_one_after_the_other() {
    fn link(timer: &Timer, left: u32, done: std::sync::mpsc::Sender<()>) {
        let inner = timer.clone();
        let next = move |_: &Timeout| match left {
            0 => done.send(()).unwrap(),
            left => link(&inner, left - 1, done),
        };
        accepted(timer.new_timeout(Duration::ZERO, next));
    }
    // At a tick each this would take three hours.
    let timer = Timer::builder().tick_duration(SECOND).build().unwrap();
    let (done, ended) = channel();
    link(&timer, 10_000, done);
    next(&ended);
    for _ in 0..500 {
        let (ran, received) = channel();
        accepted(timer.new_timeout(Duration::ZERO, move |_| ran.send(()).unwrap()));
        next(&received);
    }
}

// B37: a timeout that was added to a bucket while it was being emptied was forgotten.
#[test]
fn what_is_added_to_the_bucket_that_is_being_emptied_runs_too() {
    for wheel in WHEELS {
        let (timer, mut driver) = manual(wheel);
        let runs = Runs::default();
        for id in 0..20 {
            let (inner, runs) = (timer.clone(), runs.clone());
            accepted(timer.new_timeout(SECOND, move |me| {
                note(&inner, Duration::ZERO, &runs, id);
                note(&inner, NANO, &runs, 100 + id);
                let again = runs.clone();
                accepted(inner.new_timeout_at(me.deadline(), move |_| again.lock().unwrap().push(200 + id)));
            }));
        }
        assert_eq!(driver.advance(SECOND), 60);
        assert_eq!(driver.advance(NANO), 20);
        let mut ran = taken(&runs);
        ran.sort_unstable();
        let all: Vec<u32> = [0, 100, 200].iter().flat_map(|from| *from..from + 20).collect();
        assert_eq!(ran, all, "{wheel:?}");
    }
}

// B40: the first timeout was moved to later and the wheel not told: it ran early, or with nothing to do.
#[test]
fn at_the_old_deadline_of_a_moved_timeout_nothing_happens() {
    for wheel in WHEELS {
        let (timer, mut driver) = manual(wheel);
        let runs = Runs::default();
        let moved = note(&timer, SECOND, &runs, 1);
        assert!(moved.reset(3 * SECOND));
        note(&timer, 2 * SECOND, &runs, 2);
        assert_eq!(driver.advance(SECOND), 0);
        assert!(!moved.is_expired() && timer.pending_timeouts() == 2);
        assert_eq!(driver.advance(SECOND), 1);
        assert_eq!(driver.advance(SECOND), 1);
        assert_eq!(taken(&runs), [2, 1], "{wheel:?}");
    }
}

/// Schedules without a pause until it is refused.
fn schedule_until_stopped(timer: &Timer, ledger: &Maker, rejected: &AtomicU64, seed: u64) -> Vec<Arc<End>> {
    let mut random = Random(seed);
    let mut ends = Vec::new();
    loop {
        let (probe, end) = ledger.probe();
        match timer.new_timeout_task(random.duration(500 * MICRO), probe) {
            Ok(timeout) => {
                if random.below(16) == 0 {
                    timeout.cancel();
                }
                ends.push(end);
            }
            Err(_) => {
                rejected.fetch_add(1, SeqCst);
                assert_eq!(end.counts(), (0, 0));
                return ends;
            }
        }
    }
}

// B41 (66 of 16 million accepted timeouts were lost): scheduling that races `stop`.
#[test]
fn what_is_accepted_while_the_timer_stops_is_run_cancelled_or_handed_back() {
    for round in 0..150 {
        let wheel = WHEELS[round as usize % WHEELS.len()];
        let timer = Timer::builder().wheel(wheel).tick_duration(20 * MICRO).build().unwrap();
        let (ledger, rejected) = (Ledger::new(), AtomicU64::new(0));
        let (ends, handed_back): (Vec<Arc<End>>, usize) = std::thread::scope(|scope| {
            let (timer, rejected) = (&timer, &rejected);
            let callers: Vec<_> = (0..3)
                .map(|caller| (ledger.maker(), round * 3 + caller))
                .map(|(maker, seed)| scope.spawn(move || schedule_until_stopped(timer, &maker, rejected, seed)))
                .collect();
            spin(Random(round).duration(2 * MILLI));
            let left = timer.stop().unwrap();
            assert!(left.iter().all(|left| left.timeout().is_cancelled()));
            let handed_back = left.len();
            drop(left);
            (callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect(), handed_back)
        });
        ledger.wait();
        let (ran, told) = ends.iter().map(|end| end.counts()).fold((0, 0), |sum, end| (sum.0 + end.0, sum.1 + end.1));
        assert!(ends.iter().all(|end| end.counts().0 + end.counts().1 == 1));
        let stats = timer.stats();
        assert_eq!((stats.pending, stats.scheduled, stats.rejected), (0, ends.len() as u64, 3), "round {round}");
        assert_eq!((stats.expired, stats.cancelled), (u64::from(ran), u64::from(told)), "round {round}");
        assert!(handed_back as u64 <= stats.cancelled);
    }
}

// B43: the driver did not get its turn while the loop stayed busy.
#[test]
fn a_task_that_is_due_again_and_again_keeps_nobody_else_from_running() {
    fn always(timer: &Timer) {
        let inner = timer.clone();
        let _ = timer.new_timeout(Duration::ZERO, move |_| always(&inner));
    }
    let (timer, mut driver) = Timer::builder().build_driven().unwrap();
    always(&timer);
    let timeout = accepted(timer.new_timeout(2 * MILLI, |_| {}));
    while !timeout.is_expired() {
        let turn = driver.turn();
        assert!((1..=2).contains(&turn.expired), "a turn has an end");
        assert!(turn.next.is_some());
    }
}

// B49: timeouts came late and nothing showed it.
#[test]
fn lateness_shows_in_the_lags() {
    let (timer, mut driver) = Timer::builder().tick_duration(100 * MICRO).build_driven().unwrap();
    accepted(timer.new_timeout(MILLI, |_| {}));
    accepted(timer.new_timeout(MILLI, |_| {}));
    spin(6 * MILLI);
    assert_eq!(driver.turn().expired, 2);
    let stats = timer.stats();
    assert_eq!((stats.tick_lag.count(), stats.timeout_lag.count()), (1, 2));
    for lag in [stats.tick_lag, stats.timeout_lag] {
        assert!(lag.max() >= 4 * MILLI && lag.quantile(0.5) >= 4 * MILLI && lag.mean() >= 4 * MILLI, "{lag:?}");
    }
}
