//! A single sleep on virtual time.

use crate::support::wakers::*;
use crate::support::*;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;
use timer_core::{Timer, WheelKind};

#[test]
fn a_sleep_wakes_at_its_deadline() {
    for wheel in WHEELS {
        let (timer, mut driver) = Timer::builder().wheel(wheel).build_manual().unwrap();
        let (bell, waker) = Bell::new();
        let mut sleep = timer.sleep(HOUR);
        assert_eq!(poll(&mut sleep, &waker), Poll::Pending);
        assert_eq!(driver.advance(HOUR - NANO), 0);
        assert!(!sleep.is_elapsed() && bell.rung() == 0);
        assert_eq!(poll(&mut sleep, &waker), Poll::Pending);
        assert_eq!(driver.advance(NANO), 1);
        assert_eq!(bell.rung(), 1);
        assert!(sleep.is_elapsed());
        assert_eq!([poll(&mut sleep, &waker), poll(&mut sleep, &waker)], [Poll::Ready(()); 2]);
        drop(sleep);
        assert_eq!(accounts(&timer), (1, 0, 1, 0));
        let stats = timer.stats();
        assert_eq!((stats.timeout_lag.count(), stats.timeout_lag.max()), (1, Duration::ZERO));
    }
}

#[test]
fn a_deadline_within_the_lag_of_an_advance_is_not_due() {
    for wheel in WHEELS {
        let (timer, mut driver) = manual(wheel);
        let micros = Duration::from_micros;
        driver.advance_with_lag(micros(1_300), micros(300));
        // A reset or a timeout on an empty wheel must not move the wheel beyond the tick.
        let mut alone = timer.sleep(HOUR);
        assert!(poll(&mut alone, Waker::noop()).is_pending());
        alone.reset_after(Duration::ZERO);
        assert_eq!(driver.advance_with_lag(Duration::ZERO, micros(300)), 0);
        drop(alone);
        let timeout = timer.new_timeout(HOUR, |_| {}).unwrap();
        let (bell, waker) = Bell::new();
        let mut zero = timer.sleep(Duration::ZERO);
        let mut past = timer.sleep_until(timer.now() - micros(300));
        let mut moved = timer.sleep(HOUR);
        assert!(poll(&mut zero, Waker::noop()).is_pending() && poll(&mut moved, &waker).is_pending());
        assert!(poll(&mut zero, &waker).is_pending() && poll(&mut past, &waker).is_ready());
        moved.reset_after(Duration::ZERO);
        assert_eq!(driver.next_deadline(), Some(driver.now()));
        assert_eq!(driver.advance_with_lag(micros(699), micros(999)), 0);
        assert!(!zero.is_elapsed() && !moved.is_elapsed() && bell.rung() == 0);
        assert_eq!(driver.advance_with_lag(micros(301), micros(300)), 2);
        assert_eq!((bell.rung(), driver.elapsed()), (2, micros(2_300)));
        assert!(poll(&mut zero, &waker).is_ready() && poll(&mut moved, &waker).is_ready());
        let at_once = timer.new_timeout(Duration::ZERO, |_| {}).unwrap();
        assert_eq!(driver.advance_with_lag(Duration::ZERO, micros(300)), 1, "a timeout that is due has no lag");
        assert!(at_once.is_expired());
        driver.resume();
        assert!(poll(&mut timer.sleep(Duration::ZERO), &waker).is_ready(), "a time that runs has no lag");
        assert!(!timeout.is_expired());
    }
}

#[test]
fn advance_wakes_exactly_the_due_sleeps() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let mut sleeps: Vec<_> = (1..=100)
        .map(|secs| {
            let (bell, waker) = Bell::new();
            let mut sleep = timer.sleep(secs * SECOND);
            assert!(poll(&mut sleep, &waker).is_pending());
            (sleep, bell, waker)
        })
        .collect();
    assert_eq!(driver.advance(40 * SECOND + MILLI), 40);
    for (at, (sleep, bell, waker)) in sleeps.iter_mut().enumerate() {
        let due = at < 40;
        assert_eq!((bell.rung() == 1, sleep.is_elapsed(), poll(sleep, waker).is_ready()), (due, due, due), "{at}");
    }
    drop(sleeps);
    assert_eq!(accounts(&timer), (100, 0, 40, 60));
}

#[test]
fn a_sleep_that_never_waits_leaves_no_trace() {
    let (timer, mut driver) = manual(WHEELS[0]);
    drop(timer.sleep(SECOND));
    let mut zero = timer.sleep(Duration::ZERO);
    assert!(poll(&mut zero, Waker::noop()).is_ready());
    let mut past = timer.sleep_until(timer.now() - SECOND);
    assert!(poll(&mut past, Waker::noop()).is_ready());
    let mut overtaken = timer.sleep(SECOND);
    driver.advance(SECOND);
    assert!(poll(&mut overtaken, Waker::noop()).is_ready());
    assert_eq!(overtaken.deadline(), timer.now());
    assert!(overtaken.is_elapsed());
    drop((zero, past, overtaken));
    let stats = timer.stats();
    assert_eq!((stats.runs, stats.inbox_handovers, stats.rejected), (0, 0, 0));
    assert_eq!(accounts(&timer), (0, 0, 0, 0));
}

#[test]
fn a_drop_on_any_thread_cancels_and_frees_the_wakers() {
    let (timer, mut driver) = manual(WHEELS[0]);
    for spawn in [false, true] {
        let (bell, waker) = Bell::new();
        let mut sleep = timer.sleep(SECOND);
        for former in [Waker::noop(), &waker, Waker::noop(), &waker] {
            assert!(poll(&mut sleep, former).is_pending());
        }
        drop(waker);
        assert_eq!(Arc::strong_count(&bell), 2);
        if spawn {
            std::thread::spawn(move || drop(sleep)).join().unwrap()
        } else {
            drop(sleep)
        }
        assert_eq!(Arc::strong_count(&bell), 1);
        assert_eq!(driver.next_deadline(), None, "neither the entry of a former waker nor that of the last is linked");
        driver.advance(HOUR);
        assert_eq!(bell.rung(), 0);
    }
    assert_eq!(accounts(&timer), (2, 0, 0, 2));
}

#[test]
fn the_last_waker_is_woken() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let bells: Vec<_> = (0..4).map(|_| Bell::new()).collect();
    let mut sleep = timer.sleep(SECOND);
    for (_, waker) in &bells {
        assert!(poll(&mut sleep, waker).is_pending());
        assert!(poll(&mut sleep, waker).is_pending());
    }
    assert_eq!(bells.iter().map(|(bell, _)| Arc::strong_count(bell)).collect::<Vec<_>>(), [2, 2, 2, 3]);
    driver.advance(SECOND);
    assert_eq!(bells.iter().map(|(bell, _)| bell.rung()).collect::<Vec<_>>(), [0, 0, 0, 1]);
    assert!(poll(&mut sleep, &bells[0].1).is_ready());
    assert_eq!(accounts(&timer), (1, 0, 1, 0));
}

#[test]
fn a_reset_keeps_the_waker() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let (bell, waker) = Bell::new();
    let mut sleep = timer.sleep(10 * SECOND);
    assert!(poll(&mut sleep, &waker).is_pending());
    driver.advance(9 * SECOND);
    sleep.reset_after(10 * SECOND);
    driver.advance(9 * SECOND);
    assert_eq!(bell.rung(), 0, "moved to later");
    sleep.reset_after(MILLI);
    driver.advance(MILLI);
    assert_eq!(bell.rung(), 1, "moved to earlier");
    assert!(poll(&mut sleep, &waker).is_ready());
    assert_eq!(accounts(&timer), (1, 0, 1, 0));
}

#[test]
fn a_sleep_reset_to_now_is_due() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let (bell, waker) = Bell::new();
    let mut zero = timer.sleep(HOUR);
    let mut past = timer.sleep(HOUR);
    assert!(poll(&mut zero, &waker).is_pending() && poll(&mut past, &waker).is_pending());
    zero.reset_after(Duration::ZERO);
    past.reset_at(timer.now() - SECOND);
    assert_eq!(driver.advance(Duration::ZERO), 2);
    assert_eq!(bell.rung(), 2);
}

#[test]
fn the_deadline_counts_from_the_last_call_before_the_first_poll() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let mut made = timer.sleep(10 * SECOND);
    let mut moved = timer.sleep(HOUR);
    moved.reset_at(timer.now() + 10 * SECOND);
    assert_eq!(moved.deadline(), made.deadline());
    driver.advance(9 * SECOND);
    let (bell, waker) = Bell::new();
    assert!(poll(&mut made, &waker).is_pending() && poll(&mut moved, &waker).is_pending());
    driver.advance(SECOND);
    assert_eq!(bell.rung(), 2);
}

#[test]
fn a_completed_sleep_waits_again_after_a_reset() {
    for wheel in [WheelKind::Hierarchical, WheelKind::Hashed { ticks_per_wheel: 8 }] {
        let (timer, mut driver) = Timer::builder().wheel(wheel).build_manual().unwrap();
        let (bell, waker) = Bell::new();
        let mut sleep = timer.sleep(SECOND);
        for round in 1..=100_u64 {
            assert!(poll(&mut sleep, &waker).is_pending());
            assert_eq!(driver.advance(SECOND), 1);
            assert_eq!(bell.rung() as u64, round);
            assert!(poll(&mut sleep, &waker).is_ready());
            sleep.reset_after(SECOND);
            assert!(!sleep.is_elapsed());
        }
        assert_eq!(accounts(&timer), (100, 0, 100, 0));
        assert!(poll(&mut sleep, &waker).is_pending());
        drop(sleep);
        assert_eq!(accounts(&timer), (101, 0, 100, 1));
        assert_eq!(driver.next_deadline(), None);
    }
}

#[test]
fn any_delay_is_valid() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let (bell, waker) = Bell::new();
    let mut never = timer.sleep(Duration::MAX);
    let mut soon = timer.sleep(NANO);
    assert!(poll(&mut never, &waker).is_pending() && poll(&mut soon, &waker).is_pending());
    driver.advance(NANO);
    assert_eq!(bell.rung(), 1);
    driver.advance(500 * YEAR);
    driver.advance(Duration::MAX);
    assert_eq!(bell.rung(), 1, "the farthest sleep does not wake");
    never.reset_after(Duration::MAX);
    assert!(poll(&mut never, &waker).is_pending());
}

#[test]
fn the_executor_of_the_timer_gets_no_waker() {
    let refuse = |_: timer_core::executor::Task| panic!("the pool got a waker");
    let (timer, mut driver) = Timer::builder().executor(refuse).build_manual().unwrap();
    let (bell, waker) = Bell::new();
    let mut sleep = timer.sleep(SECOND);
    assert!(poll(&mut sleep, &waker).is_pending());
    assert_eq!(driver.advance(SECOND), 1);
    let stats = timer.stats();
    assert_eq!((bell.rung(), stats.executor_rejections, stats.in_flight), (1, 0, 0));
    assert_eq!((stats.runs, stats.expired, stats.timeout_lag.count(), stats.start_lag.count()), (1, 1, 1, 1));
}

#[test]
fn a_sleep_stays_elapsed_after_its_timer() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let mut sleep = timer.sleep(HOUR);
    assert!(poll(&mut sleep, Waker::noop()).is_pending());
    assert_eq!(driver.advance(HOUR), 1);
    drop((timer, driver));
    assert!(sleep.is_elapsed(), "the system's clock says nothing about virtual time");
    assert!(poll(&mut sleep, Waker::noop()).is_ready());
}
