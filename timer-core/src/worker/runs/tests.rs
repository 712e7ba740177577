//! Each cause of lateness, injected alone on virtual time with ticks.

use crate::config::{Config, DrivenBy};
use crate::counters::{LateCause, LateRun};
use crate::deadline::{Deadline, Nanos};
use crate::engine::Engine;
use crate::entry::{Closure, Hooked, Timeout, TimerTask};
use crate::lateness::{SPLITS, Throttled};
use crate::sync::{Arc, Mutex};
use crate::worker::Dispatcher;
use std::time::Duration;
use timer_executor::{Task, TaskExecutor};

const MICRO: Nanos = 1_000;
const MILLI: Nanos = 1_000_000;
const SECOND: Nanos = 1_000_000_000;

/// A time at the beginning of a tick.
const START: Nanos = 1_000 * SECOND;

struct World {
    engine: Arc<Engine>,
    dispatcher: Dispatcher,
}

impl World {
    fn new(tick: Nanos, executor: Option<Box<dyn TaskExecutor>>) -> Self {
        let config = Config { shards: Some(1), tick: Duration::from_nanos(tick), ..Config::default() };
        let engine = Engine::new(config, executor, DrivenBy::Driver);
        engine.context.present.set(START);
        let mut dispatcher = Dispatcher::new(engine.clone());
        dispatcher.turn(START);
        Self { engine, dispatcher }
    }

    fn schedule(&self, due: Nanos, task: impl FnOnce() + Send + 'static) {
        let task = Closure(move |_: &Timeout| task());
        assert!(self.engine.schedule(task, |_| Deadline::up(due)).is_ok());
    }

    /// Returns a task that takes `nanos` nanoseconds.
    fn lasting(&self, nanos: Nanos) -> impl Fn() + Clone + Send + 'static {
        let context = self.engine.context.clone();
        move || context.present.set(context.present.now() + nanos)
    }

    /// Takes the turn of `now`, or a later one if time has passed it.
    fn turn(&mut self, now: Nanos) {
        self.engine.context.present.set(now);
        self.dispatcher.turn_to_end(self.engine.context.now());
    }

    /// Checks that at least 95 % of the lateness of all runs is due to `cause`, and that the parts
    /// add up. Returns the worst run.
    #[track_caller]
    fn assert_cause(&self, cause: LateCause) -> LateRun {
        let stats = self.engine.stats();
        let (total, part) = (stats.lateness.total(), stats.lateness.part(cause));
        assert_eq!(total, stats.start_lag.sum(), "{:?}", stats.lateness);
        assert!(!total.is_zero() && part >= total.mul_f64(0.95), "{:?}", stats.lateness);
        let late = stats.late_runs;
        assert!(late.sum(cause) >= total.mul_f64(0.9), "{late:?}");
        assert!(LateCause::ALL.iter().all(|other| *other == cause || late.sum(*other) <= total / 20), "{late:?}");
        let now = crate::clock::instant(self.engine.context.now());
        let worst = self.engine.context.counters.worst.lock().get(now);
        let Some(worst) = worst.first() else { panic!("no run is known as late") };
        assert_eq!(worst.lateness.main_cause(), Some(cause), "{worst:?}");
        *worst
    }
}

#[test]
fn a_quota() {
    let group = Throttled::new();
    let mut world = World::new(MILLI, None);
    world.dispatcher.batch.timeline.watch_quota(group.watch());
    world.schedule(START + 10 * MILLI, || {});
    group.set(7_600);
    world.turn(START + 410 * MILLI);
    let worst = world.assert_cause(LateCause::Quota);
    assert_eq!(worst.lateness.part(LateCause::Quota), Duration::from_millis(400), "as much as the system had");
}

#[test]
fn a_coarse_tick() {
    let mut world = World::new(SECOND, None);
    world.schedule(START + 100 * MILLI, || {});
    world.schedule(START + 200 * MILLI, || {});
    // A run is known as late from 1 ms after its tick.
    world.turn(START + SECOND + MILLI);
    let worst = world.assert_cause(LateCause::Tick);
    assert_eq!(worst.lateness.total(), Duration::from_millis(901));
}

#[test]
fn a_worker_that_is_woken_late() {
    let mut world = World::new(MILLI, None);
    (0..1_000).for_each(|nth| world.schedule(START + MILLI + nth, || {}));
    world.turn(START + 50 * MILLI);
    world.assert_cause(LateCause::System);
}

#[test]
fn a_slow_task() {
    struct Slow<F>(F);
    impl<F: FnOnce() + Send + 'static> TimerTask for Slow<F> {
        fn run(self, _: &Timeout) {
            (self.0)();
        }
        fn name() -> &'static str {
            "a slow task"
        }
    }
    let mut world = World::new(MILLI, None);
    let slow = Hooked(Slow(world.lasting(70 * MILLI)));
    assert!(world.engine.schedule(slow, |_| Deadline::up(START + MILLI)).is_ok());
    // These are due while the task runs, at most 1 us before their ticks.
    (2..72).for_each(|nth| world.schedule(START + nth * MILLI, || {}));
    world.turn(START + MILLI);
    world.turn(0);
    let worst = world.assert_cause(LateCause::Tasks);
    assert_eq!(worst.behind, Some("a slow task"));
    assert_eq!(world.engine.stats().lateness.part(LateCause::Tasks), world.engine.stats().lateness.total());
}

/// A task of another type is slow, in a batch with others.
#[test]
fn a_slow_task_among_others_is_not_guessed() {
    let mut world = World::new(MILLI, None);
    world.schedule(START + MILLI, || {});
    world.schedule(START + MILLI, world.lasting(70 * MILLI));
    world.schedule(START + 2 * MILLI, || {});
    world.turn(START + MILLI);
    world.turn(0);
    assert_eq!(world.assert_cause(LateCause::Tasks).behind, None);
}

#[test]
fn the_explanation_of_a_crowd_reads_the_timeline_rarely() {
    const CROWD: u64 = 6_400;
    for executor in [false, true] {
        let executor = executor.then(|| Box::new(|task: Task| task.run()) as Box<dyn TaskExecutor>);
        let mut world = World::new(MILLI, executor);
        (0..CROWD).for_each(|nth| world.schedule(START + nth * 7_919 % CROWD * 100 * MICRO, || {}));
        let before = SPLITS.get();
        world.turn(START + SECOND);
        let splits = SPLITS.get() - before;
        assert!(splits <= CROWD as usize / 4, "{splits} splits");
        let late = world.engine.stats().late_runs;
        assert_eq!(late.count(LateCause::System), CROWD);
    }
}

#[test]
fn a_crowd() {
    let mut world = World::new(MILLI, None);
    let task = world.lasting(MICRO / 2);
    (0..100_000).for_each(|_| world.schedule(START + MILLI, task.clone()));
    world.turn(START + MILLI);
    let worst = world.assert_cause(LateCause::Turn);
    assert_eq!((worst.lateness.total(), worst.behind), (Duration::from_millis(50), None));
}

#[test]
fn a_held_lock() {
    let mut world = World::new(MILLI, None);
    world.schedule(START + MILLI, || {});
    let (engine, shard) = (world.engine.clone(), world.engine.shards()[0]);
    let (held, is_held) = std::sync::mpsc::channel();
    let holder = std::thread::spawn(move || {
        shard.hold_up_worker(|| held.send(()).unwrap(), || engine.context.present.set(START + 31 * MILLI));
    });
    is_held.recv().unwrap();
    world.turn(START + MILLI);
    holder.join().unwrap();
    world.assert_cause(LateCause::Lock);
}

#[test]
fn a_queue_of_an_executor() {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let queue = kept.clone();
    let mut world = World::new(MILLI, Some(Box::new(move |task: Task| queue.lock().push(task))));
    (0..10).for_each(|_| world.schedule(START + MILLI, || {}));
    world.turn(START + 2 * MILLI);
    world.engine.context.present.set(START + 80 * MILLI);
    std::mem::take(&mut *kept.lock()).into_iter().for_each(Task::run);
    let worst = world.assert_cause(LateCause::Executor);
    assert_eq!(worst.lateness.part(LateCause::System), Duration::from_millis(1));
}

/// Tasks of 3 us, the turns of which are late in between.
#[test]
fn parts_of_a_long_overload_add_up() {
    let mut world = World::new(10 * MICRO, None);
    let task = world.lasting(3 * MICRO);
    let (mut due, mut now) = (START, START);
    for turn in 0..400 {
        (0..20).for_each(|nth| world.schedule(due + nth * 1_111, task.clone()));
        due += 50 * MICRO;
        now = world.engine.context.now().max(now) + turn % 7 * MICRO;
        world.turn(now);
    }
    world.turn(now + SECOND);
    let stats = world.engine.stats();
    assert_eq!(stats.lateness.total(), stats.start_lag.sum(), "{:?}", stats.lateness);
    assert_eq!(stats.start_lag.count(), 8_000);
    assert!(stats.lateness.part(LateCause::Tasks) > stats.lateness.total() / 2, "{:?}", stats.lateness);
}
