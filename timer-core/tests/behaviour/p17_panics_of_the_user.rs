//! Promise 17. A panic of user code harms at most its own timeout. This covers the wakers of
//! drivers, hooks, and the `Drop` of captures. Promise 10 covers tasks, and `stress` tasks on many
//! threads.

use crate::support::executors::good_executors;
use crate::support::ledger::Ledger;
use crate::support::panics::{Bomb, panic_on_purpose};
use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use timer_core::{Driver, RejectReason, Timeout, Timer, TimerTask};
use timer_executor::{Task, ThreadPoolExecutor};

/// Returns a timer whose driver's waker panics at each call, and the number of calls.
fn with_a_waker_that_panics() -> (Timer, Driver, Arc<AtomicUsize>) {
    let (timer, mut driver) = Timer::builder().build_driven().unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    driver.on_wake(move || {
        counted.fetch_add(1, SeqCst);
        panic_on_purpose();
    });
    driver.turn();
    (timer, driver, calls)
}

// The timeout is accepted, so the call must not panic.
#[test]
fn a_waker_that_panics_fails_no_new_timeout() {
    let (timer, mut driver, calls) = with_a_waker_that_panics();
    let first = accepted(timer.new_timeout(HOUR, |_| {}));
    assert_eq!((calls.load(SeqCst), timer.pending_timeouts()), (1, 1));
    driver.turn();
    let batch = timer.new_timeouts((0..100).map(|_| (MILLI, |_: &Timeout| {})));
    assert!(batch.iter().all(|one| one.is_ok()));
    assert_eq!((calls.load(SeqCst), timer.pending_timeouts()), (2, 101));
    driver.turn();
    assert!(first.reset(Duration::ZERO), "moved to now");
    driver.turn();
    assert!(first.is_expired());
    assert!(calls.load(SeqCst) >= 3);
    let begun = Instant::now();
    while timer.pending_timeouts() > 0 && begun.elapsed() < MAX_WAIT {
        driver.turn();
    }
    let stats = timer.stats();
    assert_eq!((stats.expired, stats.task_panics), (101, 0), "the waker's panics do not count as a task's");
}

// The hook of the cancelled timeout must still run.
#[test]
fn a_waker_that_panics_fails_no_cancel() {
    let (timer, mut driver, calls) = with_a_waker_that_panics();
    let ledger = Ledger::new();
    for _ in 0..10 {
        driver.turn();
        let (probe, end) = ledger.probe();
        let timeout = accepted(timer.new_timeout_task(HOUR, probe));
        assert!(timeout.reset(HOUR / 2) && timeout.expire_now() && timeout.cancel());
        assert_eq!(end.counts(), (0, 1));
    }
    assert!(calls.load(SeqCst) > 0);
    assert_eq!((timer.stats().cancelled, timer.pending_timeouts()), (10, 0));
}

// `stop` must hand back every timeout, or call its hook, and leave none pending.
#[test]
fn a_waker_that_panics_loses_nothing_in_stop() {
    for dropped in [false, true] {
        let (timer, mut driver, calls) = with_a_waker_that_panics();
        let ledger = Ledger::new();
        let ends: Vec<_> = (1..=10)
            .map(|id| {
                let (probe, end) = ledger.probe();
                accepted(timer.new_timeout_task(id * HOUR, probe));
                end
            })
            .collect();
        driver.turn();
        let before = calls.load(SeqCst);
        if dropped {
            drop(driver);
        } else {
            assert_eq!(driver.stop().len(), 10);
            assert!(calls.load(SeqCst) > before, "stop wakes the driver's loop");
        }
        ledger.wait();
        assert!(ends.iter().all(|end| end.counts() == (0, 1)));
        assert_eq!((timer.stats().cancelled, timer.pending_timeouts()), (10, 0));
    }
}

// Without its driver the timer must reject calls, because nothing would run any more.
#[test]
fn a_timer_stops_although_its_wakers_captures_panic() {
    for stop in [false, true] {
        let (timer, mut driver) = Timer::builder().build_driven().unwrap();
        let bomb = Bomb;
        driver.on_wake(move || _ = &bomb);
        let waiting = accepted(timer.new_timeout(HOUR, |_| {}));
        driver.turn();
        if stop {
            assert_eq!(driver.stop().len(), 1);
        } else {
            drop(driver);
        }
        assert!(waiting.is_cancelled());
        assert_eq!(timer.new_timeout(HOUR, |_| {}).unwrap_err().reason, RejectReason::Stopped);
        assert_eq!(timer.pending_timeouts(), 0);
    }
}

#[test]
fn a_waker_with_panicking_captures_may_be_replaced() {
    let (timer, mut driver) = Timer::builder().build_driven().unwrap();
    let bomb = Bomb;
    driver.on_wake(move || _ = &bomb);
    let (call, calls) = channel();
    driver.on_wake(move || call.send(()).unwrap());
    driver.turn();
    accepted(timer.new_timeout(HOUR, |_| {}));
    assert_eq!(calls.try_iter().count(), 1);
}

#[test]
fn an_executor_and_a_hook_that_panic_when_dropped_harm_no_thread() {
    let executors = Bomb;
    let hooks = Bomb;
    let executor = move |task: Task| {
        let _bomb = &executors;
        task.run();
    };
    let timer = Timer::builder().executor(executor).on_worker_start(move || _ = &hooks).build().unwrap();
    accepted(timer.new_timeout(HOUR, |_| {}));
    assert_eq!(timer.stop().unwrap().len(), 1);
    drop(timer);
}

// Related to citadel-foss/mill-io#86. The run drops the captures, because the canceller cannot.
#[test]
fn captures_that_panic_after_a_cancel_are_contained() {
    for (what, executor) in good_executors() {
        let timer = Timer::builder().executor(executor).build().unwrap();
        let (alive, gone) = channel::<()>();
        // The later field of the tuple is dropped after the bomb.
        let captured = (Bomb, alive);
        let rate = accepted(timer.schedule_at_fixed_rate(Duration::ZERO, 10 * MICRO, move |me| {
            let _captured = &captured;
            assert!(me.cancel());
        }));
        all_gone(&gone);
        let begun = Instant::now();
        while timer.stats().task_panics == 0 && begun.elapsed() < MAX_WAIT {
            watch_for(MILLI);
        }
        assert_eq!(rate.cancel_and_wait(), Ok(false), "{what}: the run has ended");
        let stats = timer.stats();
        assert_eq!((stats.pending, stats.cancelled, stats.expired, stats.task_panics), (0, 1, 0, 1), "{what}");
        let (ran, received) = channel();
        accepted(timer.new_timeout(Duration::ZERO, move |_| ran.send(()).unwrap()));
        next(&received);
        assert_eq!(timer.stop_and_wait(MAX_WAIT).unwrap().in_flight, 0, "{what}: no task counts as running");
    }
}

#[test]
fn panics_of_captures_in_cancel_reach_the_canceller() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let bomb = Bomb;
    let rate = accepted(timer.schedule_at_fixed_rate(SECOND, SECOND, move |_| _ = &bomb));
    assert_eq!(driver.advance(2 * SECOND), 2);
    let bomb = Bomb;
    let once = accepted(timer.new_timeout(SECOND, move |_| drop(bomb)));
    for (cancelled, timeout) in [(1, rate), (2, once)] {
        assert!(std::panic::catch_unwind(|| timeout.cancel()).is_err());
        let stats = timer.stats();
        assert_eq!((stats.pending, stats.cancelled, stats.task_panics), (2 - cancelled, cancelled, 0));
    }
    assert_eq!(driver.advance(HOUR), 0);
}

#[test]
fn panics_of_captures_handed_back_are_counted() {
    let (timer, driver) = manual(WHEELS[0]);
    for _ in 0..3 {
        let bomb = Bomb;
        accepted(timer.new_timeout(SECOND, move |_| drop(bomb)));
    }
    drop(driver);
    let stats = timer.stats();
    assert_eq!((stats.pending, stats.cancelled, stats.task_panics), (0, 3, 3));
}

/// A task whose name cannot be had.
struct Nameless;

impl TimerTask for Nameless {
    fn run(self, _: &Timeout) {}

    fn name() -> &'static str {
        panic_on_purpose()
    }
}

// The worker or the thread of the executor asks for the name, because the run is late.
#[test]
fn a_name_that_panics_harms_nobody() {
    let builders = [Timer::builder(), Timer::builder().executor(ThreadPoolExecutor::new(1))];
    for timer in builders.map(|builder| builder.build().unwrap()) {
        let (release, released) = channel::<()>();
        accepted(timer.new_timeout(Duration::ZERO, move |_| _ = released.recv()));
        wait_until(|| timer.stats().running == 1);
        accepted(timer.new_timeout_task(Duration::ZERO, Nameless));
        watch_for(5 * MILLI);
        drop(release);
        wait_until(|| timer.worst().iter().any(|run| run.task.ends_with("Nameless")));
        let after = accepted(timer.new_timeout(Duration::ZERO, |_| {}));
        wait_until(|| after.is_expired());
    }
}
