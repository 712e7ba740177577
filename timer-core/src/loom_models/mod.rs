//! Models of the races, which loom checks in every interleaving (`cargo xtask loom`).
//!
//! The models run the code that ships, on another `crate::sync`. Each file covers the races of one
//! protocol. The macro `model` makes a test of each model and of its negative twins, which must
//! fail. A negative twin is the same model with one line of the product left out or weakened. If
//! the step in question is not an atomic operation, the twin contains the protocol again without
//! that step. Each model has a twin, except for `stop::two_threads_stop`, which no single fault
//! breaks.
//!
//! The environment sets the bound on preemptions, and may set a time limit for each model.
//!
//! # Capped models
//!
//! The number of interleavings grows exponentially with the bound, and models of three threads that
//! each access several atomic words would take hours. These models run with one preemption fewer
//! than the bound and at most 2 ([`check_heavy`]). A bound of 3 gives them 2. A bound of 4 does not
//! apply to them.
//!
//! | model | reason |
//! |---|---|
//! | `abandoned::dropped_unrun_and_cancel_and_stop` | three threads drop, cancel and stop a queued task |
//! | `backlog::a_cancelled_timeout_and_the_next_one` | a task and a cancel access the backlog, and a turn hands over |
//! | `bound::two_cancels_and_an_expiry` | three threads access the entry, the lock and the bound |
//! | `cancel_vs_expire::cancel_and_reset_and_expire` | three threads access the entry and the lock, and a second turn follows |
//! | `executor::start_and_cancel_and_reset` | three threads decide on a queued task, and a turn follows |
//! | `inbox::three_callers_and_room_for_one` | three callers access the lock, the inbox and the gate |
//! | `inbox::a_turn_and_two_callers` | two callers and a turn access the lock and the inbox, and a second turn follows |
//! | `life::two_threads_start_one_worker` | two threads start a worker, which sleeps and wakes up, and one stops it |
//! | `life::stopped_twice` | two threads stop a worker, which sleeps and wakes up |
//! | `lock::the_worker_that_tries_in_vain_waits` | the worker accesses the lock word twice, beside two callers at the gate |
//! | `periodic::a_run_that_goes_on_and_stop_and_a_caller` | a run, `stop` and a caller access the lock and the inbox |
//! | `places::a_turn_waits_for_a_move` | one caller moves an entry under the lock, another one moves it too and takes turns |
//! | `references::a_clone_while_others_are_dropped` | three threads change the count, one of them three times |
//! | `stop::two_new_timeouts_beside_stop` | `stop` and two callers access the lock and the inbox |
//! | `stop::a_cancel_and_a_caller_beside_stop` | `stop`, a canceller and a caller access the lock and the inbox |
//! | `worker_end::a_task_and_the_end` | a worker sleeps, wakes up and runs a task while it is stopped |
//!
//! One model runs with at most 1 preemption at any bound ([`check_heaviest`]), because it would
//! take longer than all others together. Storms cover more of it.
//!
//! | model | reason |
//! |---|---|
//! | `inbox::the_worker_and_two_callers` | a worker sleeps and wakes up, and two callers and `stop` access the lock and the inbox |
//!
//! *A limit of loom.* It remembers only the last load of a location, so a thread that loads and
//! then stores hides an earlier load of another thread. In a model where this matters, the thread
//! that only loads is started by the model and is not its main thread.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a model is a test")]

/// Makes a test of a model, and one of each of its negative twins. A twin consists of its name, a
/// part of the expected message in brackets, and a fault of one line: its kind, the file below
/// `src`, and a part of the line.
macro_rules! model {
    (@ $check:ident ($($args:tt)*) $bound:literal, $model:ident
        $(, $twin:ident $([$expected:literal])? $how:ident $file:literal $line:literal)* $(,)?) => {
        mod $model {
            #[test]
            fn holds() {
                super::super::$check($($args)* super::$model);
            }
            $(
                #[test]
                #[should_panic $((expected = $expected))?]
                fn $twin() {
                    let fault = crate::sync::Fault { file: $file, line: $line, how: crate::sync::How::$how };
                    super::super::fails($bound, fault, super::$model);
                }
            )*
        }
    };
    (check_at $bound:literal, $($rest:tt)*) => {
        model!(@ check_at ($bound,) $bound, $($rest)*);
    };
    ($check:ident, $($rest:tt)*) => {
        model!(@ $check () 2, $($rest)*);
    };
}

mod abandoned;
mod alarm;
mod backlog;
mod bound;
mod cancel_vs_expire;
mod counts;
mod delay_queue;
mod driven;
mod executor;
mod futures;
mod generation;
mod handles;
mod inbox;
mod life;
mod lock;
mod lost;
mod names;
mod periodic;
mod places;
mod references;
mod seen;
mod stop;
mod waited;
mod worker_end;

use crate::config::{Config, DrivenBy};
use crate::deadline::{Deadline, NO_TICK, Nanos};
use crate::engine::Engine;
use crate::entry::{Closure, Period, Periodic, Timeout};
use crate::error::RejectReason;
use crate::sync::{Arc, Fault, Memory, has_failed};
use crate::timer_context::TimerContext;
use crate::worker::Dispatcher;
use loom::thread::JoinHandle;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;
use timer_executor::TaskExecutor;

/// Runs `model` in every interleaving, within the bound that the environment sets.
fn check(model: fn()) {
    explore(loom::model::Builder::new(), model);
}

/// Runs `model` with one preemption fewer and at most two, because it would take minutes otherwise.
/// The module lists these models.
fn check_heavy(model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.map_or(2, |bound| bound.saturating_sub(1).min(2)));
    explore(builder, model);
}

/// Runs `model` with at most one preemption, because it would take longer than all other models
/// together. The module lists it.
fn check_heaviest(model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.map_or(1, |bound| bound.min(1)));
    explore(builder, model);
}

/// Runs `model` with a bound of at least `preemptions`, because its race needs that many.
fn check_at(preemptions: usize, model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.map(|bound| bound.max(preemptions));
    explore(builder, model);
}

/// Runs `model` and prints the number of executions. A time limit of the environment may end it
/// before it has seen every interleaving, which the line says.
fn explore(mut builder: loom::model::Builder, model: fn()) {
    builder.max_branches = 20_000;
    // loom checks the time limit once per interval.
    builder.checkpoint_interval = 1_000;
    let begun = Instant::now();
    let limit = builder.max_duration;
    let executions = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = executions.clone();
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        Memory::free_all();
        model();
    });
    let is_cut_off = limit.is_some_and(|limit| begun.elapsed() >= limit);
    let end = if is_cut_off { ", cut off at the time limit" } else { "" };
    println!("{} executions{end}", executions.load(Ordering::Relaxed));
}

/// Runs `model` with a fault in one line of the product, within another bound. The model must
/// fail.
fn fails(preemptions: usize, fault: Fault, model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    fault.during(|| explore(builder, model));
}

/// Runs `body` with a clone of `shared` on another thread.
fn beside<T: Clone + 'static, R: 'static>(shared: &T, body: impl FnOnce(T) -> R + 'static) -> JoinHandle<R> {
    let shared = shared.clone();
    loom::thread::spawn(move || body(shared))
}

/// A timer in a model. It is leaked if the model panics, because its end would call the checker,
/// which has given up by then.
#[derive(Clone)]
struct Subject(Option<Arc<Engine>>);

impl Subject {
    fn dispatcher(&self) -> Dispatcher {
        Dispatcher::new((**self).clone())
    }
}

impl std::ops::Deref for Subject {
    type Target = Arc<Engine>;

    fn deref(&self) -> &Arc<Engine> {
        self.0.as_ref().expect("there until dropped")
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        if has_failed() {
            std::mem::forget(self.0.take());
        }
    }
}

/// Creates a timer with one shard on virtual time. No thread drives it.
fn engine() -> Subject {
    engine_of(Config::default(), None, DrivenBy::ManualDriver)
}

fn bounded(max: usize) -> Subject {
    engine_of(Config { max_pending: Some(max), ..Config::default() }, None, DrivenBy::ManualDriver)
}

fn engine_of(config: Config, executor: Option<Box<dyn TaskExecutor>>, driven_by: DrivenBy) -> Subject {
    Subject(Some(Engine::new(config, executor, driven_by)))
}

/// A number of nanoseconds after which all timeouts and all requests are due.
const LATER: u64 = 10_000_000;

/// Takes turns until all shards are empty. Returns the number of timeouts that ran or were handed
/// over.
fn turn_out(dispatcher: &mut Dispatcher) -> usize {
    let mut expired = 0;
    while dispatcher.engine.next() != NO_TICK {
        expired += turn_at(dispatcher, LATER);
    }
    expired
}

/// Returns the time `nanos` after the beginning of the timer's time.
fn time_at(context: &TimerContext, nanos: u64) -> Nanos {
    context.resolution.start_of(0) + nanos
}

/// Moves the time to `nanos` after its beginning.
fn set_time(engine: &Engine, nanos: u64) {
    engine.context.present.set(time_at(&engine.context, nanos));
}

/// Takes a turn now. Returns the number of timeouts that ran or were handed over.
fn turn(dispatcher: &mut Dispatcher) -> usize {
    let now = dispatcher.engine.context.now();
    dispatcher.turn_to_end(now)
}

/// Takes a turn on another thread.
fn turn_elsewhere(engine: &Subject) -> JoinHandle<usize> {
    let mut dispatcher = engine.dispatcher();
    loom::thread::spawn(move || turn(&mut dispatcher))
}

/// Moves the time to `nanos` after its beginning and takes a turn.
fn turn_at(dispatcher: &mut Dispatcher, nanos: u64) -> usize {
    set_time(&dispatcher.engine, nanos);
    turn(dispatcher)
}

/// The counts of the runs and drops of a task. They are leaked, because a negative twin may drop a
/// task twice.
#[derive(Default)]
struct Outcome {
    ran: AtomicUsize,
    dropped: AtomicUsize,
    /// Whether other threads may take steps in the middle of a run.
    yields: AtomicBool,
}

struct DropCounter(&'static Outcome);

impl DropCounter {
    fn run(&self) {
        if self.0.yields.load(Ordering::Relaxed) {
            loom::thread::yield_now();
        }
        self.0.ran.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for DropCounter {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl Outcome {
    fn counter() -> (DropCounter, &'static Outcome) {
        let outcome: &Outcome = Box::leak(Box::default());
        (DropCounter(outcome), outcome)
    }

    /// Lets other threads take steps in the middle of each run.
    fn yield_in_runs(&self) {
        self.yields.store(true, Ordering::Relaxed);
    }

    fn ran(&self) -> usize {
        self.ran.load(Ordering::Relaxed)
    }

    fn dropped(&self) -> usize {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// Schedules a timeout that is due `nanos` after the beginning of the timer's time.
fn try_new(engine: &Arc<Engine>, nanos: u64) -> (Result<Timeout, RejectReason>, &'static Outcome) {
    let (counter, outcome) = Outcome::counter();
    let deadline = Deadline::up(time_at(&engine.context, nanos));
    let scheduled = engine.schedule(Closure(move |_: &Timeout| counter.run()), |_| deadline);
    (
        scheduled.map_err(|(job, reason)| {
            drop(job);
            reason
        }),
        outcome,
    )
}

fn new(engine: &Arc<Engine>, nanos: u64) -> (Timeout, &'static Outcome) {
    let (timeout, outcome) = try_new(engine, nanos);
    (timeout.unwrap_or_else(|reason| panic!("refused: {reason}")), outcome)
}

/// Schedules a periodic task that runs every 10 ns, for the first time after 5 ns.
fn heartbeat(engine: &Arc<Engine>) -> (Timeout, &'static Outcome) {
    let (counter, outcome) = Outcome::counter();
    let task = move |_: &Timeout| counter.run();
    let deadline = Deadline::up(time_at(&engine.context, 5));
    let scheduled = engine.schedule(Periodic { task, period: Period::Rate(10) }, |_| deadline);
    (scheduled.unwrap_or_else(|_| panic!("refused")), outcome)
}

/// Asserts that no task has panicked. Models in which tasks run end with this, because the timer
/// would count a panic of the checker during a run as a panic of the task.
fn assert_sound(engine: &Engine) {
    assert_eq!(engine.stats().task_panics, 0);
}
