//! Shared parts of the tests: waiting with a limit, random numbers, a ledger of ended tasks, and
//! traced events.

#![allow(dead_code, unused_imports, reason = "each test binary uses a part of it")]

pub(crate) mod executors;
pub(crate) mod ledger;
pub(crate) mod log;
pub(crate) mod panics;
pub(crate) mod random;
pub(crate) mod wakers;

pub(crate) use random::{Draw, Rng};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use timer_core::{ManualDriver, ScheduleError, Timeout, Timer, WheelKind};

/// The time a test waits for an event. No machine needs as much.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(60);

pub(crate) const NANO: Duration = Duration::from_nanos(1);
pub(crate) const MICRO: Duration = Duration::from_micros(1);
pub(crate) const MILLI: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);
pub(crate) const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// Both kinds of wheel, with hashed ones of several sizes.
pub(crate) const WHEELS: [WheelKind; 4] = [
    WheelKind::Hierarchical,
    WheelKind::Hashed { ticks_per_wheel: 1 },
    WheelKind::Hashed { ticks_per_wheel: 8 },
    WheelKind::Hashed { ticks_per_wheel: 512 },
];

/// Returns the next message, or fails if none comes.
#[track_caller]
pub(crate) fn next<T>(receiver: &Receiver<T>) -> T {
    match receiver.recv_timeout(MAX_WAIT) {
        Ok(value) => value,
        Err(error) => panic!("no message came: {error}"),
    }
}

/// Waits until every sender is gone.
#[track_caller]
pub(crate) fn all_gone<T>(receiver: &Receiver<T>) {
    loop {
        match receiver.recv_timeout(MAX_WAIT) {
            Ok(_) => {}
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => panic!("a sender is still held"),
        }
    }
}

/// Waits for `window`, during which the test watches for an event that must not occur. A late test
/// sees more events, not fewer.
pub(crate) fn watch_for(window: Duration) {
    let (_silent, receiver) = std::sync::mpsc::channel::<()>();
    assert_eq!(receiver.recv_timeout(window), Err(RecvTimeoutError::Timeout));
}

/// Waits until `condition` holds, or fails.
#[track_caller]
pub(crate) fn wait_until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < MAX_WAIT, "the condition never became true");
        watch_for(MILLI);
    }
}

/// Keeps the CPU busy for `pause`.
pub(crate) fn spin(pause: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < pause {
        std::hint::spin_loop();
    }
}

/// Returns a timer on virtual time.
pub(crate) fn manual(wheel: WheelKind) -> (Timer, ManualDriver) {
    Timer::builder().wheel(wheel).build_manual().unwrap()
}

/// Returns a timer with a name, a worker and a tick of a millisecond.
pub(crate) fn named(name: &str) -> Timer {
    Timer::builder().name(name).build().unwrap()
}

/// The ids of the tasks that ran, in order.
pub(crate) type Runs = std::sync::Arc<std::sync::Mutex<Vec<u32>>>;

/// Schedules a task that records `id` when it runs.
#[track_caller]
pub(crate) fn record(timer: &Timer, delay: Duration, runs: &Runs, id: u32) -> Timeout {
    let runs = runs.clone();
    accepted(timer.new_timeout(delay, move |_| runs.lock().unwrap().push(id)))
}

/// Returns the recorded ids and clears the record.
pub(crate) fn take_runs(runs: &Runs) -> Vec<u32> {
    std::mem::take(&mut runs.lock().unwrap())
}

/// Returns the handle of a timeout that must be accepted.
#[track_caller]
pub(crate) fn accepted<T>(scheduled: Result<Timeout, ScheduleError<T>>) -> Timeout {
    match scheduled {
        Ok(timeout) => timeout,
        Err(rejected) => panic!("rejected: {rejected}"),
    }
}
