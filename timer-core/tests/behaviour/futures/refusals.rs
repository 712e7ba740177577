//! Futures that their timer refuses, because it is stopped, gone or full. Each of them moves to the
//! timer of the process, unless its own timer is manual.

use crate::support::wakers::*;
use crate::support::*;
use std::future::{pending, ready};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use timer_core::{Sleep, Timer};

#[test]
fn stop_wakes_all_futures_and_hands_none_back() {
    let timer = Timer::new();
    let (bell, waker) = Bell::new();
    let mut sleeps: Vec<_> = (0..100).map(|nth| timer.sleep(HOUR * (nth + 1))).collect();
    assert!(sleeps.iter_mut().all(|sleep| poll(sleep, &waker).is_pending()));
    let task = timer.new_timeout(HOUR, |_| {}).unwrap();
    let left = timer.stop().unwrap();
    assert_eq!(left.iter().map(|left| left.timeout()).collect::<Vec<_>>(), [&task]);
    assert_eq!(bell.rung(), 100);
    assert!(poll(&mut sleeps[0], &waker).is_pending());
    drop(sleeps);
    drop(waker);
    assert_eq!(Arc::strong_count(&bell), 1);
    assert_eq!(accounts(&timer), (101, 0, 0, 101));
}

/// Waits for a sleep, which must not be early.
#[track_caller]
fn wait_for(sleep: &mut Sleep) {
    let deadline = sleep.deadline();
    block_on(&mut *sleep);
    assert!(Instant::now() >= deadline && sleep.is_elapsed(), "the sleep was early");
}

#[test]
fn futures_outlive_their_timer() {
    for end in [|timer: Timer| drop(timer.stop()), |timer: Timer| drop(timer)] {
        let (bell, waker) = Bell::new();
        let mut cx = Context::from_waker(&waker);
        let timer = Timer::new();
        let mut waiting = timer.sleep(HOUR);
        let mut unpolled = timer.sleep(20 * MILLI);
        let mut call = timer.timeout(HOUR, pending::<()>());
        let mut ticks = timer.interval(HOUR);
        assert!(poll(&mut waiting, &waker).is_pending() && poll(&mut call, &waker).is_pending());
        assert!(ticks.poll_tick(&mut cx).is_ready() && ticks.poll_tick(&mut cx).is_pending());
        end(timer);
        assert_eq!(bell.rung(), 3, "each waiting task is woken, so that its future can move");
        // Their shards may serve another timer by now.
        let others: Vec<_> = (0..8).map(|_| Timer::new()).collect();
        assert!(poll(&mut waiting, &waker).is_pending() && poll(&mut call, &waker).is_pending());
        assert!(ticks.poll_tick(&mut cx).is_pending());
        wait_for(&mut unpolled);
        waiting.reset_after(5 * MILLI);
        wait_for(&mut waiting);
        waiting.reset_after(HOUR);
        assert!(poll(&mut waiting, &waker).is_pending(), "the sleep can be used again");
        assert!(others.iter().all(|other| accounts(other) == (0, 0, 0, 0)));
    }
}

#[test]
fn a_future_keeps_no_timer_alive() {
    let timer = Timer::new();
    let mut sleep = timer.sleep(HOUR);
    assert!(poll(&mut sleep, Waker::noop()).is_pending());
    let weak = timer.downgrade();
    drop(timer);
    assert!(weak.upgrade().is_none());
}

#[test]
fn a_waker_may_drop_the_last_timer() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let other = Timer::new();
    let mut far = other.sleep(HOUR);
    let (bell, waker) = Bell::new();
    assert!(poll(&mut far, &waker).is_pending());
    let mut sleep = timer.sleep(SECOND);
    assert!(poll(&mut sleep, &Hook::waker(move || drop(other))).is_pending());
    driver.advance(SECOND);
    assert_eq!(bell.rung(), 1);
    assert!(poll(&mut far, &waker).is_pending());
}

#[test]
fn a_future_beyond_the_bound_waits_elsewhere() {
    let timer = Timer::builder().max_pending_timeouts(1).build().unwrap();
    let _first = accepted(timer.new_timeout(HOUR, |_| {}));
    wait_for(&mut timer.sleep(2 * MILLI));
    assert!(block_on(timer.timeout(2 * MILLI, pending::<()>())).is_err());
    let mut ticks = timer.interval(MILLI);
    let first = block_on(ticks.tick());
    assert_eq!(block_on(ticks.tick()), first + MILLI);
    assert_eq!((timer.pending_timeouts(), timer.stats().rejected), (1, 3));
}

#[test]
fn a_refused_future_of_a_manual_timer_stays_pending() {
    let (timer, mut driver) = Timer::builder().max_pending_timeouts(1).build_manual().unwrap();
    let (bell, waker) = Bell::new();
    let mut first = timer.sleep(SECOND);
    assert!(poll(&mut first, &waker).is_pending());
    let mut second = timer.sleep(SECOND);
    let mut call = timer.timeout(SECOND, pending::<()>());
    assert!(poll(&mut second, &waker).is_pending() && poll(&mut call, &waker).is_pending());
    assert_eq!(poll(&mut timer.timeout(SECOND, ready(7)), &waker), Poll::Ready(Ok(7)), "it needs no permit");
    drop(waker);
    assert_eq!(Arc::strong_count(&bell), 2, "a refused future keeps no waker");
    assert_eq!((accounts(&timer), timer.stats().rejected), ((1, 1, 0, 0), 2));
    drop(first);
    assert!(poll(&mut second, Waker::noop()).is_pending(), "a permit is free now");
    driver.advance(SECOND);
    assert!(poll(&mut second, Waker::noop()).is_ready() && poll(&mut call, Waker::noop()).is_ready());
    assert_eq!((accounts(&timer), timer.stats().rejected), ((2, 0, 1, 1), 2));
    drop(driver);
    second.reset_after(Duration::ZERO);
    assert!(poll(&mut second, Waker::noop()).is_pending(), "no other timer knows the virtual time");
    assert!(poll(&mut timer.sleep(Duration::ZERO), Waker::noop()).is_pending());
    assert_eq!(poll(&mut timer.timeout(SECOND, ready(7)), Waker::noop()), Poll::Ready(Ok(7)));
}

#[test]
fn another_waker_keeps_the_permit() {
    let (timer, mut driver) = Timer::builder().max_pending_timeouts(1).build_manual().unwrap();
    let mut sleep = timer.sleep(SECOND);
    let (former, waker) = Bell::new();
    assert!(poll(&mut sleep, &waker).is_pending());
    drop(waker);
    for refusals in 1..=3 {
        let (_, waker) = Bell::new();
        assert!(poll(&mut sleep, &waker).is_pending());
        assert!(poll(&mut timer.sleep(SECOND), Waker::noop()).is_pending());
        assert_eq!(timer.stats().rejected, refusals, "no permit is free");
    }
    assert_eq!(Arc::strong_count(&former), 1, "the former waker is dropped");
    assert_eq!(accounts(&timer), (1, 1, 0, 0), "a change of the waker changes no counter");
    let (bell, waker) = Bell::new();
    assert!(poll(&mut sleep, &waker).is_pending());
    assert_eq!(driver.advance(SECOND), 1);
    assert_eq!((bell.rung(), poll(&mut sleep, &waker)), (1, Poll::Ready(())));
    assert_eq!(accounts(&timer), (1, 0, 1, 0));
}
