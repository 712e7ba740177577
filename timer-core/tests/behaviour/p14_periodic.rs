//! Promise 14. A periodic task keeps one handle, and its runs never overlap. `cancel` works before,
//! between and during runs. Missed runs of a fixed rate are skipped and the phase is kept. A burst
//! is optional.

use crate::support::executors::{KeepingExecutor, good_executors};
use crate::support::*;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use timer_core::{MissedTickBehavior, Timeout, Timer};

/// The deadlines of the runs, counted from the start of the test.
type Times = Arc<Mutex<Vec<Duration>>>;

/// Returns a periodic task that records the deadline of each run, counted from `from`.
fn recording(times: &Times, from: Instant) -> impl FnMut(&Timeout) + Send + 'static {
    let times = times.clone();
    move |me| times.lock().unwrap().push(me.deadline() - from)
}

#[test]
fn a_rate_and_a_delay_go_on_with_one_handle() {
    for wheel in WHEELS {
        let (timer, mut driver) = manual(wheel);
        let (rates, delays) = (Times::default(), Times::default());
        let rate = accepted(timer.schedule_at_fixed_rate(2 * SECOND, 3 * SECOND, recording(&rates, driver.now())));
        let delay = accepted(timer.schedule_with_fixed_delay(SECOND, 4 * SECOND, recording(&delays, driver.now())));
        assert_eq!(driver.advance(12 * SECOND), 4 + 3);
        assert_eq!(*rates.lock().unwrap(), [2, 5, 8, 11].map(Duration::from_secs));
        assert_eq!(*delays.lock().unwrap(), [1, 5, 9].map(Duration::from_secs));
        assert_eq!(rate.deadline() - driver.now(), 2 * SECOND, "the deadline of the next run");
        assert!(rate.cancel() && delay.cancel());
        assert_eq!((driver.advance(HOUR), driver.next_expiry()), (0, None));
    }
}

/// Prime periods in milliseconds, each with the milliseconds by which the test delays the end of
/// each run.
const LATE: [(u32, u32); 5] = [(2, 1), (3, 10), (7, 7), (13, 100), (31, 30)];

// Guards against B62, in which the next time of an interval was wrong after missed runs.
#[test]
fn missed_runs_are_skipped_and_the_phase_is_kept() {
    for (period, late) in LATE {
        let pool = KeepingExecutor::default();
        let (timer, mut driver) = Timer::builder().executor(pool.clone()).build_manual().unwrap();
        let (period, late) = (period * MILLI, late * MILLI);
        let times = Times::default();
        let begun = driver.now();
        accepted(timer.schedule_at_fixed_rate(Duration::ZERO, period, recording(&times, begun)));
        let mut due = Duration::ZERO;
        for _ in 0..20 {
            let wait = due.saturating_sub(driver.elapsed());
            assert_eq!(driver.advance(wait), 1, "period {period:?}, {late:?} late");
            assert_eq!(driver.advance(late), 0, "the run before has not ended");
            assert_eq!(pool.run(), 1);
            assert_eq!(times.lock().unwrap().pop(), Some(due));
            let periods = late.as_nanos() / period.as_nanos() + 1;
            due += period * periods as u32;
        }
    }
}

#[test]
fn a_burst_makes_up_for_missed_runs() {
    let pool = KeepingExecutor::default();
    let builder = Timer::builder().missed_runs(MissedTickBehavior::Burst).executor(pool.clone());
    let (timer, mut driver) = builder.build_manual().unwrap();
    let times = Times::default();
    accepted(timer.schedule_at_fixed_rate(SECOND, SECOND, recording(&times, driver.now())));
    assert_eq!(driver.advance(5 * SECOND), 1);
    for _ in 0..4 {
        assert_eq!(pool.run(), 1);
        assert_eq!(driver.advance(Duration::ZERO), 1, "the next run is already due");
    }
    pool.run();
    assert_eq!(driver.advance(Duration::ZERO), 0, "all missed runs are made up for");
    assert_eq!(*times.lock().unwrap(), [1, 2, 3, 4, 5].map(Duration::from_secs));
}

#[test]
fn a_fixed_delay_counts_from_the_end_of_the_run() {
    let pool = KeepingExecutor::default();
    let (timer, mut driver) = Timer::builder().executor(pool.clone()).build_manual().unwrap();
    let times = Times::default();
    accepted(timer.schedule_with_fixed_delay(SECOND, SECOND, recording(&times, driver.now())));
    for _ in 0..3 {
        assert_eq!(driver.advance(SECOND), 1);
        assert_eq!(driver.advance(5 * SECOND), 0);
        pool.run();
    }
    assert_eq!(*times.lock().unwrap(), [1, 7, 13].map(Duration::from_secs));
}

#[test]
fn runs_never_overlap_on_any_executor() {
    for (what, executor) in good_executors() {
        let timer = Timer::builder().tick_duration(10 * MICRO).executor(executor).build().unwrap();
        let busy = Arc::new(AtomicBool::new(false));
        let (ran, received) = channel();
        let task = move |_: &Timeout| {
            let overlap = busy.swap(true, SeqCst);
            spin(50 * MICRO);
            busy.store(false, SeqCst);
            let _ = ran.send(overlap);
        };
        let rate = accepted(timer.schedule_at_fixed_rate(Duration::ZERO, 10 * MICRO, task));
        for _ in 0..100 {
            assert!(!next(&received), "{what}");
            // A timeout that is moved to now during its run still waits for the end of that run.
            rate.reset(Duration::ZERO);
        }
        assert!(rate.cancel());
    }
}

// Guards against B59, in which a cancel during the run was lost.
#[test]
fn cancel_works_before_between_and_during_runs() {
    for wheel in WHEELS {
        let (timer, mut driver) = manual(wheel);
        let runs = Runs::default();
        let task = |id| {
            let runs = runs.clone();
            move |_: &Timeout| runs.lock().unwrap().push(id)
        };
        let before = accepted(timer.schedule_at_fixed_rate(SECOND, SECOND, task(1)));
        assert!(before.cancel());
        let between = accepted(timer.schedule_with_fixed_delay(SECOND, SECOND, task(2)));
        driver.advance(2 * SECOND);
        assert!(between.cancel());
        let during = runs.clone();
        let inside = accepted(timer.schedule_at_fixed_rate(SECOND, SECOND, move |me| {
            during.lock().unwrap().push(3);
            assert!(me.cancel() && !me.cancel());
        }));
        driver.advance(HOUR);
        assert_eq!(take_runs(&runs), [2, 2, 3], "{wheel:?}");
        for ended in [before, between, inside] {
            assert!(ended.is_cancelled() && !ended.cancel() && !ended.reset(SECOND));
        }
        assert_eq!(timer.pending_timeouts(), 0);
    }
}

#[test]
fn cancel_during_a_run_makes_it_the_last() {
    for (what, executor) in good_executors() {
        let timer = Timer::builder().executor(executor).build().unwrap();
        let runs = Arc::new(AtomicU32::new(0));
        let (begun, inside) = channel();
        let (release, released) = channel();
        let counted = runs.clone();
        let rate = accepted(timer.schedule_at_fixed_rate(Duration::ZERO, 10 * MICRO, move |me| {
            counted.fetch_add(1, SeqCst);
            begun.send(()).unwrap();
            next(&released);
            assert!(me.is_cancelled());
        }));
        next(&inside);
        assert!(rate.cancel() && !rate.cancel());
        assert_eq!(timer.pending_timeouts(), 0, "{what}");
        release.send(()).unwrap();
        all_gone(&inside);
        assert_eq!((runs.load(SeqCst), timer.stats().runs), (1, 1), "{what}");
    }
}

#[test]
fn a_rate_counts_from_a_reset_on() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let times = Times::default();
    let begun = driver.now();
    let rate = accepted(timer.schedule_at_fixed_rate(10 * SECOND, 10 * SECOND, recording(&times, begun)));
    driver.advance(12 * SECOND);
    assert!(rate.reset(SECOND));
    driver.advance(12 * SECOND);
    assert!(rate.reset(30 * SECOND));
    driver.advance(40 * SECOND);
    assert_eq!(*times.lock().unwrap(), [10, 13, 23, 54, 64].map(Duration::from_secs));
}

#[test]
fn a_reset_during_a_run_sets_the_next_run() {
    for fixed_rate in [true, false] {
        let (timer, mut driver) = manual(WHEELS[0]);
        let times = Times::default();
        let mut record = recording(&times, driver.now());
        let task = move |me: &Timeout| {
            record(me);
            assert!(me.reset(5 * SECOND));
        };
        if fixed_rate {
            accepted(timer.schedule_at_fixed_rate(SECOND, SECOND, task));
        } else {
            accepted(timer.schedule_with_fixed_delay(SECOND, SECOND, task));
        }
        driver.advance(12 * SECOND);
        assert_eq!(*times.lock().unwrap(), [1, 6, 11].map(Duration::from_secs));
    }
}

#[test]
fn stop_hands_back_between_and_cancels_during_runs() {
    let (timer, driver) = manual(WHEELS[0]);
    let runs = Runs::default();
    let recorded = runs.clone();
    accepted(timer.schedule_at_fixed_rate(SECOND, SECOND, move |_| recorded.lock().unwrap().push(1)));
    let left = driver.stop();
    assert_eq!(left.len(), 1);
    left.into_iter().for_each(|left| left.run());
    assert_eq!((take_runs(&runs), timer.pending_timeouts()), (vec![1], 0), "runs once, by its `Unprocessed`");

    let timer = Timer::builder().executor(timer_executor::ThreadPoolExecutor::new(1)).build().unwrap();
    let (begun, inside) = channel();
    let (release, released) = channel();
    let rate = accepted(timer.schedule_at_fixed_rate(Duration::ZERO, MILLI, move |_| {
        begun.send(()).unwrap();
        next(&released);
    }));
    next(&inside);
    assert_eq!(timer.stop().unwrap().len(), 0);
    release.send(()).unwrap();
    all_gone(&inside);
    while timer.pending_timeouts() > 0 {
        watch_for(MILLI);
    }
    assert!(rate.is_cancelled());
}
