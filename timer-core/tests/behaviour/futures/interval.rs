//! Intervals on virtual time.

use crate::support::wakers::*;
use crate::support::*;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use timer_core::{Interval, MissedRuns, RejectReason, Timer};

fn tick(ticks: &mut Interval, waker: &Waker) -> Poll<Result<Instant, RejectReason>> {
    ticks.poll_tick(&mut Context::from_waker(waker))
}

#[test]
fn the_first_tick_is_at_once() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let (bell, waker) = Bell::new();
    let mut ticks = timer.interval(SECOND);
    let start = timer.now();
    for nth in 0..10 {
        assert_eq!(tick(&mut ticks, &waker), Poll::Ready(Ok(start + nth * SECOND)));
        assert!(tick(&mut ticks, &waker).is_pending());
        driver.advance(SECOND);
        assert_eq!(bell.rung(), nth as usize + 1);
    }
    assert_eq!(accounts(&timer), (10, 0, 10, 0));
}

#[test]
fn a_start_can_be_chosen() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let start = timer.now() + 5 * SECOND;
    let mut ticks = timer.interval_at(start, SECOND);
    assert!(tick(&mut ticks, Waker::noop()).is_pending());
    driver.advance(5 * SECOND);
    assert_eq!(tick(&mut ticks, Waker::noop()), Poll::Ready(Ok(start)));
    assert_eq!(ticks.period(), SECOND);
}

#[test]
fn missed_ticks_follow_the_chosen_behavior() {
    for (missed, due) in [
        (MissedRuns::Skip, [0, 4000, 5000, 6000]),
        (MissedRuns::Burst, [0, 1000, 2000, 3000]),
        (MissedRuns::Delay, [0, 4500, 5500, 6500]),
    ] {
        let (timer, mut driver) = manual(WHEELS[0]);
        let start = timer.now();
        let mut ticks = timer.interval(SECOND).with_missed_runs(missed);
        driver.advance(3500 * MILLI);
        let mut ticks_seen = Vec::new();
        while ticks_seen.len() < 4 {
            match tick(&mut ticks, Waker::noop()) {
                Poll::Ready(at) => ticks_seen.push((at.unwrap() - start).as_millis()),
                Poll::Pending => {
                    driver.advance(driver.next_expiry().unwrap());
                }
            }
        }
        assert_eq!(ticks_seen, due, "{missed:?}");
    }
}

#[test]
fn resets_move_the_next_tick_and_the_phase() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let mut ticks = timer.interval(10 * SECOND);
    assert!(tick(&mut ticks, Waker::noop()).is_ready());
    let mut expect = |ticks: &mut Interval, after: Duration| {
        let due = timer.now() + after;
        if !after.is_zero() {
            assert!(tick(ticks, Waker::noop()).is_pending());
        }
        driver.advance(after);
        assert_eq!(tick(ticks, Waker::noop()), Poll::Ready(Ok(due)));
    };
    expect(&mut ticks, 10 * SECOND);
    ticks.reset_after(3 * SECOND);
    expect(&mut ticks, 3 * SECOND);
    expect(&mut ticks, 10 * SECOND);
    ticks.reset_immediately();
    expect(&mut ticks, Duration::ZERO);
    expect(&mut ticks, 10 * SECOND);
    ticks.reset_at(timer.now() + SECOND);
    expect(&mut ticks, SECOND);
    ticks.reset();
    expect(&mut ticks, 10 * SECOND);
}

#[test]
fn a_period_of_zero_is_rejected() {
    let (timer, _driver) = manual(WHEELS[0]);
    assert_eq!(tick(&mut timer.interval(Duration::ZERO), Waker::noop()), Poll::Ready(Err(RejectReason::ZeroPeriod)));
}

// Guards against B88, with the largest periods.
#[test]
fn any_period_is_valid() {
    let (timer, mut driver) = manual(WHEELS[0]);
    for period in [NANO, MILLI, YEAR, 600 * YEAR, Duration::MAX] {
        let mut ticks = timer.interval(period).with_missed_runs(MissedRuns::Delay);
        assert!(tick(&mut ticks, Waker::noop()).is_ready());
        assert!(tick(&mut ticks, Waker::noop()).is_pending(), "{period:?}");
    }
    driver.advance(MILLI);
}

#[test]
fn a_period_shorter_than_the_tick_loses_no_ticks() {
    const TICK: Duration = Duration::from_millis(25);
    let timer = Timer::builder().tick_duration(TICK).build().unwrap();
    futures::executor::block_on(async {
        let mut ticks = timer.interval(MILLI);
        let mut due = ticks.tick().await.unwrap();
        for _ in 0..50 {
            let lateness = due.elapsed();
            let next = ticks.tick().await.unwrap();
            // Only the machine can delay a poll by more than a tick of the wheel.
            assert!(next == due + MILLI || lateness >= TICK + MILLI, "{:?} after a delay of {lateness:?}", next - due);
            due = next;
        }
    });
}
