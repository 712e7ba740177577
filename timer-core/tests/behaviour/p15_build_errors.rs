//! Promise 15. A bad configuration is a `BuildError` that names the given value and the allowed
//! range. User input causes no panic.

use crate::support::*;
use std::error::Error;
use std::time::Duration;
use timer_core::{BuildError, RejectReason, StopError, Timer, TimerBuilder, WheelKind};

/// Checks that all three ways of building reject the configuration with the same message.
fn rejected(builder: impl Fn() -> TimerBuilder, parts: &[&str]) -> BuildError {
    let error = builder().build().unwrap_err();
    assert_eq!(builder().build_manual().unwrap_err(), error);
    assert_eq!(builder().build_driven().unwrap_err(), error);
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{text:?} does not contain {part:?}");
    }
    error
}

#[test]
fn ticks_from_a_microsecond_to_a_year_are_allowed() {
    for given in [Duration::ZERO, NANO, MICRO - NANO, YEAR + NANO, Duration::MAX] {
        let error = rejected(|| Timer::builder().tick_duration(given), &[&format!("{given:?}"), "1µs", "31536000s"]);
        assert_eq!(error, BuildError::TickDuration { given });
    }
    for allowed in [MICRO, MICRO + NANO, MILLI, YEAR] {
        assert!(Timer::builder().tick_duration(allowed).build().is_ok(), "{allowed:?}");
    }
}

#[test]
fn wheels_of_1_to_a_billion_ticks_are_allowed() {
    for given in [0, (1 << 30) + 1, usize::MAX] {
        let wheel = WheelKind::Hashed { ticks_per_wheel: given };
        let error = rejected(|| Timer::builder().wheel(wheel), &[&given.to_string(), "1 to 1073741824"]);
        assert_eq!(error, BuildError::TicksPerWheel { given });
    }
    for ticks_per_wheel in [1, 3, 1_000, 1 << 30] {
        let (timer, mut driver) = manual(WheelKind::Hashed { ticks_per_wheel });
        accepted(timer.new_timeout(HOUR, |_| {}));
        assert_eq!(driver.advance(HOUR), 1);
    }
}

#[test]
fn a_bound_of_one_and_more_is_allowed() {
    let error = rejected(|| Timer::builder().max_pending_timeouts(0), &["0", "1 or more"]);
    assert_eq!(error, BuildError::MaxPendingTimeouts { given: 0 });
    for max in [1, usize::MAX] {
        let (timer, _driver) = Timer::builder().max_pending_timeouts(max).build_manual().unwrap();
        accepted(timer.new_timeout(SECOND, |_| {}));
    }
}

#[test]
fn any_name_without_a_nul_is_allowed() {
    let error = rejected(|| Timer::builder().name("a\0b"), &["a\\0b", "NUL"]);
    assert_eq!(error, BuildError::Name { given: "a\0b".to_owned() });
    let long = "x".repeat(10_000);
    for name in ["", "timer", "ü {} %s \n", &long] {
        let timer = named(name);
        assert_eq!((timer.name(), timer.start()), (name, Ok(())));
    }
}

#[test]
fn a_worker_has_the_name_of_its_timer() {
    let timer = named("rpc-deadlines");
    let (ran, received) = std::sync::mpsc::channel();
    let task = move |_: &_| ran.send(std::thread::current().name().map(str::to_owned)).unwrap();
    accepted(timer.new_timeout(Duration::ZERO, task));
    assert_eq!(next(&received).as_deref(), Some("rpc-deadlines"));
}

// Guards against a fault in which a period below the resolution panicked in the timer's thread.
#[test]
fn a_period_of_zero_is_rejected_at_the_call() {
    let (timer, _driver) = manual(WHEELS[0]);
    let rejected = timer.schedule_at_fixed_rate(SECOND, Duration::ZERO, |_| {}).unwrap_err();
    assert_eq!(rejected.reason, RejectReason::ZeroPeriod);
    assert!(rejected.to_string().contains("at least 1 ns"), "{rejected}");
    let rejected = timer.schedule_with_fixed_delay(SECOND, Duration::ZERO, |_| {}).unwrap_err();
    assert_eq!(rejected.reason, RejectReason::ZeroPeriod);
    assert_eq!(timer.pending_timeouts(), 0);
}

#[test]
fn every_error_is_a_standard_error_with_a_reason() {
    let (timer, driver) = Timer::builder().max_pending_timeouts(1).build_manual().unwrap();
    accepted(timer.new_timeout(SECOND, |_| {}));
    let full: Box<dyn Error> = Box::new(timer.new_timeout(SECOND, |_| {}).unwrap_err());
    assert!(full.to_string().contains("bound of 1"), "{full}");
    drop(driver);
    let stopped: Box<dyn Error> = Box::new(timer.new_timeout(SECOND, |_| {}).unwrap_err());
    assert!(stopped.to_string().contains("stopped"), "{stopped}");
    for error in [&RejectReason::Stopped as &dyn Error, &StopError::OnWorker, &StopError::Driven] {
        assert!(error.to_string().len() > 10);
    }
}
