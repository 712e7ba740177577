//! The instant until which a driver's loop may sleep, and the calls of its waker.

use super::TICKS;
use crate::support::*;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use timer_core::Timer;

#[test]
fn a_driver_sleeps_until_the_deadline() {
    for wheel in WHEELS {
        for tick in TICKS {
            let (timer, mut driver) = Timer::builder().wheel(wheel).tick_duration(tick).build_driven().unwrap();
            assert_eq!(driver.turn().next, None);
            let timeout = accepted(timer.new_timeout(HOUR, |_| {}));
            let next = driver.turn().next.unwrap();
            assert!(next >= timeout.deadline() && next <= timeout.deadline() + tick, "{wheel:?}");
            assert!(timeout.cancel());
        }
    }
}

// Guards against B06, in which the count was 0 and the driver still armed.
#[test]
fn a_driver_wakes_once_for_cancelled_timeouts() {
    for wheel in WHEELS {
        let (timer, mut driver) = Timer::builder().wheel(wheel).build_driven().unwrap();
        let mut cancelled = 0;
        for _ in 0..3 {
            let timeout = accepted(timer.new_timeout(3 * MILLI, |_| {}));
            let next = driver.turn().next;
            if !timeout.cancel() {
                // This thread did not run until the timeout was due.
                continue;
            }
            cancelled += 1;
            assert!(next.is_some());
            if let Some(next) = driver.turn().next {
                assert!(next >= timeout.deadline());
                spin(next.saturating_duration_since(Instant::now()));
                assert_eq!((driver.turn().next, timer.pending_timeouts()), (None, 0), "{wheel:?}");
            }
        }
        assert_ne!(cancelled, 0, "{wheel:?}: no cancel was in time");
        accepted(timer.new_timeout(Duration::MAX, |_| {}));
        assert!(driver.turn().next.is_none_or(|next| next > Instant::now() + 30 * YEAR));
    }
}

#[test]
fn a_driver_is_called_once_for_an_earlier_timeout() {
    let (timer, mut driver) = Timer::builder().build_driven().unwrap();
    let (call, calls) = channel();
    driver.set_waker(move || call.send(()).unwrap());
    accepted(timer.new_timeout(HOUR, |_| {}));
    driver.turn();
    let _ = calls.try_iter().count();
    accepted(timer.new_timeout(2 * HOUR, |_| {}));
    accepted(timer.new_timeout(HOUR + SECOND, |_| {})).cancel();
    assert_eq!(calls.try_iter().count(), 0, "no timeout is earlier than the instant waited for");
    accepted(timer.new_timeout(HOUR / 2, |_| {}));
    accepted(timer.new_timeout(HOUR / 4, |_| {}));
    assert_eq!(calls.try_iter().count(), 1, "one call for two earlier timeouts");
    let moved = accepted(timer.new_timeout(3 * HOUR, |_| {}));
    driver.turn();
    assert!(moved.reset(HOUR / 8));
    assert_eq!(calls.try_iter().count(), 1, "the timeout moved before the instant waited for");
}

#[test]
fn virtual_time_hops_to_the_deadline_in_one_turn() {
    for wheel in WHEELS {
        let (timer, mut driver) = manual(wheel);
        assert_eq!(driver.next_expiry(), None);
        accepted(timer.new_timeout(YEAR, |_| {}));
        assert_eq!(driver.next_expiry(), Some(YEAR));
        driver.advance(YEAR - NANO);
        assert_eq!((timer.stats().turns, driver.next_expiry()), (0, Some(NANO)), "{wheel:?}");
        driver.advance(NANO);
        assert_eq!((timer.stats().turns, driver.next_expiry()), (1, None), "{wheel:?}");
    }
}

#[test]
fn a_driver_under_load_is_called_once_between_turns() {
    let (timer, mut driver) = Timer::builder().shards(1).build_driven().unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    driver.set_waker(move || _ = counted.fetch_add(1, SeqCst));
    for round in 1..=5 {
        driver.turn();
        // Each timeout is earlier than all before it.
        for left in (0..10_000u32).rev() {
            accepted(timer.new_timeout(HOUR + left * MILLI - round * 20 * SECOND, |_| {}));
        }
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| assert!((0..1_000).all(|_| accepted(timer.new_timeout(2 * HOUR, |_| {})).cancel())));
            }
        });
        assert_eq!(calls.swap(0, SeqCst), 1, "round {round}");
    }
}

// Guards against B06, in which a late callback scheduled again, and the count was 0 with the driver
// still armed.
#[test]
fn a_driver_is_armed_exactly_if_something_is_pending() {
    for wheel in WHEELS {
        let (timer, mut driver) = manual(wheel);
        let (inner, seat) = (timer.clone(), Arc::new(Mutex::new(None)));
        let again = seat.clone();
        accepted(timer.new_timeout(SECOND, move |_| {
            *again.lock().unwrap() = Some(accepted(inner.new_timeout(SECOND, |_| {})));
        }));
        driver.advance(SECOND);
        assert_eq!((timer.pending_timeouts(), driver.next_expiry()), (1, Some(SECOND)));
        assert!(seat.lock().unwrap().take().unwrap().cancel());
        assert_eq!((timer.pending_timeouts(), driver.next_expiry()), (0, None), "{wheel:?}");
    }
}

// Guards against B40, in which the first timeout was moved to later without the wheel's knowledge,
// so it ran at its old deadline. The turn at that deadline only links it again.
#[test]
fn nothing_runs_at_the_old_deadline() {
    for wheel in WHEELS {
        let (timer, mut driver) = manual(wheel);
        let runs = Runs::default();
        let moved = record(&timer, SECOND, &runs, 1);
        assert!(moved.reset(3 * SECOND));
        record(&timer, 2 * SECOND, &runs, 2);
        assert_eq!(driver.advance(SECOND), 0);
        assert!(!moved.is_expired() && timer.pending_timeouts() == 2);
        assert_eq!(driver.advance(SECOND), 1);
        assert_eq!(driver.advance(SECOND), 1);
        assert_eq!(take_runs(&runs), [2, 1], "{wheel:?}");
    }
}

// Guards against B85, in which a huge wait returned at once, so the worker spun. Here the loop
// waits, so the driver must report no early instant.
#[test]
fn a_driver_reports_no_early_instant_for_a_far_deadline() {
    for tick in [MICRO, MILLI, YEAR] {
        let (timer, mut driver) = Timer::builder().tick_duration(tick).build_driven().unwrap();
        for delay in [Duration::MAX, Duration::from_secs(u64::MAX / 4), 500 * YEAR] {
            let timeout = accepted(timer.new_timeout(delay, |_| {}));
            let now = std::time::Instant::now();
            let next = driver.turn().next;
            assert!(next.is_none_or(|next| next > now + 30 * YEAR), "{delay:?} at {tick:?}");
            assert!(timeout.cancel());
        }
    }
}

/// Request timeouts of half a second are cancelled after 50 ms, under many timeouts of an hour.
#[test]
fn cancelled_requests_cause_few_turns() {
    const STANDING: usize = 20_000;
    const PER_SECOND: u32 = 3_700;
    const SECONDS: u32 = 4;
    for wheel in WHEELS {
        let (timer, mut driver) = manual(wheel);
        for _ in 0..STANDING {
            accepted(timer.new_timeout(HOUR, |_| {}));
            driver.advance(SECOND / PER_SECOND);
        }
        let before = timer.stats().turns;
        let mut pending = std::collections::VecDeque::new();
        for _ in 0..SECONDS * PER_SECOND {
            pending.push_back(accepted(timer.new_timeout(SECOND / 2, |_| {})));
            if pending.len() > PER_SECOND as usize / 20 {
                assert!(pending.pop_front().unwrap().cancel());
            }
            driver.advance(SECOND / PER_SECOND);
        }
        // A turn for a cancelled timeout sets the alarm for one that is pending, which is at least
        // 450 ms away.
        let turns = timer.stats().turns - before;
        println!("{turns} turns in {SECONDS} s, {wheel:?}");
        assert!(turns <= u64::from(3 * SECONDS), "{turns} turns, {wheel:?}");
    }
}
