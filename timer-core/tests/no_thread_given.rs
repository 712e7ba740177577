//! Futures while the system refuses a thread for the worker. The process has no room for another
//! stack in the meantime, so this test is a separate binary. It needs Linux.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use support::{HOUR, MILLI, accepted, next};
use timer_core::{RejectReason, Timer};

struct Tell(Sender<()>);

impl Wake for Tell {
    fn wake(self: Arc<Self>) {
        let _ = self.0.send(());
    }
}

fn poll<F: Future>(future: F, waker: &Waker) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(waker))
}

/// Runs `work` while the process has no room for another thread's stack.
fn run_without_room<R>(work: impl FnOnce() -> R) -> R {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let size: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    let before = getrlimit(Resource::As);
    setrlimit(Resource::As, Rlimit { current: Some((size + 512) << 10), maximum: before.maximum }).unwrap();
    let result = work();
    setrlimit(Resource::As, before).unwrap();
    result
}

#[test]
fn a_sleep_waits_until_a_thread_is_given() {
    let timer = Timer::new();
    let (sender, woken) = channel();
    let tell = Arc::new(Tell(sender));
    let waker = Waker::from(tell.clone());
    let idle = Arc::strong_count(&tell);

    let (mut sleep, polls) = run_without_room(|| {
        assert_eq!(timer.start(), Err(RejectReason::ThreadRefused));
        let mut sleep = timer.sleep(HOUR);
        let polls = [poll(&mut sleep, &waker), poll(&mut sleep, &waker), poll(timer.sleep(Duration::ZERO), &waker)];
        (sleep, polls)
    });
    assert_eq!(polls, [Poll::Pending, Poll::Pending, Poll::Ready(())]);
    assert_eq!(Arc::strong_count(&tell), idle, "the future keeps no waker");
    let stats = timer.stats();
    assert_eq!((stats.scheduled, stats.pending, stats.cancelled), (0, 0, 0));

    // The process has room again, so the next poll finds a thread.
    sleep.reset_after(2 * MILLI);
    let deadline = sleep.deadline();
    while poll(&mut sleep, &waker).is_pending() {
        next(&woken);
    }
    assert!(Instant::now() >= deadline && sleep.is_elapsed());
    accepted(timer.new_timeout(HOUR, |_| {})).cancel();
    assert_eq!(timer.stats().pending, 0);
}
