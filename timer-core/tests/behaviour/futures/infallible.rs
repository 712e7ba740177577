//! Futures that cannot be rejected, with each reason for a rejection, and the rules of tokio's
//! interval.

use crate::support::wakers::Bell;
use crate::support::*;
use std::future::pending;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use timer_core::global::{MissedTickBehavior, Sleep};
use timer_core::{InfallibleTimer, MissedRuns, Timer, infallible};

fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

fn is_shareable<T: Send + Sync + Unpin + 'static>() {}

#[test]
fn the_types_can_be_shared_and_moved() {
    is_shareable::<InfallibleTimer>();
    is_shareable::<Sleep>();
    is_shareable::<infallible::Interval>();
    is_shareable::<infallible::Timeout<Sleep>>();
}

#[test]
fn a_sleep_outlives_its_timer_and_is_not_early() {
    let timer = Timer::new();
    let sleep = timer.infallible().sleep(20 * MILLI);
    let deadline = sleep.deadline();
    drop(timer);
    futures::executor::block_on(sleep);
    assert!(Instant::now() >= deadline);
}

#[test]
fn a_waiting_sleep_survives_stop() {
    let timer = Timer::new();
    let mut sleep = timer.infallible().sleep(HOUR);
    let (bell, waker) = Bell::new();
    assert!(poll(&mut sleep, &waker).is_pending());
    timer.stop().unwrap();
    assert_eq!(bell.rung(), 1, "stop wakes the sleep, so that it can move to the global timer");
    assert!(poll(&mut sleep, &waker).is_pending());
    sleep.reset_after(20 * MILLI);
    let deadline = sleep.deadline();
    futures::executor::block_on(&mut sleep);
    assert!(Instant::now() >= deadline && sleep.is_elapsed());
    sleep.reset_after(HOUR);
    assert!(poll(&mut sleep, &waker).is_pending(), "the sleep can be used again");
}

#[test]
fn the_bound_rejects_no_infallible_sleep() {
    let timer = Timer::builder().max_pending_timeouts(1).build().unwrap();
    let _first = accepted(timer.new_timeout(HOUR, |_| {}));
    let infallible = timer.infallible();
    futures::executor::block_on(infallible.sleep(2 * MILLI));
    assert!(futures::executor::block_on(infallible.timeout(2 * MILLI, pending::<()>())).is_err());
    assert_eq!(timer.pending_timeouts(), 1);
}

#[test]
fn a_rejected_sleep_on_virtual_time_stays_pending() {
    let (timer, driver) = manual(WHEELS[0]);
    let infallible = timer.infallible();
    let mut sleep = infallible.sleep(NANO);
    drop(driver.stop());
    for _ in 0..3 {
        assert!(poll(&mut sleep, Waker::noop()).is_pending());
    }
    assert!(poll(&mut infallible.sleep(SECOND), Waker::noop()).is_pending());
}

fn ticks_after(late: Duration, behavior: MissedTickBehavior) -> Vec<u128> {
    let (timer, mut driver) = manual(WHEELS[0]);
    let start = timer.now();
    let mut ticks = timer.infallible().interval(10 * MILLI);
    ticks.set_missed_tick_behavior(behavior);
    let mut ticks_seen = Vec::new();
    driver.advance(late);
    while ticks_seen.len() < 4 {
        match ticks.poll_tick(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(due) => ticks_seen.push((due - start).as_millis()),
            Poll::Pending => drop(driver.advance_to_next()),
        }
    }
    ticks_seen
}

#[test]
fn a_tick_late_by_five_ms_is_not_missed() {
    use MissedTickBehavior::{Burst, Delay, Skip};
    for behavior in [Burst, Delay, Skip] {
        assert_eq!(ticks_after(5 * MILLI, behavior), [0, 10, 20, 30], "{behavior:?}");
    }
    assert_eq!(ticks_after(6 * MILLI, Delay), [0, 16, 26, 36]);
    assert_eq!(ticks_after(6 * MILLI, Skip), [0, 10, 20, 30]);
    assert_eq!(ticks_after(25 * MILLI, Burst), [0, 10, 20, 30]);
    assert_eq!(ticks_after(25 * MILLI, Skip), [0, 30, 40, 50]);
    assert_eq!(ticks_after(20 * MILLI, Skip), [0, 30, 40, 50]);
}

#[test]
fn missed_tick_behaviors_convert_to_missed_runs() {
    for missed in [MissedRuns::Burst, MissedRuns::Delay, MissedRuns::Skip] {
        assert_eq!(MissedRuns::from(MissedTickBehavior::from(missed)), missed);
    }
    assert_eq!(MissedTickBehavior::default(), MissedTickBehavior::Burst);
}

#[test]
fn an_infallible_timer_keeps_its_timer_alive() {
    let timer = Timer::new();
    let (weak, infallible) = (timer.downgrade(), timer.infallible());
    drop(timer);
    assert!(weak.upgrade().is_some());
    let sleep = pin!(infallible.sleep(HOUR));
    drop(infallible);
    assert!(weak.upgrade().is_none(), "a future does not");
    assert!(!sleep.is_elapsed());
}
