//! What clocks did to timers.

use crate::support::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use timer_core::{Timer, WheelKind};

// B81: the clock went back, in virtual machines.
#[test]
fn deadlines_from_before_the_timer_and_moves_to_the_past_do_no_harm() {
    let before = std::time::Instant::now();
    let (timer, mut driver) = Timer::builder().build_driven().unwrap();
    accepted(timer.new_timeout_at(before, |_| {}));
    if let Some(long_before) = before.checked_sub(HOUR) {
        accepted(timer.new_timeout_at(long_before, |_| {}));
    }
    let all = timer.pending_timeouts();
    assert_eq!((driver.turn().expired, timer.pending_timeouts()), (all, 0));
    assert_eq!(timer.stats().timeout_lag.count(), all as u64);
}

// B87: the test clock overshot, could not step less than a tick, or moved on though work was ready.
#[test]
fn virtual_time_is_exact() {
    for wheel in WHEELS {
        // The tick of the real clock does not count here.
        let (timer, mut driver) = Timer::builder().wheel(wheel).tick_duration(YEAR).build_manual().unwrap();
        let (times, begun) = (Arc::new(Mutex::new(Vec::new())), driver.now());
        let mut random = Random(87);
        let mut delays: Vec<Duration> = (0..200).map(|_| random.duration(3 * MILLI)).collect();
        for &delay in &delays {
            let times = times.clone();
            accepted(timer.new_timeout(delay, move |me| times.lock().unwrap().push(me.deadline() - begun)));
        }
        delays.sort_unstable();
        let mut elapsed = Duration::ZERO;
        while elapsed < 3 * MILLI {
            let step = random.duration(10 * MICRO);
            let due = delays.iter().filter(|&&delay| delay > elapsed && delay <= elapsed + step).count();
            let due = if elapsed.is_zero() { due + delays.iter().filter(|delay| delay.is_zero()).count() } else { due };
            elapsed += step;
            assert_eq!(driver.advance(step), due, "{wheel:?}");
            assert_eq!((driver.elapsed(), driver.now() - begun), (elapsed, elapsed));
        }
        assert_eq!(*times.lock().unwrap(), delays, "in the order of their deadlines, {wheel:?}");
    }
}

#[test]
fn virtual_time_passes_the_same_way_every_time() {
    fn story(wheel: WheelKind) -> Vec<u32> {
        let (timer, mut driver) = manual(wheel);
        let runs = Runs::default();
        let mut random = Random(7);
        for id in 0..300 {
            let timeout = note(&timer, random.duration(100 * NANO), &runs, id);
            match random.below(4) {
                0 => drop(timeout.cancel()),
                1 => drop(timeout.reset(random.duration(100 * NANO))),
                _ => {}
            }
            driver.advance(random.duration(10 * NANO));
        }
        driver.advance(SECOND);
        taken(&runs)
    }
    for wheel in WHEELS {
        assert_eq!(story(wheel), story(wheel), "{wheel:?}");
    }
}

#[test]
fn virtual_time_stands_still_while_a_task_runs_at_its_deadline() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let (inner, runs) = (timer.clone(), Runs::default());
    let noted = runs.clone();
    accepted(timer.new_timeout(SECOND, move |me| {
        let next = note(&inner, SECOND, &noted, 1);
        assert_eq!(next.deadline(), me.deadline() + SECOND, "the present is the deadline");
        spin(MILLI);
        assert_eq!(note(&inner, SECOND, &noted, 2).deadline(), next.deadline());
    }));
    // In one hop over both: what is due on the way runs on the way.
    assert_eq!(driver.advance(HOUR), 3);
    assert_eq!((taken(&runs), timer.stats().task_panics), (vec![1, 2], 0));
}

// B85: a huge wait returned at once, so the worker spun; here the far wait is the driver's to cut up.
#[test]
fn a_driver_with_the_farthest_timeout_names_an_instant_that_can_be_waited_for() {
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

// B88: powers of two and their neighbours as delay, as period and as uptime.
#[test]
fn a_period_of_any_magnitude_keeps_its_phase() {
    for bit in (0..57).step_by(3) {
        for period in [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1].map(Duration::from_nanos) {
            if period.is_zero() {
                continue;
            }
            let (timer, mut driver) = manual(WHEELS[0]);
            let rate = accepted(timer.schedule_at_fixed_rate(period, period, |_| {}));
            for run in 1..=3 {
                assert_eq!(driver.advance(period - NANO), 0, "{period:?}");
                assert_eq!(driver.advance(NANO), 1, "{period:?}");
                assert_eq!((driver.elapsed(), driver.next_expiry()), (run * period, Some(period)));
            }
            assert!(rate.cancel());
        }
    }
}
