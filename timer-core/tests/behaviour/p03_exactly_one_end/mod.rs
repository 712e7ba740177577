//! Promise 3, exactly one end. Every accepted timeout is run, cancelled, or handed back by `stop`,
//! in every race.

mod lost;
mod races;
mod siblings;

use crate::support::executors::{Action, Scripted, bad_executors, good_executors};
use crate::support::ledger::{End, Ledger, Maker};
use crate::support::panics::panic_on_purpose;
use crate::support::*;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use timer_core::{Timeout, Timer, WeakTimer};
use timer_executor::{Rejected, Task, TaskExecutor};

const CALLERS: u64 = 4;

/// Counters of the answers that callers got.
#[derive(Default)]
struct CallerCounts {
    rejected: AtomicU64,
}

/// An accepted timeout and the answers that callers got about it.
struct Accepted {
    timeout: Timeout,
    end: Arc<End>,
    cancelled: AtomicU64,
    moved: AtomicBool,
}

type Shared = Mutex<Vec<Arc<Accepted>>>;

/// Runs one caller, which schedules, cancels and moves its own timeouts and those of others.
fn call(timer: &Timer, ledger: &Maker, shared: &Shared, counts: &CallerCounts, seed: u64) -> Vec<Arc<Accepted>> {
    let mut random = Rng::with_seed(seed);
    let mut all = Vec::new();
    for _ in 0..250 {
        let any = shared.lock().unwrap().get(random.usize(..250)).cloned();
        match (random.u64(..10), any) {
            (0..2, Some(any)) => {
                any.cancelled.fetch_add(u64::from(any.timeout.cancel()), SeqCst);
            }
            (2..4, Some(any)) => {
                if any.timeout.reset(random.duration(2 * MILLI)) {
                    any.moved.store(true, SeqCst);
                }
            }
            _ => {
                let (probe, end) = ledger.probe();
                let delay = if random.u64(..8) == 0 { HOUR } else { random.duration(2 * MILLI) };
                match timer.new_timeout_task(delay, probe) {
                    Ok(timeout) => {
                        let (cancelled, moved) = (AtomicU64::new(0), AtomicBool::new(false));
                        let one = Arc::new(Accepted { timeout, end, cancelled, moved });
                        all.push(one.clone());
                        shared.lock().unwrap().push(one);
                    }
                    Err(rejected) => {
                        counts.rejected.fetch_add(1, SeqCst);
                        drop(rejected.into_task());
                        assert_eq!(end.counts(), (0, 0));
                    }
                }
            }
        }
    }
    all
}

/// Races four callers with `stop`. If `queues` is set, tasks wait in an executor's queue and may be
/// moved there.
fn race(label: &str, timer: &Timer, queues: bool, seed: u64) {
    let (ledger, shared, counts) = (Ledger::new(), Shared::default(), CallerCounts::default());
    let (mut handed_back, mut run_here) = (HashSet::new(), 0);
    let all: Vec<Arc<Accepted>> = std::thread::scope(|scope| {
        let (shared, counts) = (&shared, &counts);
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| (ledger.maker(), seed * CALLERS + caller))
            .map(|(maker, seed)| scope.spawn(move || call(timer, &maker, shared, counts, seed)))
            .collect();
        spin(Rng::with_seed(seed).duration(2 * MILLI));
        for left in timer.stop().unwrap() {
            assert!(handed_back.insert(left.timeout().clone()), "{label}: handed back twice");
            if handed_back.len() % 2 == 0 {
                left.run();
                run_here += 1;
            }
        }
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
    });
    ledger.wait();
    for one in &all {
        let (ran, cancelled) = one.end.counts();
        assert_eq!(ran + cancelled, 1, "{label}: ran {ran} times, cancelled {cancelled} times");
        let ended_by = one.cancelled.load(SeqCst) + u64::from(handed_back.contains(&one.timeout));
        // A timeout that was moved in an executor's queue and leaves it after the stop is cancelled
        // by no caller.
        let came_out = one.timeout.is_cancelled() && ended_by == 0;
        assert!(
            !came_out || queues && one.moved.load(SeqCst),
            "{label}: cancelled, although no caller cancelled or moved it"
        );
        assert_eq!(u64::from(one.timeout.is_cancelled()), ended_by + u64::from(came_out), "{label}");
    }
    let sum = |count: fn(&End) -> u32| all.iter().map(|one| u64::from(count(&one.end))).sum::<u64>();
    let (stats, accepted) = (timer.stats(), all.len() as u64);
    assert_eq!((stats.scheduled, stats.rejected), (accepted, counts.rejected.load(SeqCst)), "{label}");
    assert_eq!(stats.expired, sum(|end| end.counts().0) - run_here, "{label}");
    assert_eq!(stats.cancelled, sum(|end| end.counts().1) + run_here, "{label}");
    assert_eq!((stats.pending, stats.expired + stats.cancelled), (0, accepted), "{label}");
    // The thread of a pool counts its run as over after it has dropped the task.
    let begun = Instant::now();
    while timer.stats().in_flight > 0 && begun.elapsed() < MAX_WAIT {
        std::thread::yield_now();
    }
    assert_eq!((timer.stats().queued, timer.stats().running), (0, 0), "{label}");
}

#[test]
fn every_timeout_ends_once_when_callers_and_stop_race() {
    for (label, executor) in good_executors() {
        for seed in 0..6 {
            let wheel = WHEELS[seed as usize % WHEELS.len()];
            let tick = [MILLI, 50 * MICRO, MICRO][seed as usize % 3];
            let builder = Timer::builder().wheel(wheel).tick_duration(tick).executor(executor.clone());
            race(label, &builder.build().unwrap(), true, seed);
        }
    }
}

#[test]
fn every_timeout_ends_once_with_tasks_on_the_worker() {
    for seed in 0..12 {
        let wheel = WHEELS[seed as usize % WHEELS.len()];
        let tick = [MILLI, 50 * MICRO, MICRO][seed as usize % 3];
        race("worker", &Timer::builder().wheel(wheel).tick_duration(tick).build().unwrap(), false, seed);
    }
}

#[test]
fn every_timeout_ends_once_with_a_bad_executor() {
    for (label, executor) in bad_executors() {
        for seed in 0..6 {
            let builder = Timer::builder().tick_duration(50 * MICRO).executor(executor.clone());
            race(label, &builder.build().unwrap(), true, seed);
        }
    }
}

/// An executor that treats its first task by `action` once `stop` has begun.
struct UntilStopped {
    action: Action,
    timer: Arc<OnceLock<WeakTimer>>,
    entered: std::sync::mpsc::Sender<()>,
}

impl TaskExecutor for UntilStopped {
    fn execute(&self, task: Task) -> Result<(), Rejected> {
        self.entered.send(()).unwrap();
        let timer = self.timer.get().unwrap().upgrade().unwrap();
        while let Ok(timeout) = timer.new_timeout(HOUR, |_| {}) {
            timeout.cancel();
        }
        match self.action {
            Action::Run => task.run(),
            Action::Reject => return Err(Rejected(task)),
            Action::Drop => drop(task),
            Action::Panic => panic_on_purpose(),
        }
        Ok(())
    }
}

#[test]
fn tasks_handed_over_during_stop_end_once() {
    for action in [Action::Run, Action::Reject, Action::Drop, Action::Panic] {
        let weak = Arc::new(OnceLock::new());
        let (entered, inside) = channel();
        let executor = UntilStopped { action, timer: weak.clone(), entered };
        let timer = Timer::builder().executor(executor).build().unwrap();
        weak.set(timer.downgrade()).unwrap();
        let ledger = Ledger::new();
        let (probe, end) = ledger.probe();
        let timeout = accepted(timer.new_timeout_task(Duration::ZERO, probe));
        next(&inside);
        let left = timer.stop().unwrap();
        drop(left);
        ledger.wait();
        let (ran, cancelled) = end.counts();
        assert_eq!(ran + cancelled, 1, "{action:?}: ran {ran} times, cancelled {cancelled} times");
        assert!(timeout.is_expired() != timeout.is_cancelled());
        let stats = timer.stats();
        assert_eq!((stats.pending, stats.scheduled), (0, stats.expired + stats.cancelled), "{action:?}");
    }
}

#[test]
fn a_driver_ends_every_timeout_once_beside_callers() {
    let (timer, mut driver) = Timer::builder().tick_duration(20 * MICRO).build_driven().unwrap();
    let (ledger, shared, counts) = (Ledger::new(), Shared::default(), CallerCounts::default());
    let running = AtomicBool::new(true);
    let (ends, left) = std::thread::scope(|scope| {
        let (shared, counts, timer, running) = (&shared, &counts, &timer, &running);
        let callers: Vec<_> = (0..3)
            .map(|caller| (ledger.maker(), caller))
            .map(|(maker, caller)| scope.spawn(move || call(timer, &maker, shared, counts, 77 + caller)))
            .collect();
        let drive = scope.spawn(move || {
            while running.load(SeqCst) {
                driver.turn();
            }
            driver.stop()
        });
        let ends: Vec<_> = callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect();
        running.store(false, SeqCst);
        (ends, drive.join().unwrap())
    });
    drop(left);
    ledger.wait();
    assert!(ends.iter().all(|one| one.end.counts().0 + one.end.counts().1 == 1));
    assert_eq!(timer.pending_timeouts(), 0);
}

#[test]
fn a_mixed_executor_on_virtual_time_loses_nothing() {
    const ACTIONS: &[Action] = &[Action::Run, Action::Drop, Action::Reject, Action::Panic];
    for inline in [false, true] {
        for wheel in WHEELS {
            let executor = Scripted::new(ACTIONS, inline);
            let (timer, mut driver) = Timer::builder().wheel(wheel).executor(executor).build_manual().unwrap();
            let ledger = Ledger::new();
            let ends: Vec<_> = (0..100)
                .map(|id| {
                    let (probe, end) = ledger.probe();
                    accepted(timer.new_timeout_task(id / 7 * MICRO, probe));
                    end
                })
                .collect();
            assert_eq!(driver.advance(SECOND), 100);
            ledger.wait();
            assert!(ends.iter().all(|end| end.counts() == (1, 0)));
            assert!(timer.stats().executor_rejections > 0);
        }
    }
}
