//! What the tests share: patience, random numbers, a ledger of how timeouts end, and what is
//! traced.

#![allow(dead_code, unused_imports, reason = "each test binary uses a part of it")]

pub(crate) mod executors;
pub(crate) mod ledger;
pub(crate) mod log;
pub(crate) mod panics;
pub(crate) mod random;
pub(crate) mod settings;
pub(crate) mod wakers;

pub(crate) use random::{Draw, Rng};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use timer_core::{ManualDriver, RejectedTimeout, Timeout, Timer, WheelKind};

/// How long a test waits for what must come: far longer than any machine needs.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) const NANO: Duration = Duration::from_nanos(1);
pub(crate) const MICRO: Duration = Duration::from_micros(1);
pub(crate) const MILLI: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);
pub(crate) const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// Both kinds, the hashed one from a single slot on.
pub(crate) const WHEELS: [WheelKind; 4] = [
    WheelKind::Hierarchical,
    WheelKind::Hashed { ticks_per_wheel: 1 },
    WheelKind::Hashed { ticks_per_wheel: 8 },
    WheelKind::Hashed { ticks_per_wheel: 512 },
];

/// What comes next; a test that waits in vain fails.
#[track_caller]
pub(crate) fn next<T>(receiver: &Receiver<T>) -> T {
    match receiver.recv_timeout(LONG) {
        Ok(value) => value,
        Err(why) => panic!("what must come did not come: {why}"),
    }
}

/// Waits until every sender is gone.
#[track_caller]
pub(crate) fn all_gone<T>(receiver: &Receiver<T>) {
    loop {
        match receiver.recv_timeout(LONG) {
            Ok(_) => {}
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => panic!("a sender is still held"),
        }
    }
}

/// Lets `window` go by. For looking whether something happens that must not; a late test sees more,
/// not less.
pub(crate) fn watch_for(window: Duration) {
    let (_silent, receiver) = std::sync::mpsc::channel::<()>();
    assert_eq!(receiver.recv_timeout(window), Err(RecvTimeoutError::Timeout));
}

/// Waits until it is so; a test that waits in vain fails.
#[track_caller]
pub(crate) fn until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "what must come did not come");
        watch_for(MILLI);
    }
}

/// Keeps the processor busy for so long.
pub(crate) fn spin(pause: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < pause {
        std::hint::spin_loop();
    }
}

/// A timer on virtual time.
pub(crate) fn manual(wheel: WheelKind) -> (Timer, ManualDriver) {
    Timer::builder().wheel(wheel).build_manual().unwrap()
}

/// A timer with a worker, a tick of a millisecond and a name.
pub(crate) fn named(name: &str) -> Timer {
    Timer::builder().name(name).build().unwrap()
}

/// What ran, in its order.
pub(crate) type Runs = std::sync::Arc<std::sync::Mutex<Vec<u32>>>;

/// Schedules a task that records `id` when it runs.
#[track_caller]
pub(crate) fn record(timer: &Timer, delay: Duration, runs: &Runs, id: u32) -> Timeout {
    let runs = runs.clone();
    accepted(timer.new_timeout(delay, move |_| runs.lock().unwrap().push(id)))
}

/// What has been recorded, and forgets it.
pub(crate) fn taken(runs: &Runs) -> Vec<u32> {
    std::mem::take(&mut runs.lock().unwrap())
}

/// The handle of a timeout that must have been accepted.
#[track_caller]
pub(crate) fn accepted<T>(scheduled: Result<Timeout, RejectedTimeout<T>>) -> Timeout {
    match scheduled {
        Ok(timeout) => timeout,
        Err(rejected) => panic!("rejected: {rejected}"),
    }
}
