//! Models of a task that was handed over to an executor. Its start meets a cancel, a reset and
//! `stop`.

use super::{Outcome, Subject, assert_sound, beside, engine_of, time_at, turn, turn_at, turn_out};
use crate::config::{Config, DrivenBy};
use crate::entry::Timeout;
use loom::thread;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use timer_executor::{ExecuteError, Task, TaskExecutor};

/// An executor that keeps its tasks.
#[derive(Clone, Default)]
pub(super) struct Keeper(Arc<Mutex<Vec<Task>>>);

impl TaskExecutor for Keeper {
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        self.0.lock().unwrap().push(task);
        Ok(())
    }
}

impl Keeper {
    pub(super) fn timer() -> (Subject, Keeper) {
        let keeper = Keeper::default();
        let executor: Box<dyn TaskExecutor> = Box::new(keeper.clone());
        (engine_of(Config::default(), Some(executor), DrivenBy::ManualDriver), keeper)
    }

    pub(super) fn take(&self) -> Option<Task> {
        self.0.lock().unwrap().pop()
    }
}

/// Creates a timer and a timeout whose task was handed over.
pub(super) fn queued(schedule: fn(&Arc<crate::engine::Engine>) -> (Timeout, &'static Outcome)) -> Queued {
    let (engine, keeper) = Keeper::timer();
    let (timeout, outcome) = schedule(&engine);
    assert_eq!(turn_at(&mut engine.dispatcher(), 5), 1);
    let task = keeper.take().expect("handed over");
    Queued { engine, keeper, timeout, outcome, task }
}

pub(super) struct Queued {
    pub(super) engine: Subject,
    pub(super) keeper: Keeper,
    pub(super) timeout: Timeout,
    pub(super) outcome: &'static Outcome,
    pub(super) task: Task,
}

fn once(engine: &Arc<crate::engine::Engine>) -> (Timeout, &'static Outcome) {
    super::new(engine, 5)
}

fn assert_none_in_flight(engine: &Subject) {
    let stats = engine.stats();
    assert_eq!((stats.queued, stats.running), (0, 0));
    assert_sound(engine);
}

fn start_and_cancel() {
    let Queued { engine, timeout, outcome, task, .. } = queued(once);
    let canceller = thread::spawn(move || timeout.cancel());
    task.run();
    let cancelled = usize::from(canceller.join().unwrap());
    assert_eq!(outcome.ran() + cancelled, 1, "both have won");
    assert_eq!(outcome.dropped(), 1);
    let stats = engine.stats();
    assert_eq!((stats.expired as usize, stats.cancelled as usize, stats.pending), (1 - cancelled, cancelled, 0));
    assert_none_in_flight(&engine);
}

model!(check, start_and_cancel,
    starting_by_load_and_store Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

/// The turn hands the task over while the timeout is cancelled, and a thread of the executor starts
/// it.
fn hand_over_and_cancel() {
    let (engine, keeper) = Keeper::timer();
    let (timeout, outcome) = once(&engine);
    super::set_time(&engine, 5);
    let canceller = thread::spawn(move || timeout.cancel());
    let _ = turn(&mut engine.dispatcher());
    keeper.take().into_iter().for_each(Task::run);
    let cancelled = usize::from(canceller.join().unwrap());
    assert_eq!((outcome.ran() + cancelled, outcome.dropped()), (1, 1));
    let stats = engine.stats();
    assert_eq!((stats.expired as usize, stats.cancelled as usize, stats.pending), (1 - cancelled, cancelled, 0));
    assert_none_in_flight(&engine);
}

model!(check, hand_over_and_cancel,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

/// The timeout is moved later while its task is queued. It returns to the wheel and runs at the new
/// deadline.
fn start_and_reset() {
    let Queued { engine, keeper, timeout, outcome, task } = queued(once);
    let mover = beside(&timeout, move |timeout| timeout.reset(Duration::from_nanos(4)));
    task.run();
    let moved = mover.join().unwrap();
    assert_eq!(outcome.ran(), usize::from(!moved));
    if moved {
        assert_eq!(turn_at(&mut engine.dispatcher(), 9), 1);
        keeper.take().into_iter().for_each(Task::run);
    }
    assert_eq!((outcome.ran(), outcome.dropped(), engine.pending()), (1, 1, 0));
    assert_none_in_flight(&engine);
}

model!(check, start_and_reset,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

fn start_and_cancel_and_reset() {
    let Queued { engine, keeper, timeout, outcome, task } = queued(once);
    let mover = beside(&timeout, move |timeout| timeout.reset(Duration::from_nanos(4)));
    let canceller = thread::spawn(move || timeout.cancel());
    task.run();
    let _ = mover.join().unwrap();
    let cancelled = usize::from(canceller.join().unwrap());
    let _ = turn_out(&mut engine.dispatcher());
    keeper.take().into_iter().for_each(Task::run);
    assert_eq!((outcome.ran() + cancelled, outcome.dropped(), engine.pending()), (1, 1, 0));
    assert_none_in_flight(&engine);
}

model!(check_heavy, start_and_cancel_and_reset,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

/// A queued timeout is moved and returns to its wheel while the timer is stopped. Either `stop`
/// returns it, or the thread that finds the shard closed cancels it.
fn reset_and_stop() {
    let Queued { engine, timeout, outcome, task, .. } = queued(once);
    let mover = beside(&timeout, move |timeout| timeout.reset(Duration::from_nanos(4)));
    let handed_back = engine.stop().len();
    assert!(mover.join().unwrap());
    task.run();
    assert!(handed_back <= 1 && timeout.is_cancelled(), "lost");
    assert_eq!((outcome.ran(), outcome.dropped(), engine.pending(), engine.stats().cancelled), (0, 1, 0, 1));
    assert_none_in_flight(&engine);
}

model!(check, reset_and_stop,
    locking_in_two_steps Split "sync/lock.rs" "self.word.compare_exchange(old, new",
);

/// A queued timeout is moved and returns to its wheel while `stop_and_wait` waits for the executor.
/// When the call returns, the timeout has ended.
fn reset_and_stop_and_wait() {
    let Queued { engine, timeout, outcome, task, .. } = queued(once);
    let mover = beside(&timeout, move |timeout| timeout.reset(Duration::from_nanos(4)));
    let report = engine.stop_by_limit(Duration::from_secs(60));
    assert_eq!(report.in_flight, 0);
    drop(report);
    assert!(timeout.is_cancelled() && engine.pending() == 0, "the timeout has not ended");
    assert!(mover.join().unwrap());
    task.run();
    assert_eq!((outcome.ran(), outcome.dropped()), (0, 1));
    assert_none_in_flight(&engine);
}

model!(check, reset_and_stop_and_wait,
    locking_in_two_steps Split "sync/lock.rs" "self.word.compare_exchange(old, new",
);

/// A periodic task is cancelled while its run on a thread of an executor ends.
fn a_periodic_run_and_cancel() {
    let Queued { engine, timeout, outcome, task, .. } = queued(super::heartbeat);
    let canceller = thread::spawn(move || timeout.cancel());
    task.run();
    assert!(canceller.join().unwrap());
    assert_eq!(turn_out(&mut engine.dispatcher()), 0);
    assert_eq!((outcome.dropped(), engine.pending(), engine.stats().cancelled), (1, 0, 1));
    assert_none_in_flight(&engine);
}

model!(check, a_periodic_run_and_cancel,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

/// The timer is stopped while a periodic run ends. The timeout is linked again, or the run cancels
/// it.
fn a_periodic_run_and_stop() {
    let Queued { engine, timeout, outcome, task, .. } = queued(super::heartbeat);
    let runner = thread::spawn(move || task.run());
    drop(engine.stop());
    runner.join().unwrap();
    assert!(timeout.is_cancelled(), "lost");
    assert_eq!((outcome.ran(), outcome.dropped(), engine.pending(), engine.stats().cancelled), (1, 1, 0, 1));
    assert_none_in_flight(&engine);
    assert!(time_at(&engine.context, 5) <= engine.context.now());
}

model!(check, a_periodic_run_and_stop,
    locking_in_two_steps Split "sync/lock.rs" "self.word.compare_exchange(old, new",
);
