//! A timer without shards. The test takes all 65,536 shards of the process, so it is a binary of
//! its own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use std::future::{pending, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use support::{HOUR, MAX_WAIT, MILLI, watch_for};
use timer_core::{BuildError, RejectReason, TimeoutError, Timer, global};

const REFUSED: RejectReason = RejectReason::TooManyTimers;

fn poll<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn without_shards_each_call_and_poll_is_rejected() {
    let half = || Timer::builder().shards(1 << 15).build().unwrap();
    let others = half();
    let small: Vec<Timer> = std::iter::from_fn(|| Timer::builder().build().ok()).collect();
    assert_eq!(Timer::builder().build().err(), Some(BuildError::TooManyTimers));
    let timer = Timer::new();
    assert_eq!(timer.new_timeout(HOUR, |_| {}).unwrap_err().reason, REFUSED);

    a_sleep_is_rejected_at_each_poll_until_it_is_due(&timer);
    ready_futures_need_no_shard(&timer);
    let stats = timer.stats();
    assert_eq!(
        (stats.scheduled, stats.pending, stats.cancelled, stats.rejected),
        (0, 0, 0, 1),
        "rejected futures do not count"
    );
    infallible_futures_wait_for_their_deadline();

    // Returned shards serve new timers with as many shards, and not the timer that was built
    // without.
    drop((others, small));
    let later = half();
    assert!(later.new_timeout(HOUR, |_| {}).unwrap().cancel());
    assert_eq!(poll(&mut later.sleep(HOUR)), Poll::Pending);
    assert_eq!(poll(&mut timer.sleep(HOUR)), Poll::Ready(Err(REFUSED)));
    // The timer of the process is built again.
    futures::executor::block_on(global::sleep(MILLI));
    assert!(Timer::global().new_timeout(HOUR, |_| {}).unwrap().cancel());
}

fn a_sleep_is_rejected_at_each_poll_until_it_is_due(timer: &Timer) {
    let mut sleep = timer.sleep(HOUR);
    assert!(!sleep.is_elapsed());
    assert_eq!([poll(&mut sleep), poll(&mut sleep)], [Poll::Ready(Err(REFUSED)); 2]);
    let deadline = Instant::now() + 20 * MILLI;
    sleep.reset_at(deadline);
    assert_eq!(sleep.deadline(), deadline);
    while poll(&mut sleep) != Poll::Ready(Ok(())) {
        assert!(deadline.elapsed() < MAX_WAIT, "the sleep remains rejected after its deadline");
        watch_for(MILLI);
    }
    assert!(Instant::now() >= deadline && sleep.is_elapsed(), "the sleep was ready early");
    sleep.reset(HOUR);
    assert_eq!(poll(&mut sleep), Poll::Ready(Err(REFUSED)), "a new deadline needs a shard again");
}

fn ready_futures_need_no_shard(timer: &Timer) {
    assert_eq!(poll(timer.sleep(Duration::ZERO)), Poll::Ready(Ok(())));
    assert_eq!(poll(timer.timeout(HOUR, ready(7))), Poll::Ready(Ok(7)));
    assert_eq!(poll(timer.timeout(Duration::ZERO, pending::<()>())), Poll::Ready(Err(TimeoutError::Elapsed)));
    assert_eq!(poll(timer.timeout(HOUR, pending::<()>())), Poll::Ready(Err(TimeoutError::Rejected(REFUSED))));
    let mut ticks = timer.interval(HOUR);
    assert!(matches!(poll(ticks.tick()), Poll::Ready(Ok(_))), "the first tick is due");
    assert_eq!(poll(ticks.tick()), Poll::Ready(Err(REFUSED)));
}

fn infallible_futures_wait_for_their_deadline() {
    assert_eq!(poll(global::sleep(Duration::ZERO)), Poll::Ready(()));
    assert!(poll(global::timeout(HOUR, pending::<()>())).is_pending());
    let mut sleep = global::sleep(HOUR);
    assert!(poll(&mut sleep).is_pending(), "no timer has a shard");
    sleep.reset_after(MILLI);
    let deadline = sleep.deadline();
    watch_for(MILLI);
    assert!(Instant::now() >= deadline);
    assert_eq!(poll(&mut sleep), Poll::Ready(()));
}
