//! Code for `tokio::time` with its `use` line changed, on runtimes without a time driver, and
//! threads that have entered a timer.

use crate::support::{HOUR, MAX_WAIT, SECOND};
use std::future::{pending, ready};
use timer_core::time::{self, Duration, Instant, MissedTickBehavior, Timeout, error::Elapsed};
use timer_core::{StopError, Timer};

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
        assert_eq!(std::io::Error::from(late.unwrap_err()).kind(), std::io::ErrorKind::TimedOut);
        let named: Timeout<std::future::Ready<()>> = time::timeout(SECOND, ready(()));
        named.await.unwrap();
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
fn the_timer_of_the_process_is_never_stopped() {
    let timer = Timer::global();
    assert_eq!(timer.name(), "global");
    assert_eq!(timer.stop().unwrap_err(), StopError::Global);
    assert_eq!(timer.stop_and_wait(Duration::ZERO).unwrap_err(), StopError::Global);
}

#[test]
fn an_entered_timer_serves_its_thread_only() {
    let (timer, mut driver) = Timer::builder().name("outer").build_manual().unwrap();
    let outer = time::enter(timer);
    let begin = time::now();
    driver.block_on(async {
        time::sleep(HOUR).await;
        assert!(time::timeout(HOUR, pending::<()>()).await.is_err());
        let mut ticks = time::interval(HOUR);
        ticks.tick().await;
        ticks.tick().await;
    });
    assert_eq!(time::now() - begin, 3 * HOUR);
    std::thread::spawn(move || assert!(time::now() < begin + HOUR)).join().unwrap();
    let inner = time::enter(Timer::builder().name("inner").build().unwrap());
    assert_eq!(Timer::current().name(), "inner");
    drop(inner);
    assert_eq!(Timer::current().name(), "outer");
    drop(outer);
    assert!(time::now() < begin + HOUR);
}
