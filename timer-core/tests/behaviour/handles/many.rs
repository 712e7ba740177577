//! Many timeouts at once, with `new_timeouts` and `cancel_all`.

use crate::support::executors::KeepingExecutor;
use crate::support::panics::panic_on_purpose;
use crate::support::*;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use timer_core::{Timeout, Timer};

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
