//! Children that are forked while other threads build, use and drop timers. It needs Linux.

#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use fork::{Fork, fork};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use support::{MAX_WAIT, MICRO, MILLI, SECOND, next, watch_for};
use timer_core::Timer;

/// A lock around the lease of shards would hang about one child in a hundred.
const CHILDREN: usize = 500;

/// The children that use workers. Each takes 60 ms of CPU in an unoptimized test.
const BUSY_CHILDREN: usize = if cfg!(debug_assertions) { 100 } else { 500 };

/// Builds a timer and runs a timeout on it. Returns `true` if it has run.
fn use_timer() -> bool {
    let Ok((timer, mut driver)) = Timer::builder().build_manual() else { return false };
    timer.new_timeout(SECOND, |_| {}).is_ok() && driver.advance(SECOND) == 1
}

/// Runs a timeout on each of several timers whose worker is asleep. Returns `true` if all of them
/// have run.
fn use_workers() -> bool {
    let timers: Vec<_> = (0..16).map_while(|_| Timer::builder().build().ok()).collect();
    let (ran, runs) = channel();
    for delay in [MILLI, Duration::ZERO] {
        for timer in &timers {
            let ran = ran.clone();
            if timer.new_timeout(delay, move |_| _ = ran.send(())).is_err() {
                return false;
            }
        }
        if timers.iter().any(|_| runs.recv_timeout(MAX_WAIT).is_err()) {
            return false;
        }
    }
    timers.len() == 16
}

/// Returns `true` if a child that calls `work` ends in time and without an error.
///
/// The child ends by a signal, because `std::process::exit` takes a lock of std. A thread of the
/// parent that starts or ends may hold this lock at the `fork`.
fn child_succeeds(work: fn() -> bool) -> bool {
    let child = match fork().unwrap() {
        Fork::Child => {
            let end = if work() { Signal::USR1 } else { Signal::ABORT };
            kill_process(getpid(), end).unwrap();
            unreachable!("the signal ends the process");
        }
        Fork::Parent(child) => Pid::from_raw(child).unwrap(),
    };
    let begun = Instant::now();
    while begun.elapsed() < MAX_WAIT {
        if let Some((_, status)) = waitpid(Some(child), WaitOptions::NOHANG).unwrap() {
            return status.terminating_signal() == Some(Signal::USR1.as_raw());
        }
        watch_for(100 * MICRO);
    }
    kill_process(child, Signal::KILL).unwrap();
    waitpid(Some(child), WaitOptions::empty()).unwrap();
    false
}

#[test]
fn a_child_can_build_a_timer() {
    assert!(use_timer(), "the first timer of the process");
    let is_over = AtomicBool::new(false);
    let used = std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    assert!(use_timer());
                }
            });
        }
        let used = (0..CHILDREN).take_while(|_| child_succeeds(use_timer)).count();
        is_over.store(true, Ordering::Relaxed);
        used
    });
    assert_eq!(used, CHILDREN, "the next child hangs or fails");
}

#[test]
fn a_child_can_use_workers() {
    assert!(use_workers());
    let is_over = AtomicBool::new(false);
    let used = std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let timer = Timer::new();
                while !is_over.load(Ordering::Relaxed) {
                    let (ran, runs) = channel();
                    timer.new_timeout(Duration::ZERO, move |_| ran.send(()).unwrap()).unwrap();
                    next(&runs);
                }
            });
        }
        let used = (0..BUSY_CHILDREN).take_while(|_| child_succeeds(use_workers)).count();
        is_over.store(true, Ordering::Relaxed);
        used
    });
    assert_eq!(used, BUSY_CHILDREN, "the next child hangs or fails");
}
