//! 4. `pending_timeouts` is exact at quiet: it falls when the task starts, is cancelled or handed back,
//!    never twice; a rejected call changes nothing.

use crate::support::executors::{Later, panic_on_purpose};
use crate::support::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};
use timer_core::{RejectReason, Timeout, Timer, TimerStats};

/// Every count that a call can change.
fn counts(stats: &TimerStats) -> [u64; 6] {
    [stats.pending, stats.scheduled, stats.expired, stats.cancelled, stats.runs, stats.task_panics]
}

/// Both ways of counting: without a bound, and with one.
fn both() -> [(Timer, timer_core::ManualDriver); 2] {
    [Timer::builder().build_manual().unwrap(), Timer::builder().max_pending_timeouts(100).build_manual().unwrap()]
}

#[test]
fn each_end_counts_once_however_often_it_is_asked_for() {
    for (timer, mut driver) in both() {
        let cancelled = accepted(timer.new_timeout(SECOND, |_| {}));
        let expired = accepted(timer.new_timeout(SECOND, |_| {}));
        let panicked = accepted(timer.new_timeout(SECOND, |_| panic_on_purpose()));
        let left = accepted(timer.new_timeout(HOUR, |_| {}));
        assert_eq!(timer.pending_timeouts(), 4);
        assert!(cancelled.cancel());
        assert_eq!(timer.pending_timeouts(), 3);
        assert!(!cancelled.cancel() && !cancelled.reset(SECOND));
        assert_eq!(timer.pending_timeouts(), 3);
        assert_eq!(driver.advance(SECOND), 2);
        assert_eq!(timer.pending_timeouts(), 1);
        for ended in [&cancelled, &expired, &panicked] {
            assert!(!ended.cancel() && !ended.reset(SECOND));
        }
        assert_eq!(timer.pending_timeouts(), 1);
        let unprocessed = driver.stop();
        assert_eq!((unprocessed.len(), timer.pending_timeouts()), (1, 0));
        drop(unprocessed);
        assert!(!left.cancel() && left.is_cancelled());
        assert_eq!(counts(&timer.stats()), [0, 4, 2, 2, 2, 1]);
    }
}

#[test]
fn a_periodic_task_is_one_pending_timeout_until_it_ends() {
    for (timer, mut driver) in both() {
        let rate = accepted(timer.schedule_at_fixed_rate(SECOND, SECOND, |_| {}));
        let mut runs = 0;
        let last = accepted(timer.schedule_with_fixed_delay(SECOND, SECOND, move |_| {
            runs += 1;
            if runs == 3 {
                panic_on_purpose();
            }
        }));
        assert_eq!(driver.advance(2 * SECOND), 4);
        assert_eq!(timer.pending_timeouts(), 2);
        assert_eq!(driver.advance(10 * SECOND), 11);
        assert_eq!(timer.pending_timeouts(), 1, "a panic ends a periodic task");
        assert!(last.is_expired() && !last.cancel());
        assert!(rate.cancel() && !rate.cancel());
        assert_eq!(counts(&timer.stats()), [0, 2, 1, 1, 15, 1]);
    }
}

#[test]
fn the_count_falls_when_the_task_starts_not_before() {
    for bound in [None, Some(2)] {
        let pool = Later::default();
        let builder = Timer::builder().executor(pool.clone());
        let builder = bound.map_or(Timer::builder().executor(pool.clone()), |max| builder.max_pending_timeouts(max));
        let (timer, mut driver) = builder.build_manual().unwrap();
        let (inner, seen) = (timer.clone(), Arc::new(AtomicUsize::new(usize::MAX)));
        let inside = seen.clone();
        let once = accepted(timer.new_timeout(SECOND, move |_| inside.store(inner.pending_timeouts(), SeqCst)));
        let rate = accepted(timer.schedule_at_fixed_rate(SECOND, SECOND, |_| {}));
        assert_eq!(driver.advance(SECOND), 2, "handed over");
        let stats = timer.stats();
        assert_eq!((stats.pending, stats.expired, stats.runs, stats.queued), (2, 0, 2, 2));
        assert!(!once.is_expired() && !rate.is_expired());
        let full = timer.new_timeout(HOUR, |_| {}).map(|timeout| timeout.cancel());
        assert_eq!(full.is_err(), bound.is_some(), "what waits in a pool's queue has its place");
        assert_eq!(pool.run(), 2);
        let stats = timer.stats();
        assert_eq!((seen.load(SeqCst), stats.pending, stats.expired, stats.queued), (1, 1, 1, 0));
        assert!(once.is_expired() && rate.cancel());
        assert_eq!(timer.pending_timeouts(), 0);
    }
}

// B04: the count fell only after the run, so a task at the bound could not schedule itself again.
#[test]
fn a_task_at_the_bound_may_schedule_itself_again() {
    fn again(timer: &Timer, left: u32) {
        let inner = timer.clone();
        let next = move |_: &Timeout| {
            if left > 0 {
                again(&inner, left - 1);
            }
        };
        accepted(timer.new_timeout(MILLI, next));
    }
    let (timer, mut driver) = Timer::builder().max_pending_timeouts(1).build_manual().unwrap();
    again(&timer, 99);
    assert_eq!(driver.advance(SECOND), 100);
    assert_eq!(timer.stats().rejected, 0);
}

#[test]
fn rejected_calls_change_no_counter_but_their_own() {
    let (timer, driver) = Timer::builder().max_pending_timeouts(2).build_manual().unwrap();
    let held = [(); 2].map(|()| accepted(timer.new_timeout(HOUR, |_| {})));
    let before = timer.stats();
    let full = RejectReason::TooManyPending { max: 2 };
    for _ in 0..100 {
        assert_eq!(timer.new_timeout(Duration::ZERO, |_| {}).unwrap_err().reason, full);
        assert_eq!(timer.schedule_at_fixed_rate(SECOND, SECOND, |_| {}).unwrap_err().reason, full);
    }
    assert!(held[0].cancel());
    assert_eq!(
        timer.schedule_at_fixed_rate(SECOND, Duration::ZERO, |_| {}).unwrap_err().reason,
        RejectReason::ZeroPeriod
    );
    assert_eq!(
        timer.schedule_with_fixed_delay(SECOND, Duration::ZERO, |_| {}).unwrap_err().reason,
        RejectReason::ZeroPeriod
    );
    drop(accepted(timer.new_timeout(HOUR, |_| {})));
    let mut after = timer.stats();
    assert_eq!(after.rejected, 202);
    (after.scheduled, after.cancelled) = (after.scheduled - 1, after.cancelled - 1);
    assert_eq!(counts(&before), counts(&after));
    drop(driver.stop());
    let before = timer.stats();
    // B02: scheduling on a stopped timer raised the count for good.
    for _ in 0..100 {
        assert_eq!(timer.new_timeout(SECOND, |_| {}).unwrap_err().reason, RejectReason::Stopped);
        assert_eq!(timer.new_timeout_at(std::time::Instant::now(), |_| {}).unwrap_err().reason, RejectReason::Stopped);
    }
    assert_eq!(counts(&before), counts(&timer.stats()));
    assert_eq!(timer.stats().rejected, 402);
}

#[test]
fn a_rejected_task_comes_back_unharmed() {
    let (timer, driver) = Timer::builder().build_manual().unwrap();
    drop(driver);
    let (ran, received) = channel();
    let rejected = timer.new_timeout(SECOND, move |_: &Timeout| ran.send(()).unwrap()).unwrap_err();
    let (other, mut driver) = manual(WHEELS[0]);
    accepted(other.new_timeout(Duration::ZERO, rejected.into_task()));
    driver.advance(Duration::ZERO);
    next(&received);
}

#[test]
fn the_bound_is_exact_under_sixteen_threads() {
    const BOUND: usize = 100;
    let timer = Timer::builder().max_pending_timeouts(BOUND).build().unwrap();
    let gate = Barrier::new(16);
    let kept: Vec<Timeout> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|_| {
                scope.spawn(|| {
                    let mut kept = Vec::new();
                    gate.wait();
                    for round in 0..200 {
                        kept.extend(timer.new_timeout(HOUR, |_| {}));
                        assert!(timer.pending_timeouts() <= BOUND);
                        if round % 3 == 0
                            && let Some(timeout) = kept.pop()
                        {
                            assert!(timeout.cancel());
                        }
                    }
                    kept
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    // Whoever came last found the bound reached, or had room: then more are taken until there is none.
    assert_eq!(timer.pending_timeouts(), kept.len());
    let more = std::iter::from_fn(|| timer.new_timeout(HOUR, |_| {}).ok()).count();
    assert_eq!((kept.len() + more, timer.pending_timeouts()), (BOUND, BOUND));
    assert!(kept.iter().all(Timeout::cancel));
    assert_eq!(timer.pending_timeouts(), more);
}

#[test]
fn tasks_at_the_bound_schedule_themselves_again_whatever_their_threads() {
    struct Chain {
        timer: Timer,
        left: AtomicUsize,
        _done: std::sync::mpsc::Sender<()>,
    }
    fn again(chain: Arc<Chain>, delay: Duration) {
        let timer = chain.timer.clone();
        let next = move |_: &Timeout| {
            if chain.left.fetch_sub(1, SeqCst) > 16 {
                again(chain, delay);
            }
        };
        accepted(timer.new_timeout(delay, next));
    }
    let pool = timer_executor::ThreadPoolExecutor::new(2);
    let builder = Timer::builder().max_pending_timeouts(16).tick_duration(20 * MICRO).executor(pool);
    let timer = builder.build().unwrap();
    let (done, ended) = channel();
    let chain = Arc::new(Chain { timer: timer.clone(), left: AtomicUsize::new(2_000), _done: done });
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let chain = chain.clone();
            scope.spawn(move || again(chain, thread * 5 * MICRO));
        }
    });
    drop(chain);
    all_gone(&ended);
    let stats = timer.stats();
    assert_eq!((stats.pending, stats.rejected, stats.task_panics), (0, 0, 0));
    assert!(stats.expired >= 2_000);
}

// Starts were read before ends, so that what ended between the two readings was taken off those that wait.
#[test]
fn no_count_misses_what_waits_while_others_come() {
    let timer = Timer::new();
    let held = [(); 3].map(|()| accepted(timer.new_timeout(HOUR, |_| {})));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(SeqCst) {
                    assert!(accepted(timer.new_timeout(HOUR, |_| {})).cancel());
                }
            });
        }
        let (mut fewest, begun) = (u64::MAX, Instant::now());
        while timer.stats().scheduled < 300_000 && begun.elapsed() < LONG {
            fewest = fewest.min(timer.stats().pending);
            (0..500).for_each(|_| fewest = fewest.min(timer.pending_timeouts() as u64));
        }
        over.store(true, SeqCst);
        assert!(fewest >= 3, "{fewest:?} of 3 that wait");
    });
    assert_eq!(timer.pending_timeouts(), held.len());
}
