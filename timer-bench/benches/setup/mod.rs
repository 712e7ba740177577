//! The measuring time, the timers and the delays that all benches share.
#![allow(dead_code, reason = "no bench needs all of it")]

use criterion::Criterion;
use std::ops::Range;
use std::time::Duration;
use timer_bench::random::{SplitMix64, seconds};
use timer_core::{Timeout, Timer, TimerBuilder, WheelKind};

/// The number of timeouts that are scheduled, cancelled or fired between two readings of the clock.
pub(crate) const CHUNK: u64 = 10_000;

/// Returns settings of short runs that still show changes of a few percent on an idle machine.
pub(crate) fn criterion() -> Criterion {
    Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
}

/// Both wheels by their names. The hashed one turns once in about 30 s.
pub(crate) const WHEELS: [(&str, WheelKind); 2] =
    [("hierarchical", WheelKind::Hierarchical), ("hashed", WheelKind::Hashed { ticks_per_wheel: 32_768 })];

/// Returns a builder of a timer with this wheel.
pub(crate) fn builder(wheel: WheelKind) -> TimerBuilder {
    Timer::builder().wheel(wheel)
}

/// Returns delays from 10 s to an hour, so that few timeouts or none expire during a measurement.
pub(crate) fn far() -> (SplitMix64, Range<Duration>) {
    (SplitMix64::delays(0), seconds(10, 3600))
}

/// Schedules `count` timeouts with such delays.
pub(crate) fn pending(timer: &Timer, count: u64) -> Vec<Timeout> {
    let (mut random, delays) = far();
    (0..count).map(|_| timer.new_timeout(random.duration(&delays), |_| {}).unwrap()).collect()
}
