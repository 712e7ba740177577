//! Promise 8. Any delay is valid, such as zero, 1 ns or `Duration::MAX`. At every uptime, far
//! timeouts wait and do not wrap, run early or get lost.

use crate::support::*;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use timer_core::{ManualDriver, Timer};

/// Returns uptimes around each edge of wheels, words and encodings. Tests first advance virtual
/// time to them.
fn uptimes() -> impl Iterator<Item = Duration> {
    let edges = [0u32, 6, 12, 30, 36, 48, 54, 58, 59].map(|bit| Duration::from_nanos(1 << bit));
    let around = edges.into_iter().flat_map(|edge| [edge.saturating_sub(NANO), edge, edge + 12_345 * NANO]);
    around.chain([12 * YEAR, 18 * YEAR, 19 * YEAR, 200 * YEAR, 500 * YEAR])
}

/// Returns the time, counted from the driver's start, at which a timeout is due that was scheduled
/// for `after`. Deadlines are exact until the clock reads 2^59 ns, and rounded up to 32 ns after
/// that.
fn rounded(driver: &ManualDriver, after: Duration) -> Duration {
    let at = u128::from(driver.origin()) + after.as_nanos();
    let rounded = if at < 1 << 59 { at } else { at.next_multiple_of(32) };
    after + Duration::from_nanos((rounded - at) as u64)
}

/// Returns the latest possible present, counted from the driver's start.
fn end_of_time(driver: &ManualDriver) -> Duration {
    Duration::from_nanos(u64::MAX - 1 - driver.origin())
}

// Guards against B21 and B22, in which now + delay overflowed and the timeout fired at once.
#[test]
fn the_farthest_delays_wait_at_any_uptime() {
    for wheel in WHEELS {
        for uptime in uptimes() {
            let (timer, mut driver) = manual(wheel);
            driver.advance(uptime);
            let far = [
                Duration::MAX,
                Duration::MAX - NANO,
                Duration::MAX - uptime,
                end_of_time(&driver) - uptime + NANO,
                Duration::from_nanos(u64::MAX),
                Duration::from_millis(u64::MAX),
                Duration::from_secs(u64::MAX / 1_000),
            ];
            let timeouts = far.map(|delay| accepted(timer.new_timeout(delay, |_| {})));
            let near = accepted(timer.new_timeout(MILLI, |_| {}));
            let never = driver.now() + (end_of_time(&driver) - uptime + NANO);
            assert!(timeouts.iter().all(|timeout| timeout.deadline() == never));
            let due = rounded(&driver, uptime + MILLI) - uptime;
            assert_eq!(driver.advance(due - NANO), 0, "{wheel:?} at {uptime:?}");
            assert_eq!(driver.advance(NANO), 1, "{wheel:?} at {uptime:?}");
            assert!(near.is_expired());
            assert_eq!(driver.advance(Duration::MAX), 0, "{wheel:?} at {uptime:?}");
            assert_eq!(driver.elapsed(), end_of_time(&driver), "584 years");
            assert_eq!(timer.pending_timeouts(), far.len());
            assert!(timeouts.iter().all(|timeout| timeout.cancel()));
            assert_eq!((timer.pending_timeouts(), driver.next_expiry()), (0, None));
        }
    }
}

// Guards against B18, B24 and B88, in which delays longer than the wheel, beyond its range or
// around a power of two came early or never.
#[test]
fn every_delay_runs_at_its_deadline_at_any_uptime() {
    for wheel in WHEELS {
        for uptime in uptimes() {
            let (timer, mut driver) = manual(wheel);
            driver.advance(uptime);
            let edges = (0..60).step_by(3).map(|bit| Duration::from_nanos(1 << bit));
            let delays: Vec<Duration> = edges.flat_map(|edge| [edge - NANO, edge, edge + NANO]).collect();
            for &delay in &delays {
                accepted(timer.new_timeout(delay, |_| {}));
            }
            let due: Vec<Duration> = delays
                .iter()
                // A zero delay is due at the present, which is rounded down.
                .map(|&delay| if delay.is_zero() { uptime } else { rounded(&driver, uptime + delay) })
                .collect();
            for &at in &due {
                for step in [(at - driver.elapsed().min(at)).saturating_sub(NANO), NANO] {
                    driver.advance(step);
                    let ran = due.iter().filter(|due| **due <= driver.elapsed()).count() as u64;
                    assert_eq!(timer.stats().expired, ran, "around {at:?}, {wheel:?} at {uptime:?}");
                }
            }
            assert_eq!((timer.stats().expired, timer.pending_timeouts()), (60, 0), "{wheel:?} at {uptime:?}");
        }
    }
}

#[test]
fn the_farthest_timeouts_outlast_the_end_of_time() {
    for wheel in WHEELS {
        let (timer, mut driver) = manual(wheel);
        let never = accepted(timer.new_timeout(Duration::MAX, |_| {}));
        // The last instant that a deadline can represent.
        let last = accepted(timer.new_timeout(Duration::from_nanos(u64::MAX - 31 - driver.origin()), |_| {}));
        let beyond = accepted(timer.new_timeout(Duration::from_nanos(u64::MAX - 30 - driver.origin()), |_| {}));
        assert_eq!(driver.advance(Duration::MAX), 1);
        assert!(last.is_expired() && !beyond.is_expired() && beyond.cancel());
        // Time stands still from here on, and calls still work.
        let now = driver.elapsed();
        assert_eq!((driver.advance(YEAR), driver.elapsed()), (0, now));
        accepted(timer.new_timeout(Duration::ZERO, |_| {}));
        assert_eq!(driver.advance(Duration::ZERO), 1);
        for delay in [NANO, SECOND, Duration::MAX] {
            assert!(accepted(timer.new_timeout(delay, |_| {})).cancel());
        }
        assert!(!never.is_expired() && never.reset(Duration::ZERO));
        assert_eq!(driver.advance(Duration::ZERO), 1, "{wheel:?}");
    }
}

#[test]
fn extreme_delays_harm_no_worker_of_any_tick() {
    for wheel in WHEELS {
        for tick in [MICRO, Duration::from_micros(1_500), YEAR] {
            let timer = Timer::builder().wheel(wheel).tick_duration(tick).build().unwrap();
            let far = [Duration::MAX, Duration::MAX - NANO, Duration::from_nanos(u64::MAX), 500 * YEAR]
                .map(|delay| accepted(timer.new_timeout(delay, |_| panic!("early"))));
            let farthest = Instant::now() + 100 * YEAR;
            accepted(timer.new_timeout_at(farthest, |_| panic!("early")));
            assert!(far.iter().all(|timeout| timeout.deadline() > Instant::now() + 100 * YEAR));
            let (ran, received) = channel();
            accepted(timer.new_timeout(Duration::ZERO, move |_| ran.send(()).unwrap()));
            next(&received);
            assert!(far[0].reset(Duration::MAX) && far[1].cancel());
            assert_eq!(timer.stop().unwrap().len(), 4);
            assert_eq!(timer.stats().task_panics, 0);
        }
    }
}

// Guards against B88, an overflow in an interval.
#[test]
fn extreme_periods_are_periods() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let rate = accepted(timer.schedule_at_fixed_rate(Duration::ZERO, Duration::MAX, |_| {}));
    let delay = accepted(timer.schedule_with_fixed_delay(Duration::ZERO, Duration::MAX, |_| {}));
    accepted(timer.schedule_at_fixed_rate(Duration::MAX, NANO, |_| {}));
    assert_eq!(driver.advance(500 * YEAR), 2);
    assert!(rate.cancel() && delay.cancel());
    let fast = accepted(timer.schedule_at_fixed_rate(Duration::ZERO, NANO, |_| {}));
    assert_eq!(driver.advance(Duration::from_micros(0)), 1);
    assert!(fast.cancel());
}

// Guards against B88, with powers of two and their neighbors as delay, as period and as uptime.
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

#[test]
fn hops_end_although_a_timeout_never_comes() {
    let (timer, mut driver) = manual(WHEELS[0]);
    accepted(timer.new_timeout(Duration::MAX, |_| {}));
    let mut hops = 0;
    while let Some(next) = driver.next_expiry() {
        driver.advance(next);
        hops += 1;
        assert!(hops < 10, "endless: {next:?} to go at {:?}", driver.elapsed());
    }
    assert_eq!(timer.pending_timeouts(), 1);
}
