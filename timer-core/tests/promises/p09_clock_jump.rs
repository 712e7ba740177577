//! 9. A jump of the clock costs levels + due timers, not ticks.
//!
//! Counted, not timed: turns and cascades are what a jump is made of. If it were ticks, these tests would not end.

use crate::support::*;
use timer_core::Timer;

// B83: catching up tick by tick for years.
#[test]
fn five_years_cost_no_more_turns_than_there_are_due_instants() {
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
fn a_far_timeout_is_moved_once_per_level_at_most_however_far_time_jumps() {
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

// B82: after a jump everything that is due runs in one turn.
#[test]
fn one_turn_runs_all_that_came_due_while_nobody_turned() {
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
