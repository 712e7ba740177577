//! `stop_and_wait` and the worker's end: no task runs there when it has returned, and what tasks
//! have done is seen.

use super::{Subject, assert_sound, check, check_at, check_heavy, engine_of, fails};
use crate::config::{Config, DrivenBy};
use crate::entry::{Closure, Timeout};
use crate::sync::{Arc, AtomicBool, AtomicU32, How, Mutex, Ordering};
use crate::time::Deadline;
use crate::timer::Engine;
use crate::worker;
use loom::thread;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// What a task on the worker does, as the checker orders it and as it really comes.
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

/// The worker itself, whose time stands still, and a task that is due.
fn a_task_and_the_end() {
    let engine = engine_of(Config::default(), None, DrivenBy::Worker);
    engine.set_present(engine.context.now());
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

#[test]
fn comes_after_its_tasks() {
    check_heavy(a_task_and_the_end);
}

#[test]
#[should_panic(expected = "not seen")]
fn negative_a_worker_that_is_not_known_to_run() {
    fails("timer/lifecycle.rs", "worker_gone.store(false", How::Skip, a_task_and_the_end);
}

/// Returns a timer with a worker that is not started.
fn with_worker() -> Subject {
    Subject(Some(Engine::new(Config::default(), None, DrivenBy::Worker)))
}

/// Is the body of a worker that takes one turn and ends.
fn one_turn(engine: Arc<Engine>) {
    engine.context.counters.turns.add(1);
    engine.worker_has_ended();
}

fn a_turn_and_the_end() {
    let engine = with_worker();
    assert_eq!(engine.start(one_turn), Ok(()));
    let _ = engine.stop_and_wait(SECOND).unwrap();
    assert_eq!(engine.stats().turns, 1, "not seen");
}

#[test]
fn shows_what_the_worker_did() {
    check_at(4, a_turn_and_the_end);
}

#[test]
#[should_panic(expected = "not seen")]
fn negative_told_without_release() {
    let line = "fn worker_has_ended .. worker_gone.store(true";
    fails("timer/lifecycle.rs", line, How::Relaxed, a_turn_and_the_end);
}

#[test]
#[should_panic(expected = "not seen")]
fn negative_heard_without_acquire() {
    fails("timer/lifecycle.rs", "self.lifecycle.worker_gone.load", How::Relaxed, a_turn_and_the_end);
}

/// Two wait that know nothing of the thread which starts the worker: it has ended when they return,
/// or is not started any more.
#[test]
fn is_waited_for_by_two() {
    check(|| {
        let engine = with_worker();
        let others = [(); 2].map(|()| {
            let engine = engine.clone();
            thread::spawn(move || {
                let _ = engine.stop_and_wait(SECOND).unwrap();
                engine.stats().turns
            })
        });
        let started = u64::from(engine.start(one_turn).is_ok());
        let seen = others.map(|other| other.join().unwrap());
        assert_eq!(seen, [started; 2], "not seen");
    });
}

/// Why a thread that waits takes the lock of `start`: the flag that a worker runs may be read as it
/// was before.
fn start_and_wait(with_lock: bool) {
    let life = Arc::new((Mutex::new(()), AtomicBool::new(false), AtomicBool::new(true)));
    let runs = Arc::new(AtomicUsize::new(0));
    let waiter = {
        let (life, runs) = (life.clone(), runs.clone());
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

#[test]
fn a_start_is_seen_by_its_lock() {
    check_at(4, || start_and_wait(true));
}

#[test]
#[should_panic(expected = "a worker runs")]
fn negative_a_start_is_not_seen_without() {
    check(|| start_and_wait(false));
}
