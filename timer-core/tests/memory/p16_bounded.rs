//! Promise 16. All resources are bounded under any load. More threads than cores schedule timeouts
//! of 1 to 3 ms at full speed and cancel nine in ten. `stop` returns soon although they continue,
//! no timeout is lost, and few are pending at a time.
//!
//! The tests use the real clock with generous limits. A busy machine may delay a round, so it has
//! three attempts.

use crate::heap::exclusive;
use crate::support::panics::panic_on_purpose;
use crate::support::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use timer_core::{RejectReason, Timeout, Timer, TimerBuilder, TimerTask};

const STORM: Duration = Duration::from_millis(300);
/// The limit for `stop` while callers continue.
const STOP_WITHIN: Duration = SECOND;
/// The latest hand-over of a task, with 24 threads for each core.
const LATE_BY: Duration = Duration::from_secs(2);
/// Captures that may be alive at once, as many as a million timeouts a second make in 100 ms.
const ALIVE: u64 = 100_000;

/// The ends of all timeouts of one storm.
#[derive(Default)]
struct Ledger {
    ran: AtomicU64,
    cancelled: AtomicU64,
    made: AtomicU64,
    dropped: AtomicU64,
    most: AtomicU64,
    /// Panics of tasks. Panics of hooks are counted by their cancellers.
    task_panics: AtomicU64,
}

/// A task that records its end. If `panics` is set, one in 32 panics.
struct Probe {
    ledger: Arc<Ledger>,
    panics: bool,
}

impl Probe {
    fn new(ledger: &Arc<Ledger>, panics: bool) -> Self {
        let made = ledger.made.fetch_add(1, SeqCst) + 1;
        if made.is_multiple_of(64) {
            ledger.most.fetch_max(made.saturating_sub(ledger.dropped.load(SeqCst)), SeqCst);
        }
        Self { ledger: ledger.clone(), panics: panics && made.is_multiple_of(32) }
    }
}

impl TimerTask for Probe {
    fn run(self, _: &Timeout) {
        self.ledger.ran.fetch_add(1, SeqCst);
        if self.panics {
            self.ledger.task_panics.fetch_add(1, SeqCst);
            panic_on_purpose();
        }
    }

    fn cancelled(self, _: &Timeout) {
        self.ledger.cancelled.fetch_add(1, SeqCst);
        if self.panics {
            panic_on_purpose();
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.ledger.dropped.fetch_add(1, SeqCst);
    }
}

/// The answers that one caller got.
#[derive(Default)]
struct Answers {
    accepted: u64,
    rejected: u64,
    cancelled: u64,
    hook_panics: u64,
}

/// Schedules and cancels at full speed until the timer is stopped.
fn call(timer: &Timer, ledger: &Arc<Ledger>, panics: bool, seed: u64) -> Answers {
    let (mut random, mut answers) = (Rng::with_seed(seed), Answers::default());
    loop {
        let delay = MILLI + random.duration(2 * MILLI);
        match timer.new_timeout_task(delay, Probe::new(ledger, panics)) {
            Ok(timeout) => {
                answers.accepted += 1;
                if random.u64(..10) > 0 {
                    match catch_unwind(AssertUnwindSafe(|| timeout.cancel())) {
                        Ok(won) => answers.cancelled += u64::from(won),
                        Err(_) => {
                            answers.hook_panics += 1;
                            answers.cancelled += 1;
                        }
                    }
                }
            }
            Err(rejected) => {
                assert_eq!(rejected.reason, RejectReason::Stopped);
                answers.rejected += 1;
                return answers;
            }
        }
    }
}

/// The measurements of one storm.
struct Measured {
    stop: Duration,
    late: Duration,
    alive: u64,
}

/// Runs a storm of `threads` threads and checks its counts to the last timeout.
fn storm(timer: &Timer, threads: u64, panics: bool) -> Measured {
    let ledger = Arc::new(Ledger::default());
    let (answers, unprocessed, stop) = std::thread::scope(|scope| {
        let (timer, ledger) = (timer, &ledger);
        let callers: Vec<_> = (0..threads).map(|seed| scope.spawn(move || call(timer, ledger, panics, seed))).collect();
        watch_for(STORM);
        // A busy machine may start the threads late.
        wait_until(|| timer.stats().expired > 0 && timer.stats().scheduled > 2_000);
        let begun = Instant::now();
        let unprocessed = timer.stop().unwrap();
        let stop = begun.elapsed();
        let answers: Vec<_> = callers.into_iter().map(|caller| caller.join().unwrap()).collect();
        (answers, unprocessed, stop)
    });
    let sum = |count: fn(&Answers) -> u64| answers.iter().map(count).sum::<u64>();
    let (accepted, rejected, cancelled) = (sum(|t| t.accepted), sum(|t| t.rejected), sum(|t| t.cancelled));
    let handed_back = unprocessed.len() as u64;
    let before = timer.stats();
    drop(unprocessed);
    let stats = timer.stats();
    let get = |count: &AtomicU64| count.load(SeqCst);
    assert_eq!((stats.scheduled, stats.rejected), (accepted, rejected));
    assert_eq!((stats.pending, stats.cancelled), (0, cancelled + handed_back));
    assert_eq!((stats.expired, get(&ledger.ran)), (accepted - stats.cancelled, stats.expired));
    assert_eq!(get(&ledger.cancelled), stats.cancelled);
    assert_eq!(get(&ledger.made), get(&ledger.dropped), "every capture is dropped");
    // The panics of hooks reached the cancellers, except for the hooks of timeouts that were handed
    // back.
    assert_eq!(before.task_panics, get(&ledger.task_panics));
    assert!(stats.task_panics - before.task_panics <= handed_back);
    assert_eq!(sum(|t| t.hook_panics) > 0, panics);
    assert!(accepted > 1_000, "the storm had only {accepted} timeouts");
    Measured { stop, late: stats.timeout_lag.max(), alive: get(&ledger.most) }
}

/// Runs one storm at a time, with three attempts to keep the limits.
fn storms(build: impl Fn() -> TimerBuilder, threads: u64, panics: bool) {
    let _alone = exclusive();
    storms_alone(build, threads, panics);
}

/// The same as [`storms`], for a caller that excludes all other tests.
fn storms_alone(build: impl Fn() -> TimerBuilder, threads: u64, panics: bool) {
    let mut seen = String::new();
    for _ in 0..3 {
        let Measured { stop, late, alive } = storm(&build().build().unwrap(), threads, panics);
        if stop <= STOP_WITHIN && late <= LATE_BY && alive <= ALIVE {
            return;
        }
        seen += &format!("stop {stop:?}, late {late:?}, {alive} alive; ");
    }
    panic!("with {threads} threads: {seen}");
}

#[test]
fn a_storm_of_4_threads_is_bounded() {
    storms(Timer::builder, 4, false);
}

#[test]
fn a_storm_of_12_threads_is_bounded() {
    storms(Timer::builder, 12, false);
}

#[test]
fn a_storm_of_48_threads_is_bounded() {
    storms(Timer::builder, 48, false);
}

#[test]
fn a_storm_of_200_threads_is_bounded() {
    storms(Timer::builder, 200, false);
}

#[test]
fn storms_on_a_single_shard_are_bounded() {
    for threads in [4, 12, 48] {
        storms(|| Timer::builder().shards(1), threads, false);
    }
}

#[test]
fn storms_spread_by_thread_are_bounded() {
    let _alone = exclusive();
    Timer::spread_by_thread(true);
    for threads in [4, 12, 48] {
        storms_alone(Timer::builder, threads, false);
    }
    Timer::spread_by_thread(false);
}

#[test]
fn storms_on_hashed_wheels_are_bounded() {
    for wheel in &WHEELS[1..] {
        storms(|| Timer::builder().wheel(*wheel), 12, false);
    }
}

// Promise 17 in a storm.
#[test]
fn storms_with_panics_are_bounded() {
    for threads in [4, 12] {
        storms(Timer::builder, threads, true);
        storms(|| Timer::builder().shards(1), threads, true);
    }
}

// The requests of callers that find a shard locked cost the worker at most one turn per two
// milliseconds, and one each tick.
#[test]
fn turns_under_load_are_bounded_by_time() {
    let _alone = exclusive();
    for build in [Timer::builder, || Timer::builder().shards(1)] {
        let timer = build().build().unwrap();
        let over = AtomicBool::new(false);
        let begun = Instant::now();
        let calls: u64 = std::thread::scope(|scope| {
            let callers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut calls = 0;
                        while !over.load(SeqCst) {
                            assert!(accepted(timer.new_timeout(HOUR, |_| {})).cancel());
                            calls += 1;
                        }
                        calls
                    })
                })
                .collect();
            watch_for(STORM);
            wait_until(|| timer.stats().scheduled > 10_000);
            over.store(true, SeqCst);
            callers.into_iter().map(|caller| caller.join().unwrap()).sum()
        });
        let (turns, millis) = (timer.stats().turns, begun.elapsed().as_millis() as u64);
        assert!(turns <= 2 * millis + 100, "{turns} turns for {calls} timeouts in {millis} ms, of which none was due");
        assert!(calls > 10_000, "the load was only {calls} calls");
    }
}
