//! Overload, in which threads schedule timeouts of 1 to 3 ms at full speed, faster than the worker
//! can run them. A stall of the worker may come on top.
//!
//! Every timeout must end once, and the overload must end by itself, because callers slow down
//! while the worker is behind. `timer-bench --bin overload` measures the same loads for longer.

use crate::counts::Counts;
use crate::ledger::lock;
use crate::progress::announce;
use crate::support::{Draw, MAX_WAIT, MICRO, MILLI, Rng, SECOND, next, watch_for};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use timer_core::{RejectReason, Timeout, Timer, WheelKind};

/// The duration of a stall.
const STALL: Duration = Duration::from_millis(1_500);

/// The bound on pending timeouts during a stalled task, which is the user's protection.
const BOUND: usize = 300_000;

/// The time after which lags count: from the start, or from the end of a stall.
const SETTLE: Duration = SECOND;

/// A stall of the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stall {
    None,
    /// A task blocks the worker. Callers are not slowed down meanwhile.
    Task,
    /// A child process stops this one by SIGSTOP and continues it.
    Process,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Overload {
    pub(crate) seed: u64,
    pub(crate) threads: u64,
    /// The percentage of timeouts that are cancelled at once.
    pub(crate) cancels: u64,
    pub(crate) stall: Stall,
    pub(crate) wheel: WheelKind,
    /// The time for which lags are measured.
    pub(crate) time: Duration,
}

/// The measurements of an overload.
#[derive(Debug)]
pub(crate) struct Measured {
    /// The worst lag of a task after [`SETTLE`].
    pub(crate) lag: Duration,
    /// The largest number of pending timeouts after [`SETTLE`].
    pub(crate) pending: usize,
    /// The duration of `stop`.
    pub(crate) stop: Duration,
}

/// The numbers that tasks count.
#[derive(Default)]
struct Runs {
    count: AtomicU64,
    /// The worst lag in nanoseconds since it was last reset.
    lag: AtomicU64,
}

impl Runs {
    fn count(&self, timeout: &Timeout) {
        let lag = Instant::now().saturating_duration_since(timeout.deadline());
        self.lag.fetch_max(lag.as_nanos() as u64, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

impl Overload {
    /// Storms a timer until it is stopped, and checks the counts of all timeouts.
    pub(crate) fn run(&self) -> (Counts, Measured) {
        announce(format!("{self:?}"));
        let builder = Timer::builder().wheel(self.wheel);
        let bounded = self.stall == Stall::Task;
        let timer = if bounded { builder.max_pending_timeouts(BOUND) } else { builder }.build().unwrap();
        let runs = Arc::new(Runs::default());
        let (answers, handed_back, measured) = std::thread::scope(|scope| {
            let callers: Vec<_> = (0..self.threads)
                .map(|caller| {
                    let (timer, runs) = (&timer, &runs);
                    scope.spawn(move || self.call(timer, runs, Rng::with_seed(self.seed ^ caller)))
                })
                .collect();
            let mut answers = self.stall(&timer);
            // The task of a stall does not count itself.
            runs.count.fetch_add(answers.accepted, Ordering::Relaxed);
            watch_for(SETTLE);
            runs.lag.store(0, Ordering::Relaxed);
            let (begun, mut pending) = (Instant::now(), 0);
            while begun.elapsed() < self.time {
                watch_for(10 * MILLI);
                pending = pending.max(timer.pending_timeouts());
            }
            let lag = Duration::from_nanos(runs.lag.load(Ordering::Relaxed));
            let begun = Instant::now();
            let handed_back = timer.stop().unwrap().len() as u64;
            let measured = Measured { lag, pending, stop: begun.elapsed() };
            callers.into_iter().for_each(|caller| answers.add(caller.join().unwrap()));
            (answers, handed_back, measured)
        });
        let stats = timer.stats();
        let Answers { accepted, rejected, cancelled } = answers;
        assert_eq!((stats.scheduled, stats.rejected), (accepted, rejected), "{self:?}");
        assert_eq!((stats.pending, stats.cancelled), (0, cancelled + handed_back), "{self:?}");
        assert_eq!(stats.expired, runs.count.load(Ordering::Relaxed), "{self:?}");
        (Counts { rounds: 1, ..Counts::from_stats(&stats, handed_back) }, measured)
    }

    /// Schedules at full speed until the timer is stopped.
    fn call(&self, timer: &Timer, runs: &Arc<Runs>, mut random: Rng) -> Answers {
        let mut answers = Answers::default();
        loop {
            let (delay, runs) = (MILLI + random.micros(2_000), runs.clone());
            match timer.new_timeout(delay, move |timeout: &Timeout| runs.count(timeout)) {
                Ok(timeout) => {
                    answers.accepted += 1;
                    answers.cancelled += u64::from(random.u64(..100) < self.cancels && timeout.cancel());
                }
                Err(rejected) => {
                    answers.rejected += 1;
                    if rejected.reason == RejectReason::Stopped {
                        return answers;
                    }
                    // The bound is reached.
                    watch_for(100 * MICRO);
                }
            }
        }
    }

    /// Stalls the worker after half a second. Returns the answers to the timeouts that it takes.
    fn stall(&self, timer: &Timer) -> Answers {
        let mut answers = Answers::default();
        if self.stall != Stall::None {
            watch_for(500 * MILLI);
        }
        match self.stall {
            Stall::None => {}
            Stall::Task => {
                let (ended, end) = channel();
                let stall = move |_: &Timeout| {
                    watch_for(STALL);
                    ended.send(()).unwrap();
                };
                let begun = Instant::now();
                while timer.new_timeout(Duration::ZERO, stall.clone()).is_err() {
                    answers.rejected += 1;
                    assert!(begun.elapsed() < MAX_WAIT, "the bound leaves no room");
                    watch_for(100 * MICRO);
                }
                answers.accepted += 1;
                next(&end);
            }
            Stall::Process => freeze_this_process(),
        }
        answers
    }
}

/// Stops this process for [`STALL`] with the help of a child.
fn freeze_this_process() {
    let script = format!("kill -STOP $0 && sleep {} ; kill -CONT $0", STALL.as_secs_f64());
    let status = Command::new("sh").args(["-c", &script, &std::process::id().to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()), "the child could not stop and continue this process");
}

/// The answers that callers got.
#[derive(Default)]
struct Answers {
    accepted: u64,
    rejected: u64,
    cancelled: u64,
}

impl Answers {
    fn add(&mut self, other: Answers) {
        self.accepted += other.accepted;
        self.rejected += other.rejected;
        self.cancelled += other.cancelled;
    }
}

/// Checks that an overload ends with lags of at most `lag`, and that `stop` takes less than a
/// second. A busy machine has six attempts.
fn assert_overload_ends(threads: u64, cancels: u64, stall: Stall, lag: Duration) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = lock(&ONE_AT_A_TIME);
    let mut seen = Vec::new();
    for seed in 0..6 {
        let (counts, measured) =
            Overload { seed, threads, cancels, stall, wheel: WheelKind::Hierarchical, time: SECOND }.run();
        assert!(counts.balances() && counts.accepted > 1_000, "{counts:?}");
        println!("{threads} threads, {cancels} % cancelled, {stall:?}: {measured:?}, {} timeouts", counts.accepted);
        if measured.lag <= lag && measured.pending <= 1_000_000 && measured.stop < SECOND {
            return;
        }
        seen.push(measured);
    }
    panic!("{threads} threads, {cancels} % cancelled, {stall:?}: the overload does not end, {seen:?}");
}

#[test]
fn an_overload_by_4_threads_ends() {
    assert_overload_ends(4, 0, Stall::None, 500 * MILLI);
}

#[test]
fn an_overload_by_64_threads_ends() {
    assert_overload_ends(64, 30, Stall::None, SECOND);
}

#[test]
fn an_overload_by_200_threads_ends() {
    assert_overload_ends(200, 0, Stall::None, 1_200 * MILLI);
    assert_overload_ends(200, 90, Stall::None, 3 * SECOND);
}

#[test]
fn an_overload_ends_after_a_stalled_task() {
    assert_overload_ends(64, 30, Stall::Task, SECOND);
}

#[cfg(unix)]
#[test]
fn an_overload_ends_after_a_stopped_process() {
    assert_overload_ends(8, 0, Stall::Process, 500 * MILLI);
}
