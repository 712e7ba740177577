//! Handles: waiting for a run, guards, expiring at will, slack, and many timeouts at once.

mod manual_waker;
mod many;

use crate::support::executors::good_executors;
use crate::support::panics::BadHook;
use crate::support::*;
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use timer_core::{DeadlockError, Timeout, Timer};

/// A value that takes its time to drop and records the end of the drop.
struct SlowDrop(Arc<AtomicBool>);

impl Drop for SlowDrop {
    fn drop(&mut self) {
        spin(2 * MILLI);
        self.0.store(true, SeqCst);
    }
}

#[test]
fn cancel_and_wait_outlasts_a_run_and_its_captures() {
    for (what, executor) in good_executors() {
        for periodic in [false, true] {
            let timer = Timer::builder().executor(executor.clone()).build().unwrap();
            let gone = Arc::new(AtomicBool::new(false));
            let (begun, inside) = channel();
            let (release, released) = channel();
            let captured = SlowDrop(gone.clone());
            let task = move |_: &Timeout| {
                let _captured = &captured;
                begun.send(()).unwrap();
                next(&released);
            };
            let timeout = if periodic {
                accepted(timer.schedule_at_fixed_rate(Duration::ZERO, MILLI, task))
            } else {
                accepted(timer.new_timeout(Duration::ZERO, move |me| task(me)))
            };
            next(&inside);
            std::thread::scope(|scope| {
                let waits = scope.spawn(|| {
                    let won = timeout.cancel_and_wait();
                    (won, gone.load(SeqCst))
                });
                // A task that is released before the cancel could run again and wait for another
                // release.
                if periodic {
                    wait_until(|| timeout.is_cancelled());
                }
                watch_for(5 * MILLI);
                assert!(!waits.is_finished(), "{what}: the run goes on");
                release.send(()).unwrap();
                assert_eq!(waits.join().unwrap(), (Ok(periodic), true), "{what}: the run and the drop have ended");
            });
            assert_eq!(timeout.cancel_and_wait(), Ok(false), "{what}: nothing to wait for");
        }
    }
}

#[test]
fn cancel_and_wait_in_its_own_run_would_deadlock() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let runs = Runs::default();
    let inner = runs.clone();
    let rate = accepted(timer.schedule_at_fixed_rate(SECOND, SECOND, move |me| {
        assert_eq!(me.cancel_and_wait(), Err(DeadlockError));
        // A task of another timer that runs within this one would deadlock too.
        let (other, mut driver) = manual(WHEELS[0]);
        let outer = me.clone();
        accepted(other.new_timeout(SECOND, move |own| {
            assert_eq!((own.cancel_and_wait(), outer.cancel_and_wait()), (Err(DeadlockError), Err(DeadlockError)));
        }));
        driver.advance(SECOND);
        assert_eq!(other.stats().task_panics, 0);
        inner.lock().unwrap().push(1);
    }));
    assert_eq!(driver.advance(2 * SECOND), 2, "the failed calls changed nothing");
    assert_eq!((take_runs(&runs).len(), timer.stats().task_panics), (2, 0));
    assert_eq!(rate.cancel_and_wait(), Ok(true), "the call works outside of the run");
}

#[test]
fn a_guard_cancels_and_contains_panics() {
    let (timer, mut driver) = manual(WHEELS[0]);
    {
        let guard = accepted(timer.new_timeout(SECOND, |_| {})).cancel_on_drop();
        assert!(guard.reset(2 * SECOND), "a guard dereferences to its timeout");
        assert_eq!(guard.remaining(), 2 * SECOND);
    }
    assert_eq!((timer.pending_timeouts(), timer.stats().cancelled), (0, 1));
    let disarmed = accepted(timer.new_timeout(SECOND, |_| {})).cancel_on_drop().disarm();
    drop(accepted(timer.new_timeout_task(SECOND, BadHook)).cancel_on_drop());
    assert_eq!((timer.pending_timeouts(), timer.stats().cancelled, timer.stats().task_panics), (1, 2, 1));
    assert_eq!(driver.advance(SECOND), 1);
    drop(disarmed.clone().cancel_on_drop());
    assert!(disarmed.is_expired());
}

#[test]
fn slack_gathers_a_thousand_heartbeats_into_few_turns() {
    for wheel in WHEELS {
        let (timer, mut driver) = manual(wheel);
        let schedule = |timer: &Timer| {
            let called = timer.now();
            let beat = accepted(timer.new_timeout_with_slack(30 * SECOND, SECOND, |_| {}));
            let after = beat.deadline() - called;
            assert!(after >= 30 * SECOND && after <= 31 * SECOND, "{after:?}");
            beat
        };
        for _ in 0..1_000 {
            schedule(&timer);
            driver.advance(30 * MILLI);
        }
        let before = timer.stats().turns;
        driver.advance(31 * SECOND);
        assert_eq!((timer.stats().expired, timer.pending_timeouts()), (1_000, 0));
        let turns = timer.stats().turns - before;
        assert!(turns <= 40, "{turns} turns in {wheel:?}");
        assert_eq!(timer.stats().timeout_lag.max(), Duration::ZERO, "the lag counts from the chosen deadline");
        let exact = schedule(&timer);
        assert!(exact.reset(SECOND));
        assert_eq!(exact.remaining(), SECOND, "a reset is exact");
    }
}

#[test]
fn slack_at_the_edges_is_within_its_range() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let accept = |delay, slack| accepted(timer.new_timeout_with_slack(delay, slack, |_| {}));
    assert_eq!(accept(SECOND, Duration::ZERO).remaining(), SECOND);
    assert_eq!(accept(Duration::ZERO, Duration::ZERO).remaining(), Duration::ZERO);
    assert!(accept(Duration::ZERO, MILLI).remaining() <= MILLI);
    assert!(accept(SECOND, NANO).remaining() <= SECOND + NANO);
    let never = [accept(Duration::MAX, SECOND), accept(SECOND, Duration::MAX), accept(Duration::MAX, Duration::MAX)];
    assert!(never[1].remaining() >= SECOND);
    assert_eq!(driver.advance(2 * SECOND), 4 + usize::from(never[1].is_expired()));
    assert!(!never[0].is_expired() && !never[2].is_expired());
}

#[test]
fn a_handle_is_one_pointer_and_compares_by_identity() {
    assert_eq!(size_of::<Timeout>(), size_of::<usize>());
    assert_eq!(size_of::<Option<Timeout>>(), size_of::<usize>());
    let (timer, mut driver) = manual(WHEELS[0]);
    let [one, other] = [(); 2].map(|()| accepted(timer.new_timeout(SECOND, |_| {})));
    assert!(one == one.clone() && one != other);
    let set: HashSet<Timeout> = [one.clone(), other.clone(), one.clone()].into_iter().collect();
    assert_eq!(set.len(), 2);
    let seen = Arc::new(Mutex::new(None));
    let inner = seen.clone();
    let own = accepted(timer.new_timeout(SECOND, move |me| *inner.lock().unwrap() = Some(me.clone())));
    driver.advance(SECOND);
    assert_eq!(seen.lock().unwrap().take().as_ref(), Some(&own));
    assert!(one == one.clone() && one != other, "handles compare the same way after the end");
}

#[test]
fn a_timeout_knows_its_timer_while_it_lives() {
    let timer = named("known");
    let timeout = accepted(timer.new_timeout(HOUR, |_| {}));
    let again = timeout.timer().unwrap();
    assert_eq!(again.name(), "known");
    drop(timer);
    assert_eq!((again.pending_timeouts(), timeout.timer().is_some()), (1, true), "the returned handle keeps the timer");
    drop(again);
    assert!(timeout.timer().is_none() && timeout.is_cancelled());
    assert_eq!(timeout.remaining(), Duration::ZERO);
    // The shard of the timeout serves another timer by now.
    let others: Vec<_> = (0..4).map(|_| named("another")).collect();
    others.iter().for_each(|other| drop(accepted(other.new_timeout(HOUR, |_| {}))));
    assert!(timeout.timer().is_none() && !timeout.reset(SECOND) && !timeout.expire_now() && !timeout.cancel());
    assert!(others.iter().all(|other| other.pending_timeouts() == 1));
}

/// A thread-local value that calls `cancel_and_wait` when its thread ends.
struct AtThreadEnd(Option<Timeout>);

impl Drop for AtThreadEnd {
    fn drop(&mut self) {
        if let Some(timeout) = self.0.take() {
            assert!(timeout.cancel_and_wait().unwrap());
        }
    }
}

thread_local! {
    static KEPT: RefCell<AtThreadEnd> = const { RefCell::new(AtThreadEnd(None)) };
}

#[test]
fn a_thread_that_ends_may_cancel_and_wait() {
    let (timer, _driver) = Timer::builder().build_manual().unwrap();
    let inside = timer.clone();
    std::thread::spawn(move || {
        KEPT.with_borrow_mut(|kept| kept.0 = Some(accepted(inside.new_timeout(MILLI, |_| {}))));
        let other = accepted(inside.new_timeout(MILLI, |_| {}));
        assert!(other.cancel_and_wait().unwrap());
    })
    .join()
    .unwrap();
    assert_eq!(timer.pending_timeouts(), 0);
}

#[test]
fn debug_shows_the_distance_to_the_deadline() {
    let (timer, mut driver) = Timer::builder().build_manual().unwrap();
    let timeout = timer.new_timeout(Duration::from_secs(30), |_| {}).unwrap();
    driver.advance(Duration::from_secs(10));
    assert_eq!(format!("{timeout:?}"), r#"Timeout { state: "pending", due: in 20s }"#);
    driver.advance(Duration::from_secs(25));
    assert_eq!(format!("{timeout:?}"), r#"Timeout { state: "expired", due: 5s ago }"#);
}
