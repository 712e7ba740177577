//! Futures while the system refuses a thread for the worker. The process has no room for another
//! stack in the meantime, so this test is a binary of its own. It needs Linux.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::future::{pending, ready};
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use support::{HOUR, MILLI, accepted, next};
use timer_core::{RejectReason, TimeoutError, Timer, global};

const REFUSED: RejectReason = RejectReason::ThreadRefused;

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
fn a_poll_that_needs_a_refused_thread_fails() {
    let timer = Timer::new();
    let (sender, woken) = channel();
    let tell = Arc::new(Tell(sender));
    let waker = Waker::from(tell.clone());
    let idle = Arc::strong_count(&tell);

    let (mut sleep, far, again, due, inner, elapsed, limited, ticks) = run_without_room(|| {
        let mut sleep = timer.sleep(HOUR);
        let far = poll(&mut sleep, &waker);
        let again = poll(&mut sleep, &waker);
        let due = poll(timer.sleep(Duration::ZERO), &waker);
        let inner = poll(timer.timeout(HOUR, ready(7)), &waker);
        let elapsed = poll(timer.timeout(Duration::ZERO, pending::<()>()), &waker);
        let limited = poll(timer.timeout(HOUR, pending::<()>()), &waker);
        let mut ticks = timer.interval(HOUR);
        let ticks =
            [poll(ticks.tick(), &waker).map(|tick| tick.err()), poll(ticks.tick(), &waker).map(|tick| tick.err())];
        (sleep, far, again, due, inner, elapsed, limited, ticks)
    });
    let (mut infallible, refused_everywhere) = run_without_room(|| {
        let mut sleep = timer.infallible().sleep(HOUR);
        let polled = poll(&mut sleep, &waker);
        (sleep, polled)
    });

    assert_eq!([far, again], [Poll::Ready(Err(REFUSED)); 2]);
    assert_eq!((due, inner), (Poll::Ready(Ok(())), Poll::Ready(Ok(7))), "ready futures need no worker");
    assert_eq!(elapsed, Poll::Ready(Err(TimeoutError::Elapsed)));
    assert_eq!(limited, Poll::Ready(Err(TimeoutError::Rejected(REFUSED))));
    assert_eq!(ticks, [Poll::Ready(None), Poll::Ready(Some(REFUSED))], "the first tick is due");
    assert_eq!(refused_everywhere, Poll::Pending, "an infallible sleep waits");
    assert_eq!(Arc::strong_count(&tell), idle, "the futures keep no waker");
    let stats = timer.stats();
    assert_eq!((stats.scheduled, stats.pending, stats.cancelled), (0, 0, 0));

    // The process has room again, so the next poll finds a thread.
    infallible.reset_after(2 * MILLI);
    while poll(&mut infallible, &waker).is_pending() {
        next(&woken);
    }
    assert!(infallible.is_elapsed());
    // The same future and the global timer try again.
    let deadline = Instant::now() + 2 * MILLI;
    sleep.reset_at(deadline);
    while poll(&mut sleep, &waker) != Poll::Ready(Ok(())) {
        next(&woken);
    }
    assert!(Instant::now() >= deadline);
    assert_eq!(timer.stats().pending, 0);
    assert_eq!(poll(global::sleep(HOUR), Waker::noop()), Poll::Pending);
    accepted(timer.new_timeout(HOUR, |_| {})).cancel();
}
