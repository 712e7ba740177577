//! The log on the real clock, so fast that every timeout is late and the replay falls behind. The
//! sessions are exact nevertheless. No assertion here depends on a duration.
#![allow(clippy::unwrap_used, reason = "a test panics on an unexpected error")]

mod oracle;

use std::time::Duration;

use examples::sessions::args::{Clock, Executor, Options, Wheel};
use examples::sessions::log::Log;
use examples::sessions::replay::{replay, timer};

fn check(options: &Options) {
    let log = Log::parse(oracle::CSV.as_bytes()).unwrap();
    let outcome = replay(&log, options, timer(options), &mut |_| {}).unwrap();
    let mut rows: Vec<_> =
        outcome.sessions.iter().map(|s| (s.first, log.hosts[s.host].clone(), s.last, s.requests)).collect();
    rows.sort();
    let wanted = oracle::sessions(oracle::CSV, options.idle);
    assert_eq!(rows.len(), wanted.len(), "{options:?}");
    assert_eq!(rows, wanted, "{options:?}");
    assert_eq!(outcome.counts.ran, outcome.counts.opened + outcome.counts.rearmed);
}

fn at_speed(speed: u32, wheel: Wheel, executor: Executor) -> Options {
    Options { clock: Clock::Real { speed }, wheel, executor, ..Options::default() }
}

const EXECUTORS: [Executor; 3] = [Executor::Immediate, Executor::Rayon, Executor::ThreadPool];

#[test]
fn hashed_gives_2989_with_every_executor() {
    for executor in EXECUTORS {
        check(&at_speed(100_000, Wheel::Hashed, executor));
    }
}

#[test]
fn hierarchical_gives_2989_with_every_executor() {
    for executor in EXECUTORS {
        check(&at_speed(100_000, Wheel::Hierarchical, executor));
    }
}

#[test]
fn exact_at_the_greatest_speed_and_least_idle_time() {
    // A second of the log is a microsecond, so the replay is always behind and timeouts overtake
    // it.
    check(&Options { idle: 1, ..at_speed(1_000_000, Wheel::Hierarchical, Executor::Immediate) });
    for executor in EXECUTORS {
        check(&Options { idle: 60, ..at_speed(1_000_000, Wheel::Hashed, executor) });
    }
}

#[test]
fn exact_when_a_tick_is_thousands_of_log_seconds() {
    let tick = Duration::from_millis(50);
    for idle in [60, 1800] {
        check(&Options { idle, tick, ..at_speed(100_000, Wheel::Hierarchical, Executor::Rayon) });
    }
}
