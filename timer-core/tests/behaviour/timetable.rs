//! The timetable against the timeouts that then run.

use crate::support::{Draw, HOUR, Rng, SECOND, WHEELS, manual};
use std::time::Duration;
use timer_core::{ManualDriver, Timeout, Timer, WheelKind};

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

/// Schedules timeouts with random delays of all lengths up to four days.
fn schedule(timer: &Timer, count: usize, random: &mut Rng) -> Vec<Timeout> {
    let mut delay = || {
        let longest = (4 * DAY.as_nanos() as u64) >> random.u32(..22);
        random.duration(Duration::from_nanos(longest))
    };
    timer.new_timeouts((0..count).map(|_| (delay(), |_: &Timeout| {}))).into_iter().map(Result::unwrap).collect()
}

/// Asserts that the number due within each bound differs from the number that runs by at most
/// `tolerance` of it.
#[track_caller]
fn assert_true(timer: &Timer, driver: &mut ManualDriver, tolerance: f64) {
    let timetable = timer.timetable();
    assert_eq!(timetable.waiting(), timer.pending_timeouts() as u64);
    let mut ran = 0;
    let mut now = Duration::ZERO;
    for bound in [Duration::ZERO, SECOND, 10 * SECOND, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY] {
        ran += driver.advance(bound - now);
        now = bound;
        let error = (timetable.due_within(bound) as f64 - ran as f64).abs();
        assert!(error <= tolerance * ran as f64, "{bound:?}: {} instead of {ran}", timetable.due_within(bound));
    }
}

/// A million timeouts, or fewer in a debug build.
const MILLION: usize = if cfg!(debug_assertions) { 200_000 } else { 1_000_000 };

#[test]
fn a_million_timeouts_run_as_the_timetable_says() {
    let (timer, mut driver) = manual(WheelKind::Hierarchical);
    drop(schedule(&timer, MILLION, &mut Rng::with_seed(1)));
    assert_true(&timer, &mut driver, 0.01);
}

#[test]
fn cancels_and_resets_move_the_numbers() {
    for (nth, wheel) in WHEELS.into_iter().enumerate() {
        // All timeouts are compared with their entries, or some of them. A hashed wheel knows near
        // ones only with the error of all.
        let many = if wheel == WheelKind::Hierarchical { 130_000 } else { 0 };
        for (count, tolerance) in [(8_000, 0.0), (many, 0.01)] {
            let (timer, mut driver) = manual(wheel);
            let mut random = Rng::with_seed(nth as u64);
            // Buckets cascade, and one of them is in the middle of it.
            let timeouts = schedule(&timer, count, &mut random);
            driver.advance(random.duration(HOUR));
            for timeout in timeouts {
                match random.u32(..4) {
                    0 => drop(timeout.cancel()),
                    1 => drop(timeout.reset(random.duration(2 * HOUR))),
                    2 => drop(timeout.reset(random.duration(DAY))),
                    _ => {}
                }
            }
            assert_true(&timer, &mut driver, tolerance);
            timer.new_timeout(SECOND, |_| {}).unwrap();
            drop(driver.stop());
            assert_eq!(timer.timetable().waiting(), 0);
        }
    }
}
