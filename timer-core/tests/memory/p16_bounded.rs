//! 16. Everything is bounded under any load: here, threads at full speed, more than there are
//!     cores, which schedule timeouts of 1 to 3 ms and cancel nine in ten. `stop` ends while they
//!     go on, nothing is lost, and what waits stays little.
//!
//! Real clock and generous limits: a round that a busy machine has delayed is given two more.

use crate::heap::alone;
use crate::support::panics::panic_on_purpose;
use crate::support::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use timer_core::{RejectReason, Timeout, Timer, TimerBuilder, TimerTask};

const STORM: Duration = Duration::from_millis(300);
/// For `stop`, while the callers go on.
const STOP_WITHIN: Duration = SECOND;
/// How late a task may be handed over, with 24 threads for each core.
const LATE_BY: Duration = Duration::from_secs(2);
/// Captures that are alive at once. In 100 ms of a million timeouts a second it would be so many.
const ALIVE: u64 = 100_000;

/// What became of the timeouts of one storm.
#[derive(Default)]
struct Ledger {
    ran: AtomicU64,
    told: AtomicU64,
    made: AtomicU64,
    dropped: AtomicU64,
    most: AtomicU64,
    /// Panics of tasks; of hooks that reached the canceller; and of hooks that did not.
    task_panics: AtomicU64,
}

/// A task that keeps the accounts, and panics one time in 32 if it is told to.
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
        self.ledger.told.fetch_add(1, SeqCst);
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

/// What one caller was told.
#[derive(Default)]
struct Told {
    accepted: u64,
    rejected: u64,
    cancelled: u64,
    hook_panics: u64,
}

/// Schedules and cancels at full speed until the timer is stopped.
fn call(timer: &Timer, ledger: &Arc<Ledger>, panics: bool, seed: u64) -> Told {
    let (mut random, mut told) = (Rng::with_seed(seed), Told::default());
    loop {
        let delay = MILLI + random.duration(2 * MILLI);
        match timer.new_timeout_task(delay, Probe::new(ledger, panics)) {
            Ok(timeout) => {
                told.accepted += 1;
                if random.u64(..10) > 0 {
                    match catch_unwind(AssertUnwindSafe(|| timeout.cancel())) {
                        Ok(won) => told.cancelled += u64::from(won),
                        Err(_) => {
                            told.hook_panics += 1;
                            told.cancelled += 1;
                        }
                    }
                }
            }
            Err(rejected) => {
                assert_eq!(rejected.reason, RejectReason::Stopped);
                told.rejected += 1;
                return told;
            }
        }
    }
}

/// What a storm has measured.
struct Measured {
    stop: Duration,
    late: Duration,
    alive: u64,
}

/// One storm of so many threads, whose accounts must be right to the last timeout.
fn storm(timer: &Timer, threads: u64, panics: bool) -> Measured {
    let ledger = Arc::new(Ledger::default());
    let (told, unprocessed, stop) = std::thread::scope(|scope| {
        let (timer, ledger) = (timer, &ledger);
        let callers: Vec<_> = (0..threads).map(|seed| scope.spawn(move || call(timer, ledger, panics, seed))).collect();
        watch_for(STORM);
        let begun = Instant::now();
        let unprocessed = timer.stop().unwrap();
        let stop = begun.elapsed();
        let told: Vec<_> = callers.into_iter().map(|caller| caller.join().unwrap()).collect();
        (told, unprocessed, stop)
    });
    let sum = |of: fn(&Told) -> u64| told.iter().map(of).sum::<u64>();
    let (accepted, rejected, cancelled) = (sum(|t| t.accepted), sum(|t| t.rejected), sum(|t| t.cancelled));
    let handed_back = unprocessed.len() as u64;
    let before = timer.stats();
    drop(unprocessed);
    let stats = timer.stats();
    let get = |count: &AtomicU64| count.load(SeqCst);
    assert_eq!((stats.scheduled, stats.rejected), (accepted, rejected));
    assert_eq!((stats.pending, stats.cancelled), (0, cancelled + handed_back));
    assert_eq!((stats.expired, get(&ledger.ran)), (accepted - stats.cancelled, stats.expired));
    assert_eq!(get(&ledger.told), stats.cancelled);
    assert_eq!(get(&ledger.made), get(&ledger.dropped), "every capture is gone");
    // Those of hooks went to the cancellers, but for the hooks of what was handed back.
    assert_eq!(before.task_panics, get(&ledger.task_panics));
    assert!(stats.task_panics - before.task_panics <= handed_back);
    assert_eq!(sum(|t| t.hook_panics) > 0, panics);
    assert!(accepted > 1_000 && stats.expired > 0, "there was no storm: {accepted}");
    Measured { stop, late: stats.timeout_lag.max(), alive: get(&ledger.most) }
}

/// One storm at a time, and three attempts at the limits.
fn storms(build: impl Fn() -> TimerBuilder, threads: u64, panics: bool) {
    let _alone = alone();
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
fn a_storm_of_4_threads() {
    storms(Timer::builder, 4, false);
}

#[test]
fn a_storm_of_12_threads() {
    storms(Timer::builder, 12, false);
}

#[test]
fn a_storm_of_48_threads() {
    storms(Timer::builder, 48, false);
}

#[test]
fn storms_on_a_single_shard() {
    for threads in [4, 12, 48] {
        storms(|| Timer::builder().shards(1), threads, false);
    }
}

#[test]
fn storms_spread_by_thread() {
    for threads in [4, 12, 48] {
        storms(|| Timer::builder().spread_by_thread(), threads, false);
    }
}

#[test]
fn storms_on_hashed_wheels() {
    for wheel in &WHEELS[1..] {
        storms(|| Timer::builder().wheel(*wheel), 12, false);
    }
}

// 17.
#[test]
fn storms_with_tasks_and_hooks_that_panic() {
    for threads in [4, 12] {
        storms(Timer::builder, threads, true);
        storms(|| Timer::builder().shards(1), threads, true);
    }
}

// The requests of callers that find a shard taken cost the worker at most a turn per two
// milliseconds, and one each tick.
#[test]
fn turns_under_load_are_bounded_by_time() {
    let _alone = alone();
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
            over.store(true, SeqCst);
            callers.into_iter().map(|caller| caller.join().unwrap()).sum()
        });
        let (turns, millis) = (timer.stats().turns, begun.elapsed().as_millis() as u64);
        assert!(turns <= 2 * millis + 100, "{turns} turns for {calls} timeouts in {millis} ms, of which none was due");
        assert!(calls > 2 * millis + 100, "there was no load");
    }
}
