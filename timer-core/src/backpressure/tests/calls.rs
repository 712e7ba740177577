//! The calls that count towards a burst, and a poll, which does not.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::config::{Config, DrivenBy};
use crate::deadline::Deadline;
use crate::engine::Engine;
use crate::entry::{Closure, Timeout};
use crate::handle::Timer;
use crate::shard::MAX_PER_LOCK;
use crate::sync::Arc;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Instant;

const HOUR: Duration = Duration::from_secs(3600);

/// Returns `true` if the `BURST - 1` timeouts that `schedule` schedules count towards a burst. It
/// runs on a new thread and on virtual time, so the count begins at zero in a single period.
fn counts(schedule: fn(&Arc<Engine>, u64)) -> bool {
    let counted = thread::spawn(move || {
        let config = Config { may_sleep: false, ..Config::default() };
        let engine = Engine::new(config, None, DrivenBy::ManualDriver);
        let worker = &engine.context.backpressure;
        let now = engine.context.now();
        worker.set_due(now - 2 * GRACE);
        schedule(&engine, BURST - 1);
        worker.choose_slowdown(now, 1, || 0).is_some()
    });
    counted.join().unwrap()
}

#[test]
fn a_new_timeout_counts_towards_a_burst() {
    let schedule = |engine: &Arc<Engine>, n| {
        for _ in 0..n {
            let job = Closure(|_: &Timeout| {});
            assert!(engine.schedule(job, |now| Deadline::after(now, HOUR)).is_ok());
        }
    };
    assert!(counts(schedule));
    assert!(!counts(|_, _| {}), "an idle thread schedules no burst");
}

#[test]
fn a_call_of_user_code_is_recorded_with_the_pending_timeouts() {
    let seen = thread::spawn(|| {
        let engine = Engine::new(Config::default(), None, DrivenBy::ManualDriver);
        let worker = &engine.context.backpressure;
        worker.set_due(engine.context.now() - 2 * GRACE);
        let timer = Timer { engine: engine.clone() };
        let task = |_| (HOUR, |_: &Timeout| {});
        worker.inside_user_code(|| {
            let scheduled = timer.new_timeouts((0..BURST).map(task));
            assert!(scheduled.iter().all(Result::is_ok));
        });
        worker.pending_seen.load(Ordering::Relaxed)
    });
    assert_eq!(seen.join().unwrap(), BURST);
}

#[test]
fn a_poll_does_not_count_towards_a_burst() {
    assert!(!counts(|engine, n| {
        let timer = Timer { engine: engine.clone() };
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..n {
            let mut sleep = pin!(timer.sleep(HOUR));
            assert_eq!(sleep.as_mut().poll(&mut cx), Poll::Pending);
        }
        assert_eq!(timer.stats().scheduled, n, "each poll has registered a future");
    }));
}

#[test]
fn new_timeouts_count_towards_a_burst() {
    assert!(counts(|engine, n| {
        let timer = Timer { engine: engine.clone() };
        let scheduled = timer.new_timeouts((0..n).map(|_| (HOUR, |_: &Timeout| {})));
        assert!(scheduled.iter().all(Result::is_ok));
    }));
}

/// On the real clock, which the sleeps of the call take. The virtual time of the timer gives each
/// chunk a new period.
#[test]
fn a_long_batch_slows_down_again_and_again() {
    const CHUNKS: u64 = 10;
    let taken = thread::spawn(|| {
        let engine = Engine::new(Config::default(), None, DrivenBy::ManualDriver);
        let begin = engine.context.now();
        engine.context.backpressure.set_due(begin - 10_000 * GRACE);
        let per_chunk = MAX_PER_LOCK as u64;
        let tasks = (0..CHUNKS * per_chunk).map(|n| {
            engine.context.present.set(begin + (n / per_chunk) * (2 << PERIOD));
            (HOUR, |_: &Timeout| {})
        });
        let call = Instant::now();
        let timer = Timer { engine: engine.clone() };
        assert!(timer.new_timeouts(tasks).iter().all(Result::is_ok));
        call.elapsed()
    });
    let taken = taken.join().unwrap();
    assert!(taken >= Duration::from_nanos(CHUNKS * MAX_SLEEP), "{taken:?}");
}
