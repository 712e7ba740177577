//! Promise 9. The cost of a clock jump depends on the levels and the due timeouts, not on the
//! ticks.
//!
//! The tests count turns and cascades instead of measuring time. If the cost depended on ticks,
//! they would not end.

use crate::support::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use timer_core::{Timer, WheelKind};

// Guards against B83, in which the timer caught up tick by tick for years.
#[test]
fn five_years_cost_a_turn_for_each_due_instant() {
    for wheel in WHEELS {
        let (timer, mut driver) = manual(wheel);
        accepted(timer.new_timeout(20 * YEAR, |_| {}));
        assert_eq!(driver.advance(5 * YEAR), 0);
        assert_eq!(timer.stats().turns, 0, "{wheel:?}");
        for month in 1..=60 {
            accepted(timer.new_timeout(month * YEAR / 12, |_| {}));
        }
        assert_eq!(driver.advance(5 * YEAR), 60);
        let stats = timer.stats();
        assert!(stats.turns <= 2 * 60, "{} turns, {wheel:?}", stats.turns);
    }
}

#[test]
fn a_far_timeout_is_moved_once_per_level_at_most() {
    let (timer, mut driver) = manual(WHEELS[0]);
    for _ in 0..100 {
        accepted(timer.new_timeout(17 * YEAR, |_| {}));
    }
    for _ in 0..1_000 {
        driver.advance(6 * 86_400 * SECOND);
    }
    driver.advance(YEAR);
    let stats = timer.stats();
    assert_eq!(stats.expired, 100);
    assert!(stats.cascaded <= 100 * 11, "{} moves", stats.cascaded);
    assert!(stats.turns <= 20, "{} turns", stats.turns);
}

// Guards against B82. After a jump, one turn runs everything that is due.
#[test]
fn one_turn_runs_all_due_timeouts_after_a_jump() {
    for wheel in WHEELS {
        let (timer, mut driver) = Timer::builder().wheel(wheel).tick_duration(MICRO).build_driven().unwrap();
        for micros in 0..1_000 {
            accepted(timer.new_timeout(micros * MICRO, |_| {}));
        }
        accepted(timer.new_timeout(HOUR, |_| {}));
        spin(2 * MILLI);
        assert_eq!(driver.turn().expired, 1_000, "{wheel:?}");
        assert_eq!(timer.stats().turns, 1);
    }
}

// Guards against B81, in which the clock went back in virtual machines.
#[test]
fn deadlines_from_before_the_timer_do_no_harm() {
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

// Guards against B87, in which the test clock overshot, could not step less than a tick, or moved
// on although work was ready.
#[test]
fn virtual_time_is_exact() {
    for wheel in WHEELS {
        // Virtual time ignores the tick of the real clock.
        let (timer, mut driver) = Timer::builder().wheel(wheel).tick_duration(YEAR).build_manual().unwrap();
        let (times, begun) = (Arc::new(Mutex::new(Vec::new())), driver.now());
        let mut random = Rng::with_seed(87);
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
        assert_eq!(*times.lock().unwrap(), delays, "tasks run in the order of their deadlines, {wheel:?}");
    }
}

#[test]
fn virtual_time_is_repeatable() {
    fn story(wheel: WheelKind) -> Vec<u32> {
        let (timer, mut driver) = manual(wheel);
        let runs = Runs::default();
        let mut random = Rng::with_seed(7);
        for id in 0..300 {
            let timeout = record(&timer, random.duration(100 * NANO), &runs, id);
            match random.u64(..4) {
                0 => drop(timeout.cancel()),
                1 => drop(timeout.reset(random.duration(100 * NANO))),
                _ => {}
            }
            driver.advance(random.duration(10 * NANO));
        }
        driver.advance(SECOND);
        take_runs(&runs)
    }
    for wheel in WHEELS {
        assert_eq!(story(wheel), story(wheel), "{wheel:?}");
    }
}

#[test]
fn virtual_time_stands_still_while_a_task_runs() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let (inner, runs) = (timer.clone(), Runs::default());
    let recorded = runs.clone();
    accepted(timer.new_timeout(SECOND, move |me| {
        let next = record(&inner, SECOND, &recorded, 1);
        assert_eq!(next.deadline(), me.deadline() + SECOND, "the present is the deadline of the task");
        spin(MILLI);
        assert_eq!(record(&inner, SECOND, &recorded, 2).deadline(), next.deadline());
    }));
    // One call passes both deadlines and runs their tasks on the way.
    assert_eq!(driver.advance(HOUR), 3);
    assert_eq!((take_runs(&runs), timer.stats().task_panics), (vec![1, 2], 0));
}
