//! Futures and the bound on pending timeouts.

use crate::support::wakers::*;
use crate::support::*;
use std::task::{Poll, Waker};
use timer_core::{RejectReason, TimeoutError, Timer};

const FULL: RejectReason = RejectReason::TooManyPending { max: 1 };

#[test]
fn a_waiting_future_takes_a_permit() {
    let (timer, mut driver) = Timer::builder().max_pending_timeouts(1).build_manual().unwrap();
    let (mut first, mut second) = (timer.sleep(SECOND), timer.sleep(SECOND));
    assert!(poll(&mut first, Waker::noop()).is_pending());
    assert_eq!(poll(&mut second, Waker::noop()), Poll::Ready(Err(FULL)));
    assert_eq!((accounts(&timer), timer.stats().rejected), ((1, 1, 0, 0), 1));
    let mut call = timer.timeout(SECOND, std::future::pending::<()>());
    assert_eq!(poll(&mut call, Waker::noop()), Poll::Ready(Err(TimeoutError::Rejected(FULL))));
    drop(first);
    assert!(poll(&mut second, Waker::noop()).is_pending(), "a permit is free now");
    driver.advance(SECOND);
    assert!(poll(&mut second, Waker::noop()).is_ready());
    assert_eq!((accounts(&timer), timer.stats().rejected), ((2, 0, 1, 1), 2));
}

#[test]
fn a_permit_is_needed_again_after_completion() {
    let (timer, mut driver) = Timer::builder().max_pending_timeouts(1).build_manual().unwrap();
    let (bell, waker) = Bell::new();
    let mut sleep = timer.sleep(SECOND);
    assert!(poll(&mut sleep, &waker).is_pending());
    driver.advance(SECOND);
    let other = timer.new_timeout(SECOND, |_| {}).unwrap();
    sleep.reset(HOUR);
    assert_eq!(poll(&mut sleep, &waker), Poll::Ready(Err(FULL)));
    assert_eq!(poll(&mut sleep, &waker), Poll::Ready(Err(FULL)));
    drop(waker);
    assert_eq!(std::sync::Arc::strong_count(&bell), 1, "the future keeps no waker");
    assert!(other.cancel());
    assert!(poll(&mut sleep, Waker::noop()).is_pending());
    assert_eq!((accounts(&timer), timer.stats().rejected), ((3, 1, 1, 1), 2));
    driver.advance(HOUR);
    assert_eq!(accounts(&timer), (3, 0, 2, 1));
}

#[test]
fn another_waker_keeps_the_permit() {
    let (timer, mut driver) = Timer::builder().max_pending_timeouts(1).build_manual().unwrap();
    let mut sleep = timer.sleep(SECOND);
    let (former, waker) = Bell::new();
    assert!(poll(&mut sleep, &waker).is_pending());
    drop(waker);
    for _ in 0..3 {
        let (_, waker) = Bell::new();
        assert!(poll(&mut sleep, &waker).is_pending());
        assert_eq!(poll(&mut timer.sleep(SECOND), Waker::noop()), Poll::Ready(Err(FULL)), "no permit is free");
    }
    assert_eq!(std::sync::Arc::strong_count(&former), 1, "the former waker is dropped");
    assert_eq!(accounts(&timer), (1, 1, 0, 0), "a change of the waker changes no counter");
    let (bell, waker) = Bell::new();
    assert!(poll(&mut sleep, &waker).is_pending());
    assert_eq!(driver.advance(SECOND), 1);
    assert_eq!((bell.rung(), poll(&mut sleep, &waker)), (1, Poll::Ready(Ok(()))));
    assert_eq!(accounts(&timer), (1, 0, 1, 0));
}

#[test]
fn a_ready_future_needs_no_permit() {
    let (timer, mut driver) = Timer::builder().max_pending_timeouts(1).build_manual().unwrap();
    let _other = timer.new_timeout(HOUR, |_| {}).unwrap();
    let mut sleep = timer.sleep(SECOND);
    driver.advance(SECOND);
    assert_eq!(poll(&mut sleep, Waker::noop()), Poll::Ready(Ok(())));
    assert_eq!(poll(&mut timer.timeout(SECOND, std::future::ready(7)), Waker::noop()), Poll::Ready(Ok(7)));
    assert_eq!(timer.stats().rejected, 0);
}
