//! Intervals on virtual time.

use crate::support::wakers::*;
use crate::support::*;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use timer_core::{Interval, MissedTickBehavior, Timer};

fn tick(ticks: &mut Interval, waker: &Waker) -> Poll<Instant> {
    ticks.poll_tick(&mut Context::from_waker(waker))
}

#[test]
fn the_first_tick_is_at_once() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let (bell, waker) = Bell::new();
    let mut ticks = timer.interval(SECOND);
    let start = timer.now();
    for nth in 0..10 {
        assert_eq!(tick(&mut ticks, &waker), Poll::Ready(start + nth * SECOND));
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
    assert_eq!(tick(&mut ticks, Waker::noop()), Poll::Ready(start));
    assert_eq!(ticks.period(), SECOND);
}

fn ticks_after(late: Duration, behavior: MissedTickBehavior) -> Vec<u128> {
    let (timer, mut driver) = manual(WHEELS[0]);
    let start = timer.now();
    let mut ticks = timer.interval(10 * MILLI);
    assert_eq!(ticks.missed_tick_behavior(), MissedTickBehavior::Burst);
    ticks.set_missed_tick_behavior(behavior);
    let mut ticks_seen = Vec::new();
    driver.advance(late);
    while ticks_seen.len() < 4 {
        match tick(&mut ticks, Waker::noop()) {
            Poll::Ready(due) => ticks_seen.push((due - start).as_millis()),
            Poll::Pending => drop(driver.advance_to_next()),
        }
    }
    ticks_seen
}

#[test]
fn missed_ticks_follow_the_chosen_behavior() {
    use MissedTickBehavior::{Burst, Delay, Skip};
    for behavior in [Burst, Delay, Skip] {
        assert_eq!(ticks_after(5 * MILLI, behavior), [0, 10, 20, 30], "{behavior:?} misses no tick that is 5 ms late");
    }
    assert_eq!(ticks_after(6 * MILLI, Delay), [0, 16, 26, 36]);
    assert_eq!(ticks_after(6 * MILLI, Skip), [0, 10, 20, 30]);
    assert_eq!(ticks_after(35 * MILLI, Delay), [0, 45, 55, 65]);
    assert_eq!(ticks_after(25 * MILLI, Burst), [0, 10, 20, 30]);
    assert_eq!(ticks_after(25 * MILLI, Skip), [0, 30, 40, 50]);
    assert_eq!(ticks_after(20 * MILLI, Skip), [0, 30, 40, 50]);
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
        assert_eq!(tick(ticks, Waker::noop()), Poll::Ready(due));
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

// Guards against tokio-rs/tokio#3551, with the largest periods.
#[test]
fn any_period_is_valid() {
    let (timer, mut driver) = manual(WHEELS[0]);
    assert_eq!(timer.interval(Duration::ZERO).period(), MILLI);
    for period in [Duration::ZERO, NANO, MILLI, YEAR, 600 * YEAR, Duration::MAX] {
        let mut ticks = timer.interval(period);
        assert!(tick(&mut ticks, Waker::noop()).is_ready());
        assert!(tick(&mut ticks, Waker::noop()).is_pending(), "{period:?}");
    }
    driver.advance(MILLI);
}

#[test]
fn a_period_shorter_than_the_tick_loses_no_ticks() {
    const TICK: Duration = Duration::from_millis(25);
    let timer = Timer::builder().tick_duration(TICK).build().unwrap();
    block_on(async {
        let mut ticks = timer.interval(MILLI);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut due = ticks.tick().await;
        for _ in 0..50 {
            let lateness = due.elapsed();
            let next = ticks.tick().await;
            // Only the machine can delay a poll by more than a tick of the wheel.
            assert!(next == due + MILLI || lateness >= TICK + MILLI, "{:?} after a delay of {lateness:?}", next - due);
            due = next;
        }
    });
}
