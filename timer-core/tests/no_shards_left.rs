//! A timer without shards. The test takes all 65,536 shards of the process, so it is a separate
//! binary.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use std::future::{pending, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use support::{HOUR, MAX_WAIT, MILLI, watch_for};
use timer_core::{BuildError, Elapsed, RejectReason, Timer, time};

const REFUSED: RejectReason = RejectReason::TooManyTimers;

fn poll<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn without_shards_each_call_and_poll_is_rejected() {
    let half = || Timer::builder().shards(1 << 15).build().unwrap();
    let others = half();
    let most: Vec<Timer> = (6..15).map(|bits| Timer::builder().shards(1 << bits).build().unwrap()).collect();
    let small: Vec<Timer> = std::iter::from_fn(|| Timer::builder().build().ok()).collect();
    assert_eq!(Timer::builder().build().err(), Some(BuildError::TooManyTimers));
    let timer = Timer::new();
    assert_eq!(timer.new_timeout(HOUR, |_| {}).unwrap_err().reason, REFUSED);

    a_sleep_waits_for_its_deadline(&timer);
    ready_futures_need_no_shard(&timer);
    let stats = timer.stats();
    assert_eq!(
        (stats.scheduled, stats.pending, stats.cancelled, stats.rejected),
        (0, 0, 0, 1),
        "rejected futures do not count"
    );

    // Returned shards serve new timers with as many shards, and not the timer that was built
    // without.
    drop((others, most, small));
    let later = half();
    assert!(later.new_timeout(HOUR, |_| {}).unwrap().cancel());
    assert_eq!(poll(&mut later.sleep(HOUR)), Poll::Pending);
    // The timer of the process is built again, and takes the sleep.
    futures::executor::block_on(timer.sleep(MILLI));
    assert!(Timer::global().new_timeout(HOUR, |_| {}).unwrap().cancel());
}

fn a_sleep_waits_for_its_deadline(timer: &Timer) {
    for mut sleep in [timer.sleep(HOUR), time::sleep(HOUR)] {
        assert!(!sleep.is_elapsed());
        assert!(poll(&mut sleep).is_pending() && poll(&mut sleep).is_pending());
        let deadline = Instant::now() + 20 * MILLI;
        sleep.reset_at(deadline);
        assert_eq!(sleep.deadline(), deadline);
        while poll(&mut sleep).is_pending() {
            assert!(deadline.elapsed() < MAX_WAIT, "the sleep remains rejected after its deadline");
            watch_for(MILLI);
        }
        assert!(Instant::now() >= deadline && sleep.is_elapsed(), "the sleep was ready early");
        sleep.reset_after(HOUR);
        assert!(poll(&mut sleep).is_pending(), "a new deadline needs a shard again");
    }
}

fn ready_futures_need_no_shard(timer: &Timer) {
    assert_eq!(poll(timer.sleep(Duration::ZERO)), Poll::Ready(()));
    assert_eq!(poll(timer.timeout(HOUR, ready(7))), Poll::Ready(Ok(7)));
    assert_eq!(poll(timer.timeout(Duration::ZERO, pending::<()>())), Poll::Ready(Err(Elapsed::new())));
    let mut ticks = timer.interval(HOUR);
    assert!(poll(ticks.tick()).is_ready() && poll(ticks.tick()).is_pending(), "the first tick is due");
}
