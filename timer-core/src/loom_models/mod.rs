//! The races of the hand-overs, model-checked: `cargo xtask loom`.
//!
//! The code under the models is the code that ships; only `crate::sync` differs. Each file proves one race, says so, and has
//! a negative twin that must fail.

mod alarm;
mod bound;
mod inbox;
mod life;
mod notes;
mod periodic;
mod rivals;
mod stop;

use crate::clock::Clock;
use crate::context::Context;
use crate::engine::{Driven, Engine};
use crate::entry::{AnyEntry, Entry};
use crate::entry_wheel::{EntryWheel, WheelKind};
use crate::error::RejectReason;
use crate::job::{Closure, MissedRuns};
use crate::shard::{Collected, Shard, Submitted};
use crate::sync::Arc;
use crate::tally::Bound;
use crate::time::{Resolution, Stamp};
use crate::timeout::Timeout;
use crate::turn::Turner;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Runs `model` in every interleaving within the bound that the environment sets.
fn check(model: impl Fn() + Sync + Send + 'static) {
    check_with(loom::model::Builder::new(), model);
}

/// The same, with a bound of at least `preemptions`, for a race that needs so many.
fn check_at(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.map(|bound| bound.max(preemptions));
    check_with(builder, model);
}

fn check_with(builder: loom::model::Builder, model: impl Fn() + Sync + Send + 'static) {
    let executions = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = executions.clone();
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        model();
    });
    println!("{} executions", executions.load(Ordering::Relaxed));
}

fn context(bound: Option<usize>) -> Context {
    let bound = bound.map(Bound::new);
    Context::new("model".into(), Clock::by_hand(), Resolution::Exact, MissedRuns::Skip, bound)
}

/// A shard of its own, on virtual time.
fn shard() -> Arc<Shard> {
    Arc::new(Shard::new(Arc::new(context(None)), EntryWheel::new(WheelKind::Hierarchical)))
}

/// A timer of one shard, on virtual time, without a worker.
fn engine(bound: Option<usize>) -> Arc<Engine> {
    engine_driven(bound, Driven::ByHand)
}

fn engine_driven(bound: Option<usize>, driven: Driven) -> Arc<Engine> {
    let (wheel, tick) = (WheelKind::Hierarchical, Duration::from_nanos(1));
    Arc::new(Engine::new(context(bound), wheel, tick, None, driven, 1))
}

/// What the turn takes out of a bare shard; nothing if the latch is taken.
fn collect(shard: &Shard, tick: u64) -> Vec<Arc<dyn AnyEntry>> {
    let mut due = Vec::new();
    let collected = shard.collect(tick, false, &mut due);
    assert!(collected == Collected::All || due.is_empty());
    due.into_iter().map(|(_, entry)| entry).collect()
}

/// Runs what is due at `nanos`; how many timeouts were handed over.
fn turn(turner: &mut Turner, nanos: u64) -> usize {
    let clock = &turner.engine().context.clock;
    clock.set(nanos.into());
    turner.turn(nanos.into()).expired
}

/// What has become of a task.
#[derive(Default)]
struct Fate {
    ran: AtomicUsize,
    dropped: AtomicUsize,
}

struct Witness(std::sync::Arc<Fate>);

impl Drop for Witness {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl Fate {
    fn ran(&self) -> usize {
        self.ran.load(Ordering::Relaxed)
    }

    fn dropped(&self) -> usize {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// A task, and what will have become of it.
fn task() -> (impl FnOnce(&Timeout) + Send + 'static, std::sync::Arc<Fate>) {
    let fate = std::sync::Arc::new(Fate::default());
    let witness = Witness(fate.clone());
    let task = move |_: &Timeout| {
        witness.0.ran.fetch_add(1, Ordering::Relaxed);
    };
    (task, fate)
}

/// A new timeout of a bare shard, due at `nanos`.
fn schedule(home: &Arc<Shard>, nanos: u64) -> (Timeout, std::sync::Arc<Fate>) {
    let (task, fate) = task();
    let entry: Arc<dyn AnyEntry> = Arc::new(Entry::new(home.clone(), Stamp::up(nanos.into()), Closure(task)));
    assert_eq!(home.schedule(entry.clone(), nanos), Submitted::Accepted);
    (Timeout::from_entry(entry), fate)
}

/// A new timeout of a timer, due at `nanos`.
fn new_timeout(engine: &Arc<Engine>, nanos: u64) -> (Result<Timeout, RejectReason>, std::sync::Arc<Fate>) {
    let (task, fate) = task();
    let scheduled = engine.schedule(Closure(task), |_, _| Stamp::up(nanos.into()));
    (scheduled.map_err(|(_, reason)| reason), fate)
}
