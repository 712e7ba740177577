//! Many timeouts at once, with `new_timeouts` and `cancel_all`.

use crate::support::executors::KeepingExecutor;
use crate::support::ledger::Ledger;
use crate::support::panics::{BadHook, panic_on_purpose};
use crate::support::*;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread::current;
use std::time::Duration;
use timer_core::{RejectReason, Timeout, Timer};

#[test]
fn a_batch_is_like_single_calls() {
    let (timer, mut driver) = Timer::builder().max_pending_timeouts(150).build_manual().unwrap();
    let runs = Runs::default();
    let items = (0..200u32).map(|id| {
        let runs = runs.clone();
        (Duration::from_nanos(u64::from(200 - id)), move |_: &Timeout| runs.lock().unwrap().push(id))
    });
    let results = timer.new_timeouts(items);
    assert_eq!(results.len(), 200);
    for (id, result) in results.iter().enumerate() {
        match result {
            Ok(timeout) => {
                assert!(id < 150);
                assert_eq!(timeout.remaining(), Duration::from_nanos(200 - id as u64));
            }
            Err(rejected) => {
                assert!(id >= 150);
                assert_eq!(rejected.reason, RejectReason::TooManyPending { max: 150 });
            }
        }
    }
    assert_eq!((timer.pending_timeouts(), timer.stats().scheduled, timer.stats().rejected), (150, 150, 50));
    assert_eq!(driver.advance(SECOND), 150);
    assert_eq!(take_runs(&runs), (0..150).rev().collect::<Vec<_>>());
    assert_eq!(Arc::strong_count(&runs), 1 + 50, "rejected tasks return to the caller");
    drop(driver);
    let late = timer.new_timeouts([(SECOND, |_: &Timeout| {}); 3]);
    assert!(late.iter().all(|late| late.as_ref().is_err_and(|late| late.reason == RejectReason::Stopped)));
}

/// An iterator whose `size_hint` is wrong.
struct Misleading<I>(I, (usize, Option<usize>));

impl<I: Iterator> Iterator for Misleading<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.1
    }
}

#[test]
fn a_wrong_size_hint_is_harmless() {
    for hint in [(usize::MAX, None), (usize::MAX, Some(0)), (isize::MAX as usize, None), (0, Some(0)), (1, Some(1))] {
        let (timer, mut driver) = manual(WHEELS[0]);
        let tasks = (0..100).map(|_| (SECOND, |_: &Timeout| {}));
        let timeouts = timer.new_timeouts(Misleading(tasks, hint));
        assert_eq!(timeouts.iter().filter(|timeout| timeout.is_ok()).count(), 100, "{hint:?}");
        let timeouts: Vec<_> = timeouts.into_iter().flatten().collect();
        assert_eq!(Timeout::cancel_all(Misleading(timeouts[..50].iter(), hint)), 50, "{hint:?}");
        assert_eq!(driver.advance(SECOND), 50);
    }
}

/// An iterator that must not be called after its end.
struct Unfused<I>(I, Range<usize>);

impl<I: Iterator> Iterator for Unfused<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        assert!(self.1.next().is_some(), "called again after its end");
        if self.1.is_empty() { None } else { self.0.next() }
    }
}

#[test]
fn no_batch_reads_beyond_the_end_of_its_iterator() {
    for len in [0, 3, 64, 100] {
        let (timer, _driver) = manual(WHEELS[0]);
        let tasks = std::iter::repeat_with(|| (SECOND, |_: &Timeout| {}));
        let scheduled = timer.new_timeouts(Unfused(tasks, 0..len + 1));
        let timeouts: Vec<_> = scheduled.into_iter().flatten().collect();
        assert_eq!(timeouts.len(), len);
        assert_eq!(Timeout::cancel_all(Unfused(timeouts.iter().cycle(), 0..len + 1)), len);
    }
}

#[test]
fn a_batch_whose_iterator_panics_keeps_full_chunks() {
    for at in [0usize, 1, 63, 64, 65, 150] {
        let (timer, mut driver) = manual(WHEELS[0]);
        let inner = timer.clone();
        let captured = Arc::new(());
        let items = (0..200).map(|id| {
            if id == at {
                panic_on_purpose();
            }
            // Nothing is locked, so the iterator may call the timer. Its items become pending when
            // their chunk is full.
            assert!(inner.new_timeout(HOUR, |_| {}).unwrap().cancel());
            let captured = captured.clone();
            (SECOND, move |_: &Timeout| drop(captured))
        });
        assert!(catch_unwind(AssertUnwindSafe(|| timer.new_timeouts(items))).is_err());
        let stays = timer.pending_timeouts();
        assert!(stays <= at && stays.is_multiple_of(64) && at - stays < 64, "{stays} of {at}");
        assert_eq!(Arc::strong_count(&captured), 1 + stays, "the other tasks are dropped");
        assert_eq!((driver.advance(SECOND), timer.pending_timeouts()), (stays, 0));
    }
}

#[test]
fn cancel_all_goes_on_over_hooks_that_panic() {
    let (timer, _driver) = manual(WHEELS[0]);
    let ledger = Ledger::new();
    let mut ends = Vec::new();
    let all: Vec<Timeout> = (0..200)
        .map(|id| {
            if id % 3 == 0 {
                return accepted(timer.new_timeout_task(SECOND, BadHook));
            }
            let (probe, end) = ledger.probe();
            ends.push(end);
            accepted(timer.new_timeout_task(SECOND, probe))
        })
        .collect();
    assert_eq!(Timeout::cancel_all(&all), 200);
    ledger.wait();
    assert!(ends.iter().all(|end| end.counts() == (0, 1) && end.dropped_on() == Some(current().id())));
    let stats = timer.stats();
    assert_eq!((stats.pending, stats.cancelled, stats.task_panics), (0, 200, 67));
    assert_eq!(Timeout::cancel_all(&all), 0);
    assert_eq!(Timeout::cancel_all(&[]), 0);
}

#[test]
fn cancel_all_takes_two_timers_and_duplicates() {
    let pool = KeepingExecutor::default();
    let timers = [
        Timer::builder().build_manual().unwrap(),
        Timer::builder().executor(pool.clone()).max_pending_timeouts(1_000).build_manual().unwrap(),
    ];
    let [(one, mut first), (other, mut second)] = timers;
    let mut all = Vec::new();
    for id in 0..100 {
        let delay = if id % 2 == 0 { SECOND } else { HOUR };
        let pair = [accepted(one.new_timeout(delay, |_| {})), accepted(other.new_timeout(delay, |_| {}))];
        all.extend(pair.iter().cloned());
        all.extend(pair);
    }
    assert_eq!((first.advance(SECOND), second.advance(SECOND)), (50, 50));
    // The near timeouts of one timer have run, and those of the other are in its pool.
    assert_eq!(Timeout::cancel_all(&all), 50 + 100);
    assert_eq!((one.stats().cancelled, other.stats().cancelled), (50, 100));
    assert_eq!((one.pending_timeouts(), other.pending_timeouts(), other.stats().queued), (0, 0, 0));
    assert_eq!((pool.run(), other.stats().expired), (50, 0));
    // The timer of these timeouts is gone.
    let gone: Vec<Timeout> = (0..3).map(|_| accepted(one.new_timeout(HOUR, |_| {}))).collect();
    drop((one, first));
    assert_eq!(Timeout::cancel_all(&gone), 0);
}

#[test]
fn cancel_all_ends_a_running_periodic_task() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let count = Arc::new(AtomicU32::new(0));
    let counted = count.clone();
    accepted(timer.schedule_at_fixed_rate(SECOND, SECOND, move |me| {
        counted.fetch_add(Timeout::cancel_all([me, me]) as u32, SeqCst);
    }));
    assert_eq!(driver.advance(HOUR), 1);
    assert_eq!((count.load(SeqCst), timer.stats().cancelled, timer.pending_timeouts()), (1, 1, 0));
    assert_eq!(Arc::strong_count(&count), 1);
}
