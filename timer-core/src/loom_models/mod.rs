//! The races of the hand-overs, model-checked: `cargo xtask loom`.
//!
//! The code under the models is the code that ships; only `crate::sync` differs. Each file proves
//! the races of one protocol, says so, and has negative twins that must fail: the same model with
//! one line of the product left out or weakened ([`fails`]), or, for a step that is no atomic
//! operation, the protocol written again without it.
//!
//! The bound on preemptions is the environment's; heavy models run with one fewer
//! ([`check_heavy`]).
//!
//! *What the checker does not see*: it remembers only the last load of a location, so a thread that
//! loads and then stores hides an earlier load by another thread. Where that matters the thread
//! that loads only is one that the model starts.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a model is a test")]

mod abandoned;
mod alarm;
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
mod names;
mod periodic;
mod places;
mod references;
mod seen;
mod stop;
mod waited;
mod worker_end;

use crate::config::{Config, DrivenBy};
use crate::context::Context;
use crate::entry::{Closure, Period, Periodic, Timeout};
use crate::error::RejectReason;
use crate::sync::{Arc, Fault, How, Memory, has_failed};
use crate::time::{Deadline, NO_TICK, Nanos};
use crate::timer::Engine;
use crate::worker::Dispatcher;
use std::sync::atomic::{AtomicUsize, Ordering};
use timer_executor::TaskExecutor;

/// Runs `model` in every interleaving within the bound that the environment sets.
fn check(model: fn()) {
    explore(loom::model::Builder::new(), model);
}

/// The same with one preemption fewer, and never more than two, for what would take minutes.
fn check_heavy(model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.map_or(2, |bound| bound.saturating_sub(1).min(2)));
    explore(builder, model);
}

/// The same with one preemption at the most, for what would take longer than all others together:
/// storms take more of it.
fn check_heaviest(model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.map_or(1, |bound| bound.min(1)));
    explore(builder, model);
}

/// The same with a bound of at least `preemptions`, for a race that needs so many.
fn check_at(preemptions: usize, model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.map(|bound| bound.max(preemptions));
    explore(builder, model);
}

fn explore(mut builder: loom::model::Builder, model: fn()) {
    builder.max_branches = 20_000;
    let executions = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = executions.clone();
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        Memory::free_all();
        model();
    });
    println!("{} executions", executions.load(Ordering::Relaxed));
}

/// Runs `model`, which must not pass, with something wrong with one line of the product.
fn fails(file: &'static str, line: &'static str, how: How, model: fn()) {
    fails_at(0, file, line, how, model);
}

/// The same with a bound of at least `preemptions`.
fn fails_at(preemptions: usize, file: &'static str, line: &'static str, how: How, model: fn()) {
    Fault { file, line, how }.during(|| check_at(preemptions, model));
}

/// A timer in a model. If the model panics it is leaked: its end would ask the checker, which has
/// given up.
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

/// A timer of one shard on virtual time, which no thread drives.
fn engine() -> Subject {
    engine_of(Config::default(), None, DrivenBy::ManualDriver)
}

fn bounded(max: usize) -> Subject {
    engine_of(Config { max_pending: Some(max), ..Config::default() }, None, DrivenBy::ManualDriver)
}

fn engine_of(config: Config, executor: Option<Box<dyn TaskExecutor>>, driven_by: DrivenBy) -> Subject {
    Subject(Some(Engine::new(config, executor, driven_by)))
}

/// Nanoseconds after which all is due, requests that wait for the worker's patience included.
const LATER: u64 = 10_000_000;

/// Takes turns until nothing is left to be looked at; how many timeouts were handed over.
fn turn_out(dispatcher: &mut Dispatcher) -> usize {
    let mut expired = 0;
    while dispatcher.engine().next() != NO_TICK {
        expired += turn_at(dispatcher, LATER);
    }
    expired
}

/// So many nanoseconds after the timer's time began.
fn at(context: &Context, nanos: u64) -> Nanos {
    context.resolution.start_of(0) + nanos
}

/// It is so many nanoseconds after the timer's time began.
fn set_time(engine: &Engine, nanos: u64) {
    engine.set_present(at(&engine.context, nanos));
}

/// Runs what is due at the present; how many timeouts were handed over.
fn turn(dispatcher: &mut Dispatcher) -> usize {
    let now = dispatcher.engine().context.now();
    dispatcher.turn_to_end(now).expired
}

/// The same by another thread.
fn turn_elsewhere(engine: &Subject) -> loom::thread::JoinHandle<usize> {
    let mut dispatcher = engine.dispatcher();
    loom::thread::spawn(move || turn(&mut dispatcher))
}

/// Moves the time, and runs what is due.
fn turn_at(dispatcher: &mut Dispatcher, nanos: u64) -> usize {
    set_time(dispatcher.engine(), nanos);
    turn(dispatcher)
}

/// What has become of a task. It is leaked: where two threads are let win a task, it is dropped
/// twice.
#[derive(Default)]
struct Outcome {
    ran: AtomicUsize,
    dropped: AtomicUsize,
}

struct DropCounter(&'static Outcome);

impl DropCounter {
    fn run(&self) {
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

    fn ran(&self) -> usize {
        self.ran.load(Ordering::Relaxed)
    }

    fn dropped(&self) -> usize {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// A new timeout, due so many nanoseconds after the timer's time began.
fn try_new(engine: &Arc<Engine>, nanos: u64) -> (Result<Timeout, RejectReason>, &'static Outcome) {
    let (counter, outcome) = Outcome::counter();
    let deadline = Deadline::up(at(&engine.context, nanos));
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

/// A new task that runs every 10 ns, first at 5.
fn heartbeat(engine: &Arc<Engine>) -> (Timeout, &'static Outcome) {
    let (counter, outcome) = Outcome::counter();
    let task = move |_: &Timeout| counter.run();
    let deadline = Deadline::up(at(&engine.context, 5));
    let scheduled = engine.schedule(Periodic { task, period: Period::Rate(10) }, |_| deadline);
    (scheduled.unwrap_or_else(|_| panic!("refused")), outcome)
}

/// What every model of a whole timer ends with: the checker's own panics within a run would be
/// counted as the task's.
fn assert_sound(engine: &Engine) {
    assert_eq!(engine.stats().task_panics, 0);
}
