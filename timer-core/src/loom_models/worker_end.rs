//! Models of `stop_and_wait` and the worker's end. When the call returns, no task runs on the
//! worker, and the caller sees the writes of its tasks.

use super::{Subject, assert_sound, check, engine_of};
use crate::config::{Config, DrivenBy};
use crate::deadline::Deadline;
use crate::engine::Engine;
use crate::entry::{Closure, Timeout};
use crate::sync::{Arc, AtomicBool, AtomicU32, Mutex, Ordering};
use crate::worker;
use loom::thread;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// The work of a task. The checker orders accesses to `done`, and the other counts show the real
/// order.
#[derive(Default)]
struct Work {
    done: AtomicU32,
    began: AtomicUsize,
    ended: AtomicUsize,
}

impl Work {
    fn run(&self) {
        self.began.fetch_add(1, Ordering::Relaxed);
        self.done.store(1, Ordering::Relaxed);
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// Stops a timer whose time stands still while its worker runs a task.
fn a_task_and_the_end() {
    let engine = engine_of(Config::default(), None, DrivenBy::Worker);
    let context = &engine.context;
    // Always at the beginning of a tick, so that all executions are alike.
    context.present.set(context.resolution.start_of(context.resolution.tick_at(context.now()) + 1));
    let work = Arc::new(Work::default());
    let task = {
        let work = work.clone();
        Closure(move |_: &Timeout| work.run())
    };
    let due = Deadline::down(engine.context.now());
    assert_eq!(worker::start(&engine), Ok(()));
    assert!(engine.schedule(task, |_| due).is_ok());
    let handed_back = engine.stop_and_wait(SECOND).unwrap().unprocessed.len();
    let ran = work.ended.load(Ordering::Relaxed);
    assert_eq!(work.began.load(Ordering::Relaxed), ran, "it still runs");
    assert_eq!(work.done.load(Ordering::Relaxed) as usize, ran, "not seen");
    assert_eq!((ran + handed_back, engine.stats().expired as usize, engine.pending()), (1, ran, 0), "lost");
    assert_sound(&engine);
}

model!(check_heavy, a_task_and_the_end,
    the_worker_is_not_woken ["deadlock"] Skip "alarm.rs" "|until| Some(sooner(until))",
);

/// Returns a timer with a worker that is not started.
fn with_worker() -> Subject {
    Subject(Some(Engine::new(Config::default(), None, DrivenBy::Worker)))
}

/// The body of a worker that takes one turn and ends.
fn one_turn(engine: Arc<Engine>) {
    engine.context.counters.turns.add(1);
    engine.lifecycle.worker_has_ended();
}

fn a_turn_and_the_end() {
    let engine = with_worker();
    assert_eq!(engine.spawn_worker(one_turn), Ok(()));
    let _ = engine.stop_and_wait(SECOND).unwrap();
    assert_eq!(engine.stats().turns, 1, "not seen");
}

model!(check_at 4, a_turn_and_the_end,
    the_end_is_not_reported ["deadlock"] Skip "engine/lifecycle.rs" "fn worker_has_ended .. worker_gone.store(true",
);

/// Two threads wait while a third one starts the worker. When they return, the worker has ended, or
/// it can no longer start.
fn two_threads_wait_for_the_end() {
    let engine = with_worker();
    let others = [(); 2].map(|()| {
        let engine = engine.clone();
        thread::spawn(move || {
            let _ = engine.stop_and_wait(SECOND).unwrap();
            engine.stats().turns
        })
    });
    let started = u64::from(engine.spawn_worker(one_turn).is_ok());
    let seen = others.map(|other| other.join().unwrap());
    assert_eq!(seen, [started; 2], "not seen");
}

model!(check, two_threads_wait_for_the_end,
    the_exit_is_not_reported ["deadlock"] Skip "engine/lifecycle.rs" "worker.join(); .. thread_gone.store(true",
);

/// The waiting thread takes the lock of `start`, because it could otherwise read an old value of
/// the flag that a worker runs.
fn start_and_wait(with_lock: bool) {
    let life = Arc::new((Mutex::new(()), AtomicBool::new(false), AtomicBool::new(true)));
    let runs = Arc::new(AtomicUsize::new(0));
    let waiter = {
        let life = life.clone();
        let runs = runs.clone();
        thread::spawn(move || {
            let (starting, stopped, gone) = &*life;
            stopped.swap(true, Ordering::AcqRel);
            if with_lock {
                drop(starting.lock());
            }
            assert!(!gone.load(Ordering::Acquire) || runs.load(Ordering::Relaxed) == 0, "a worker runs");
        })
    };
    let (starting, stopped, gone) = &*life;
    let guard = starting.lock();
    if !stopped.load(Ordering::Acquire) {
        gone.store(false, Ordering::Relaxed);
        runs.store(1, Ordering::Relaxed);
    }
    drop(guard);
    waiter.join().unwrap();
}

fn the_lock_shows_an_earlier_start() {
    start_and_wait(true);
}

model!(check_at 4, the_lock_shows_an_earlier_start);

#[test]
#[should_panic(expected = "a worker runs")]
fn negative_a_start_is_hidden_without_the_lock() {
    check(|| start_and_wait(false));
}
