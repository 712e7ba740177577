//! Storms, which run whole timers under random schedules that a seed replays (`--cfg timer_loom
//! --cfg timer_shuttle`).
//!
//! A model of loom covers one protocol in every order. A storm covers the worker, two shards, their
//! wheels, inboxes and gates, three callers and `stop` together, in some orders. Some schedules are
//! random, and others have few preemptions (PCT). All threads see one order of events, so only loom
//! checks weak orderings. A negative twin has one line of the product left out or split, and fails
//! under its seed.
//!
//! A storm that fails prints its schedule, which the environment variable `STORM_SCHEDULE` replays.
//! A random storm also prints its seed, which `SHUTTLE_RANDOM_SEED` replays first. `STORM_ROUNDS`
//! sets the number of schedules of each kind.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a storm is a test")]

use crate::config::{Config, DrivenBy, WheelKind};
use crate::deadline::IMMEDIATE;
use crate::engine::Engine;
use crate::entry::{Timeout, TimerTask};
use crate::handle::Timer;
use crate::sync::{Arc, AtomicBool, Event, Fault, How, Memory, Mutex, entries_alive, has_failed};
use crate::worker;
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{MaxSteps, Runner, thread};
use std::cell::Cell;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use timer_executor::{Rejected, TaskExecutor};

const CALLERS: usize = 3;

/// The number of timeouts that each caller schedules.
const EACH: usize = 3;

/// The number of schedules of each kind. Every negative twin fails within them, and they take about
/// a second.
const ROUNDS: usize = 2000;

const SEED: u64 = 1;

/// One more than the number of preemptions of a schedule with few of them.
const DEPTH: usize = 4;

const MILLI: u64 = 1_000_000;

/// The beginning of the timer's time. It is a constant, so that a seed determines the whole run.
const BEGIN: u64 = 1 << 50;

const HOUR: Duration = Duration::from_secs(3600);

/// An executor whose only thread belongs to the storm.
#[derive(Default)]
struct Pool {
    queue: Mutex<Vec<timer_executor::Task>>,
    closed: AtomicBool,
    changed: Event,
}

impl Pool {
    /// Runs tasks until the pool is closed and empty.
    fn run(&self) {
        loop {
            let task = Cell::new(None);
            self.changed.wait(None, || {
                let closed = self.closed.load(Ordering::Acquire);
                let found = self.queue.lock().pop();
                let ends = closed || found.is_some();
                task.set(found);
                ends
            });
            let Some(task) = task.take() else { return };
            task.run();
        }
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.changed.notify_all();
    }
}

impl TaskExecutor for Pool {
    fn execute(&self, task: timer_executor::Task) -> Result<(), Rejected> {
        self.queue.lock().push(task);
        self.changed.notify_all();
        Ok(())
    }
}

/// A timer with its real worker, whose time stands still until it is set. If the storm fails it is
/// leaked.
struct Subject(Option<(Timer, Arc<Engine>)>);

impl Subject {
    fn new(pool: &Arc<Pool>) -> Arc<Self> {
        let kinds = [WheelKind::Hierarchical, WheelKind::Hashed { ticks_per_wheel: 8 }];
        let config = Config {
            wheel: kinds[thread_rng().gen_range(0..kinds.len())],
            max_pending: [None, Some(4)][thread_rng().gen_range(0..2)],
            shards: Some(2),
            ..Config::default()
        };
        let pool: Option<Box<dyn TaskExecutor>> =
            if thread_rng().gen_bool(0.5) { Some(Box::new(pool.clone())) } else { None };
        let engine = Engine::new(config, pool, DrivenBy::Worker);
        engine.context.present.set(BEGIN);
        Arc::new(Self(Some((Timer { engine: engine.clone() }, engine))))
    }

    fn is_pooled(&self) -> bool {
        self.0.as_ref().is_some_and(|(_, engine)| engine.executor.is_some())
    }

    /// Moves the time and wakes the worker, which a real clock would wake by itself.
    fn set_time(&self, millis: u64) {
        let Some((_, engine)) = &self.0 else { return };
        engine.context.present.set(BEGIN + millis * MILLI);
        engine.context.alarm.wake_before(IMMEDIATE);
    }
}

impl Deref for Subject {
    type Target = Timer;

    fn deref(&self) -> &Timer {
        &self.0.as_ref().expect("there until dropped").0
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        if has_failed() {
            std::mem::forget(self.0.take());
        }
    }
}

/// The counts of the fates of all tasks.
#[derive(Default)]
struct Ledger {
    accepted: AtomicUsize,
    ran: AtomicUsize,
    /// Tasks whose timeouts a caller has cancelled.
    cancelled: AtomicUsize,
    hooked: AtomicUsize,
    dropped: AtomicUsize,
    progress: Event,
}

impl Ledger {
    fn get(count: &AtomicUsize) -> usize {
        count.load(Ordering::Relaxed)
    }

    fn add(count: &AtomicUsize) {
        count.fetch_add(1, Ordering::Relaxed);
    }
}

struct Task(Arc<Ledger>);

impl TimerTask for Task {
    fn run(self, _: &Timeout) {
        Ledger::add(&self.0.ran);
        self.0.progress.notify_all();
    }

    fn cancelled(self, _: &Timeout) {
        Ledger::add(&self.0.hooked);
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        Ledger::add(&self.0.dropped);
    }
}

/// Schedules timeouts and resets or cancels some of them. With the delay 0 alone, each one is due
/// at once or cancelled.
fn call(timer: &Timer, ledger: &Arc<Ledger>, delays: &[u64]) {
    for _ in 0..EACH {
        let delay = Duration::from_millis(delays[thread_rng().gen_range(0..delays.len())]);
        let Ok(timeout) = timer.new_timeout_task(delay, Task(ledger.clone())) else { continue };
        Ledger::add(&ledger.accepted);
        match thread_rng().gen_range(0..5) {
            0 => _ = timeout.reset(Duration::ZERO),
            1 => _ = timeout.expire_now(),
            2 if timeout.cancel() => Ledger::add(&ledger.cancelled),
            3 => _ = timeout.reset(HOUR) && timeout.reset(Duration::ZERO),
            _ => {}
        }
    }
}

/// The parts of a storm.
struct Storm {
    alive: usize,
    pool: Arc<Pool>,
    runner: thread::JoinHandle<()>,
    timer: Arc<Subject>,
    ledger: Arc<Ledger>,
}

impl Storm {
    fn new() -> Self {
        let (alive, pool, ledger) = (entries_alive(), Arc::new(Pool::default()), Arc::new(Ledger::default()));
        let timer = Subject::new(&pool);
        let runner = {
            let pool = pool.clone();
            thread::spawn(move || pool.run())
        };
        Self { alive, pool, runner, timer, ledger }
    }

    fn callers(&self, delays: &'static [u64]) -> Vec<thread::JoinHandle<()>> {
        let caller = |_| {
            let (timer, ledger) = (self.timer.clone(), self.ledger.clone());
            thread::spawn(move || call(&timer, &ledger, delays))
        };
        (0..CALLERS).map(caller).collect()
    }

    /// Ends the storm. Asserts that all accounts balance and that all memory is freed.
    fn settle(self, handed_back: usize) {
        let Self { alive, pool, runner, timer, ledger } = self;
        pool.close();
        runner.join().unwrap();
        let [accepted, ran, cancelled, hooked] =
            [&ledger.accepted, &ledger.ran, &ledger.cancelled, &ledger.hooked].map(Ledger::get);
        assert_eq!(ran + hooked, accepted, "ended once");
        // A timeout that was moved later while its task was queued finds the timer stopped, and its
        // thread cancels it.
        assert!(cancelled + handed_back == hooked || timer.is_pooled() && cancelled + handed_back < hooked, "told");
        let stats = timer.stats();
        assert_eq!((stats.pending, stats.scheduled as usize, stats.expired as usize), (0, accepted, ran), "counted");
        assert_eq!((stats.cancelled as usize, stats.in_flight, stats.task_panics), (hooked, 0, 0), "counted");
        drop(timer);
        assert_eq!(Ledger::get(&ledger.dropped), CALLERS * EACH, "dropped once");
        drop(pool);
        assert_eq!(entries_alive(), alive, "freed");
    }
}

/// Time stands still, and all due tasks run. A lost request or a lost wake-up is a deadlock.
fn all_due_tasks_run() {
    let storm = Storm::new();
    for caller in storm.callers(&[0]) {
        caller.join().unwrap();
    }
    let ledger = &storm.ledger;
    let pending = Ledger::get(&ledger.accepted) - Ledger::get(&ledger.cancelled);
    ledger.progress.wait(None, || Ledger::get(&ledger.ran) == pending);
    assert_eq!(storm.timer.stop().unwrap().len(), 0);
    storm.settle(0);
}

/// Two threads stop the timer while callers use it and time moves.
fn stop_amid_calls() {
    let storm = Storm::new();
    let callers = storm.callers(&[0, 1, 2, 70]);
    let clock = {
        let timer = storm.timer.clone();
        thread::spawn(move || [1, 3, 64, 80].into_iter().for_each(|millis| timer.set_time(millis)))
    };
    let second = {
        let timer = storm.timer.clone();
        thread::spawn(move || timer.stop_and_wait(HOUR).unwrap().unprocessed.len())
    };
    let mut handed_back = storm.timer.stop().unwrap().len();
    for thread in callers.into_iter().chain([clock]) {
        thread.join().unwrap();
    }
    handed_back += second.join().unwrap();
    storm.settle(handed_back);
}

/// Returns the number of schedules of each kind.
fn rounds() -> usize {
    std::env::var("STORM_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS)
}

/// Prints the number of schedules when it is dropped, even if one has failed.
struct ScheduleCount(std::sync::Arc<AtomicUsize>);

impl Drop for ScheduleCount {
    fn drop(&mut self) {
        println!("{} schedules", self.0.load(Ordering::Relaxed));
    }
}

fn explore(scheduler: impl Scheduler + 'static, storm: fn()) {
    if let Ok(schedule) = std::env::var("STORM_SCHEDULE") {
        return shuttle::replay(storm, &schedule);
    }
    let mut config = shuttle::Config::new();
    config.max_steps = MaxSteps::FailAfter(100_000);
    config.silence_warnings = true;
    config.ungraceful_shutdown_config.immediately_return_on_panic = true;
    let count_guard = ScheduleCount(std::sync::Arc::default());
    let count = count_guard.0.clone();
    Runner::new(scheduler, config).run(move || {
        count.fetch_add(1, Ordering::Relaxed);
        Memory::free_all();
        storm();
    });
}

fn random(storm: fn()) {
    explore(RandomScheduler::new_from_seed(SEED, rounds()), storm);
}

fn few_preemptions(storm: fn()) {
    explore(PctScheduler::new_from_seed(SEED, DEPTH, rounds()), storm);
}

#[test]
fn storm_all_due_tasks_run() {
    random(all_due_tasks_run);
    few_preemptions(all_due_tasks_run);
}

#[test]
fn storm_stop_amid_calls() {
    random(stop_amid_calls);
    few_preemptions(stop_amid_calls);
}

/// Runs a storm with a fault in one line of the product. The storm must fail.
fn fails(file: &'static str, line: &'static str, how: How, explore: fn(fn()), storm: fn()) {
    Fault { file, line, how }.during(|| explore(storm));
}

#[test]
#[should_panic(expected = "deadlock")]
fn storm_negative_a_request_does_not_lower_due() {
    fails("shard/inbox.rs", "self.due.store(due", How::Skip, random, all_due_tasks_run);
}

#[test]
#[should_panic(expected = "deadlock")]
fn storm_negative_unlocking_in_two_steps() {
    fails("sync/lock.rs", "word.fetch_sub(LOCKED", How::Split, few_preemptions, all_due_tasks_run);
}

#[test]
#[should_panic(expected = "deadlock")]
fn storm_negative_a_caller_does_not_wake() {
    fails("alarm.rs", "|until| Some(sooner(until))", How::Skip, random, all_due_tasks_run);
}

#[test]
#[should_panic(expected = "counted")]
fn storm_negative_a_permit_is_released_in_two_steps() {
    fails("counters/counter.rs", "self.acquired.fetch_sub(1", How::Split, random, stop_amid_calls);
}

#[test]
#[should_panic(expected = "freed")]
fn storm_negative_a_reference_is_not_handed_over() {
    fails("entry/mod.rs", "bucket.store(Location::REFERENCE_TAKEN", How::Skip, random, all_due_tasks_run);
}
