//! Futures of a timer that is stopped or gone.

use crate::support::wakers::*;
use crate::support::*;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;
use timer_core::{RejectReason, TimeoutError, Timer};

const STOPPED: Poll<Result<(), RejectReason>> = Poll::Ready(Err(RejectReason::Stopped));

#[test]
fn stop_wakes_all_futures_and_hands_none_back() {
    let timer = Timer::new();
    let (bell, waker) = Bell::new();
    let mut sleeps: Vec<_> = (0..100).map(|nth| timer.sleep(HOUR * (nth + 1))).collect();
    for sleep in &mut sleeps {
        assert!(poll(sleep, &waker).is_pending());
    }
    let mut unpolled = timer.sleep(HOUR);
    let task = timer.new_timeout(HOUR, |_| {}).unwrap();
    let left = timer.stop().unwrap();
    assert_eq!(left.iter().map(|left| left.timeout()).collect::<Vec<_>>(), [&task]);
    assert_eq!(bell.rung(), 100);
    assert!(sleeps.iter_mut().all(|sleep| poll(sleep, &waker) == STOPPED));
    assert_eq!(accounts(&timer), (101, 0, 0, 101));
    drop(waker);
    assert_eq!(Arc::strong_count(&bell), 1);
    assert_eq!(poll(&mut unpolled, Waker::noop()), STOPPED);
    assert_eq!(poll(&mut timer.sleep(HOUR), Waker::noop()), STOPPED);
    assert_eq!(poll(&mut timer.sleep(Duration::ZERO), Waker::noop()), STOPPED, "even if the sleep is due");
    sleeps[0].reset(Duration::ZERO);
    assert_eq!(poll(&mut sleeps[0], Waker::noop()), STOPPED, "at each further poll");
    drop(sleeps);
    assert_eq!(accounts(&timer), (101, 0, 0, 101));
}

#[test]
fn the_drop_of_the_last_timer_wakes_all() {
    let (bell, waker) = Bell::new();
    let timer = Timer::new();
    let mut sleep = timer.sleep(HOUR);
    let mut call = timer.timeout(HOUR, std::future::pending::<()>());
    let mut ticks = timer.interval(HOUR);
    let mut unpolled = timer.sleep(HOUR);
    assert!(poll(&mut sleep, &waker).is_pending() && poll(&mut call, &waker).is_pending());
    let mut cx = std::task::Context::from_waker(&waker);
    assert!(ticks.poll_tick(&mut cx).is_ready() && ticks.poll_tick(&mut cx).is_pending());
    drop(timer);
    assert_eq!(bell.rung(), 3);
    assert_eq!(poll(&mut sleep, &waker), STOPPED);
    assert_eq!(poll(&mut call, &waker), Poll::Ready(Err(TimeoutError::Rejected(RejectReason::Stopped))));
    assert_eq!(ticks.poll_tick(&mut cx), Poll::Ready(Err(RejectReason::Stopped)));
    assert_eq!(poll(&mut unpolled, &waker), STOPPED);
    // Their shards may serve another timer by now.
    let others: Vec<_> = (0..8).map(|_| Timer::new()).collect();
    assert_eq!(poll(&mut unpolled, &waker), STOPPED);
    assert_eq!(poll(&mut sleep, &waker), STOPPED);
    drop((sleep, call, ticks, unpolled));
    for other in others {
        assert_eq!(accounts(&other), (0, 0, 0, 0));
    }
}

#[test]
fn an_elapsed_sleep_is_stopped_when_it_is_reset() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let mut sleep = timer.sleep(SECOND);
    assert!(poll(&mut sleep, Waker::noop()).is_pending());
    driver.advance(SECOND);
    drop(driver);
    assert_eq!(poll(&mut sleep, Waker::noop()), Poll::Ready(Ok(())));
    sleep.reset(SECOND);
    assert_eq!(poll(&mut sleep, Waker::noop()), STOPPED);
    drop(timer);
    assert_eq!(poll(&mut sleep, Waker::noop()), STOPPED);
    drop(sleep);
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
    assert_eq!(poll(&mut far, &waker), STOPPED);
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
