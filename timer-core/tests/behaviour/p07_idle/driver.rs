//! The instant until which a driver's loop may sleep, and the calls of its waker.

use super::TICKS;
use crate::support::*;
use std::sync::mpsc::channel;
use std::time::Duration;
use timer_core::Timer;

#[test]
fn a_driver_sleeps_until_the_deadline() {
    for wheel in WHEELS {
        for tick in TICKS {
            let (timer, mut driver) = Timer::builder().wheel(wheel).tick_duration(tick).build_driven().unwrap();
            assert_eq!(driver.turn().next_deadline, None);
            let timeout = accepted(timer.new_timeout(HOUR, |_| {}));
            let next = driver.turn().next_deadline.unwrap();
            assert!(next >= timeout.deadline() && next <= timeout.deadline() + tick, "{wheel:?}");
            assert!(timeout.cancel());
        }
    }
}

#[test]
fn a_driver_is_called_once_for_an_earlier_timeout() {
    let (timer, mut driver) = Timer::builder().build_driven().unwrap();
    let (call, calls) = channel();
    driver.on_wake(move || call.send(()).unwrap());
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

// Guards against rust-lang/rust#37440, in which a huge wait returned at once, so the worker spun.
// Here the loop waits, so the driver must report no early instant.
#[test]
fn a_driver_reports_no_early_instant_for_a_far_deadline() {
    for tick in [MICRO, MILLI, YEAR] {
        let (timer, mut driver) = Timer::builder().tick_duration(tick).build_driven().unwrap();
        for delay in [Duration::MAX, Duration::from_secs(u64::MAX / 4), 500 * YEAR] {
            let timeout = accepted(timer.new_timeout(delay, |_| {}));
            let now = std::time::Instant::now();
            let next = driver.turn().next_deadline;
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
