//! Code for `tokio::time` with its `use` line changed, on runtimes without a time driver.

use crate::support::{MAX_WAIT, SECOND};
use std::future::{pending, ready};
use std::pin::Pin;
use timer_core::global::{Duration, Instant, MissedTickBehavior, Timeout, error::Elapsed};
use timer_core::{StopError, Timer, global as time};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

#[test]
fn the_names_of_tokio_keep_their_meaning() {
    let begun = Instant::now();
    runtime().block_on(async {
        time::sleep(Duration::from_millis(2)).await;
        time::sleep_until(begun + Duration::from_millis(4)).await;
        assert!(begun.elapsed() >= Duration::from_millis(4));
        assert_eq!(time::timeout(SECOND, ready(7)).await, Ok(7));
        let late: Result<(), Elapsed> = time::timeout_at(Instant::now(), pending::<()>()).await;
        assert_eq!(late.unwrap_err().to_string(), "deadline has elapsed");
        let named: Timeout<std::future::Ready<()>> = time::timeout(SECOND, ready(()));
        named.await.unwrap();
        let mut ticks = time::interval(Duration::from_millis(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let first: Instant = ticks.tick().await;
        assert_eq!(ticks.tick().await, first + Duration::from_millis(1));
        let start = Instant::now() + Duration::from_millis(1);
        assert_eq!(time::interval_at(start, SECOND).tick().await, start);
    });
    assert!(begun.elapsed() < MAX_WAIT);
}

#[test]
fn a_pinned_sleep_in_a_select_loop() {
    runtime().block_on(async {
        let sleep = time::sleep(Duration::from_millis(5));
        tokio::pin!(sleep);
        let mut ticks = time::interval(Duration::from_millis(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut ticked = 0;
        loop {
            tokio::select! {
                biased;
                () = &mut sleep => break,
                _ = ticks.tick() => ticked += 1,
            }
        }
        // The sleep ends within the tick that follows its deadline.
        assert!(ticked <= 7, "{ticked}");
        sleep.as_mut().reset(Instant::now() + Duration::from_millis(1));
        sleep.await;
    });
}

#[test]
fn a_period_of_zero_becomes_a_tick() {
    assert_eq!(time::interval(Duration::ZERO).period(), Duration::from_millis(1));
    runtime().block_on(async {
        let mut ticks = time::interval_at(Instant::now(), Duration::ZERO);
        let first = ticks.tick().await;
        assert!(ticks.tick().await > first);
    });
}

#[test]
fn the_global_timer_is_never_stopped() {
    let timer = Timer::global();
    assert_eq!(timer.name(), "global");
    assert_eq!(timer.stop().unwrap_err(), StopError::Global);
    assert_eq!(timer.stop_and_wait(Duration::ZERO).unwrap_err(), StopError::Global);
    drop(timer.clone());
    let mut sleep = time::sleep(SECOND * 3600);
    assert!(Pin::new(&mut sleep).poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_pending());
}
