//! Turns on virtual time, which the tasks themselves move.

use super::super::batch::BATCH;
use super::super::visit::MAX_REQUEST_STEPS;
use super::*;
use crate::config::{Config, DrivenBy};
use crate::deadline::Deadline;
use crate::entry::{Closure, Timeout};
use crate::handle::Timer;
use crate::shard::VisitOutcome;
use crate::sync::{AtomicU64, Ordering};
use futures::FutureExt;
use std::sync::{Mutex, OnceLock, Weak};
use std::task::{self, Wake};
use std::time::Duration;
use timer_executor::{ExecuteError, ImmediateExecutor, Task, TaskExecutor};

const MICRO: Nanos = 1_000;
const MILLI: Nanos = 1_000_000;

fn engine(executor: Option<Box<dyn TaskExecutor>>) -> Arc<Engine> {
    Engine::new(Config::default(), executor, DrivenBy::ManualDriver)
}

/// Schedules `count` tasks that are due now, and takes a turn.
fn run_due(engine: &Arc<Engine>, count: usize, task: impl Fn() + Clone + Send + 'static) -> usize {
    for _ in 0..count {
        let task = task.clone();
        assert!(engine.schedule(Closure(move |_: &Timeout| task()), Deadline::down).is_ok());
    }
    Dispatcher::new(engine.clone()).turn_to_end(engine.context.now())
}

/// Returns a task that takes `nanos` nanoseconds.
fn lasting(engine: &Arc<Engine>, nanos: Nanos) -> impl Fn() + Clone + Send + 'static {
    let engine = engine.clone();
    move || engine.context.present.set(engine.context.now() + nanos)
}

fn longest_batch(engine: &Engine) -> Duration {
    engine.stats().longest_batch
}

/// An executor that calls the function with each task.
struct Executor<F>(F);

impl<F: Fn(Task) -> Result<(), ExecuteError> + Send + Sync + 'static> TaskExecutor for Executor<F> {
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        (self.0)(task)
    }
}

#[test]
fn no_task_runs_after_stop_has_begun() {
    let engine = engine(None);
    let ran = Arc::new(AtomicU64::new(0));
    let task = {
        let (engine, ran) = (engine.clone(), ran.clone());
        move || {
            ran.fetch_add(1, Ordering::Relaxed);
            engine.abandon();
        }
    };
    assert_eq!(run_due(&engine, 3, task), 1);
    assert_eq!(ran.load(Ordering::Relaxed), 1);
    assert_eq!((engine.pending(), engine.stats().cancelled), (0, 2));
}

#[test]
fn a_batch_begins_where_the_last_one_ended() {
    let engine = engine(None);
    assert_eq!(run_due(&engine, 2 * BATCH, lasting(&engine, MICRO)), 2 * BATCH);
    assert_eq!(longest_batch(&engine), Duration::from_micros(BATCH as u64));
}

#[test]
fn tasks_and_wakers_share_a_batch() {
    struct Lasting(Arc<Engine>);
    impl Wake for Lasting {
        fn wake(self: std::sync::Arc<Self>) {
            lasting(&self.0, MICRO)();
        }
    }

    let engine = engine(None);
    let timer = Timer { engine: engine.clone() };
    let waker = std::sync::Arc::new(Lasting(engine.clone())).into();
    let mut sleeps: Vec<_> = (0..BATCH).map(|_| timer.sleep(Duration::from_micros(1))).collect();
    assert!(sleeps.iter_mut().all(|sleep| sleep.poll_unpin(&mut task::Context::from_waker(&waker)).is_pending()));
    engine.context.present.set(engine.context.now() + MICRO);
    assert_eq!(run_due(&engine, 2 * BATCH, lasting(&engine, MICRO)), 3 * BATCH);
    assert_eq!(longest_batch(&engine), Duration::from_micros(BATCH as u64));
}

#[test]
fn a_long_search_ends_the_batch_of_a_task() {
    let engine = engine(None);
    let now = engine.context.now();
    let task = lasting(&engine, 3 * MILLI);
    assert!(engine.schedule(Closure(move |_: &Timeout| task()), Deadline::down).is_ok());
    for _ in 0..1_000 {
        let moved = engine.schedule(Closure(|_: &Timeout| {}), Deadline::down).ok();
        assert!(moved.is_some_and(|timeout| timeout.reset(Duration::from_secs(1))));
    }
    let mut visit = Visit::new(engine.shards()[0]);
    visit.open(VisitStep::First, engine.context.resolution.tick_at(now), now, &engine.context);
    let mut batch = Batch::default();
    batch.begin_turn(now, true, &engine.context);
    assert_eq!(batch.dispatch(&engine, &mut visit.undecided, now + 2 * MILLI), 1);
    let decided = batch.sweeper.decided();
    assert!((1..=2 * BATCH).contains(&decided), "{decided} entries");
    assert_eq!(longest_batch(&engine), Duration::from_millis(3));
}

#[test]
fn a_turn_after_many_entries_begins_with_a_sweep() {
    for (count, left) in [(3, 3), (600, 0)] {
        let engine = engine(None);
        for _ in 0..count {
            assert!(engine.schedule(Closure(|_: &Timeout| {}), Deadline::down).is_ok());
        }
        let mut dispatcher = Dispatcher::new(engine.clone());
        dispatcher.turn_to_end(engine.context.now());
        assert_eq!(dispatcher.batch.sweeper.decided(), count);
        dispatcher.turn_to_end(engine.context.now());
        assert_eq!(dispatcher.batch.sweeper.decided(), left);
    }
}

#[test]
fn a_rejected_task_is_measured() {
    let engine = engine(Some(Box::new(Executor(|task| Err(ExecuteError(task))))));
    assert_eq!(run_due(&engine, 1, lasting(&engine, 5 * MILLI)), 1);
    assert_eq!(longest_batch(&engine), Duration::from_millis(5));
    assert_eq!(engine.stats().executor_rejections, 1);
}

#[test]
fn tasks_are_in_flight_when_they_are_handed_over() {
    let subject = Arc::new(OnceLock::<Weak<Engine>>::new());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let executor = {
        let (subject, seen) = (subject.clone(), seen.clone());
        Executor(move |task: Task| {
            let engine = subject.get().unwrap().upgrade().unwrap();
            // A panic here would be contained.
            seen.lock().unwrap().push(engine.context.counters.in_flight.get());
            drop(engine);
            Err(ExecuteError(task))
        })
    };
    let engine = engine(Some(Box::new(executor)));
    subject.set(Arc::downgrade(&engine)).unwrap();
    assert_eq!(run_due(&engine, 2, || {}), 2);
    assert_eq!(*seen.lock().unwrap(), [(2, 0), (2, 0)]);
    assert_eq!(engine.stats().executor_rejections, 2);
    assert_eq!(engine.stats().in_flight, 0);
}

#[test]
fn a_visit_makes_few_steps_for_requests_alone() {
    let engine = engine(None);
    let mut visit = Visit::new(engine.shards()[0]);
    (visit.outcome, visit.request_steps) = (VisitOutcome::Requests, MAX_REQUEST_STEPS);
    assert_eq!(visit.go_on(&mut Batch::default(), &engine, MILLI), 0);
    assert_eq!(visit.outcome, VisitOutcome::Requests, "the visit made a further step");
    visit.request_steps -= 1;
    assert_eq!(visit.go_on(&mut Batch::default(), &engine, MILLI), 0);
    assert!(visit.outcome == VisitOutcome::Last && !visit.is_open);
}

/// The tasks take 2 us each, which the timer has measured before.
#[test]
fn the_lag_of_a_crowd_is_known_before_it_comes() {
    let engine = engine(None);
    run_due(&engine, 1_000, lasting(&engine, 2 * MICRO));
    assert_eq!(engine.stats().expiry_time, Duration::from_micros(2));
    let (before, due) = (engine.stats().timeout_lag, engine.context.now() + 1_000 * MILLI);
    for _ in 0..20_000 {
        let task = lasting(&engine, 2 * MICRO);
        assert!(engine.schedule(Closure(move |_: &Timeout| task()), |_| Deadline::up(due)).is_ok());
    }
    let expected = engine.timetable().expected_lag();
    engine.context.present.set(due);
    Dispatcher::new(engine.clone()).turn_to_end(due);
    assert_eq!(expected, Duration::from_millis(40));
    assert_eq!(engine.stats().timeout_lag.since(&before).max(), expected);
}

/// The CPU time of the thread stands still, so its batches of 100 us and more were preempted.
#[test]
fn a_preempted_crowd_does_not_make_an_expiry_longer() {
    let (timer, mut driver) = Timer::builder().build_driven().unwrap();
    for _ in 0..1_000 {
        let task = |_: &Timeout| {
            let begin = std::time::Instant::now();
            while begin.elapsed() < Duration::from_micros(10) {}
        };
        timer.new_timeout(Duration::ZERO, task).unwrap();
    }
    crate::sync::CPU_USE.set(Some((0, 0)));
    while timer.pending_timeouts() > 0 {
        driver.turn();
    }
    let time = timer.stats().expiry_time;
    assert!(time < Duration::from_micros(5), "{time:?}");
}

#[test]
fn a_preempted_batch_of_an_inline_executor_has_lost_no_more_than_it_took() {
    let engine = Engine::new(Config::default(), Some(Box::new(ImmediateExecutor)), DrivenBy::Driver);
    // The thread has used no CPU time at all.
    crate::sync::CPU_USE.set(Some((0, 0)));
    let task = {
        let (context, began) = (engine.context.clone(), engine.context.now());
        move || while context.now() < began + MILLI {}
    };
    assert_eq!(run_due(&engine, 1, task), 1);
}
