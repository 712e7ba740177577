//! Calls and turns that find the lock of a shard held.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::super::inbox::MAX_PAUSES;
use super::super::{MAX_PER_LOCK, Shard};
use crate::config::{Config, DrivenBy};
use crate::deadline::{Deadline, NO_TICK};
use crate::engine::Engine;
use crate::entry::state::Reset;
use crate::entry::{Closure, Timeout, Wakeup};
use crate::sync::{Arc, PAUSES, Running, never_slow_down, while_running};
use crate::worker::Dispatcher;
use std::sync::mpsc::{Receiver, channel};
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

const HOUR: Duration = Duration::from_secs(3600);

/// The time after which a call counts as one that waits for the lock.
const A_WHILE: Duration = Duration::from_secs(20);

fn engine() -> Arc<Engine> {
    Engine::new(Config::default(), None, DrivenBy::ManualDriver)
}

fn new(engine: &Engine, delay: Duration) -> (Timeout, Timeout) {
    let now = engine.context.now();
    Timeout::new(engine.shards()[0].id(), Deadline::after(now, delay), Closure(|_: &Timeout| {}))
}

/// Waits until another thread waits for the held lock of `shard`. Returns `false` if that thread
/// sends its result instead.
fn wait_for_waiter<T>(shard: &Shard, heard: &Receiver<T>) -> bool {
    while !shard.lock.has_waiter() {
        if heard.try_recv().is_ok() {
            return false;
        }
        thread::yield_now();
    }
    true
}

#[test]
fn a_chunk_that_meets_a_held_lock_is_scheduled() {
    let engine = engine();
    let shard = engine.shards()[0];
    let core = shard.lock.try_lock().unwrap();
    let mut jobs: Vec<_> = (0..4).map(|_| (Duration::ZERO, Closure(|_: &Timeout| {}))).collect();
    let mut scheduled = Vec::with_capacity(MAX_PER_LOCK);
    engine.schedule_chunk(&mut jobs, &mut scheduled);
    assert!(scheduled.len() == 4 && scheduled.iter().all(Result::is_ok));
    shard.unlock(core);
    assert_eq!(engine.stats().scheduled, 4);
    let mut dispatcher = Dispatcher::new(engine.clone());
    assert_eq!(dispatcher.turn_to_end(engine.context.now()), 4);
}

#[test]
fn a_call_at_the_gate_wakes_the_worker() {
    let engine = engine();
    let shard = engine.shards()[0];
    let core = shard.lock.try_lock().unwrap();
    let (used_up, is_used_up) = channel();
    let (said, heard) = channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let schedule = |delay| shard.schedule(new(&engine, delay).1, engine.context.now());
            // Uses up the quota. Virtual time stands still, so the next call waits at the gate.
            assert!((0..8).all(|_| schedule(2 * HOUR) == Some(NO_TICK)), "a request wakes the worker");
            used_up.send(()).unwrap();
            said.send(schedule(HOUR)).unwrap();
        });
        is_used_up.recv().unwrap();
        assert!(wait_for_waiter(shard, &heard), "the lock is held");
        shard.unlock(core);
        let at_gate = heard.recv().unwrap();
        assert!(at_gate.is_some_and(|tick| tick != NO_TICK), "the worker would sleep for too long");
    });
}

#[test]
fn one_caller_at_a_time_waits_for_the_lock() {
    const CALLS: u64 = 8 + 50;
    let engine = engine();
    let shard = engine.shards()[0];
    let core = shard.lock.try_lock().unwrap();
    let (said, heard) = channel();
    let schedule = || shard.schedule(new(&engine, HOUR).1, engine.context.now()).is_some();
    // The first eight calls use up the quota. Virtual time stands still, so there is one period.
    let calls = || ((0..CALLS).all(|_| schedule()), PAUSES.get());
    thread::scope(|scope| {
        for _ in 0..8 {
            let said = said.clone();
            scope.spawn(move || said.send(calls()).unwrap());
        }
        let returned = (0..7).take_while(|_| heard.recv_timeout(A_WHILE) == Ok((true, MAX_PAUSES as u32))).count();
        let waits = wait_for_waiter(shard, &heard);
        shard.unlock(core);
        assert_eq!(returned, 7, "the other callers leave requests, and pause at times");
        assert!(waits && heard.recv().unwrap().0, "the first caller waits for the lock");
    });
    assert_eq!(engine.stats().scheduled, 8 * CALLS);
}

/// Returns the number of pauses of a thread that makes requests beyond its quota for entries from
/// `create`, inside of `run`, while another caller waits at the gate.
fn pauses(may_sleep: bool, create: fn(&Engine) -> Timeout, run: fn(&mut dyn FnMut())) -> u32 {
    let engine = Engine::new(Config { may_sleep, ..Config::default() }, None, DrivenBy::ManualDriver);
    let shard = engine.shards()[0];
    let core = shard.lock.try_lock().unwrap();
    let schedule_ten = || {
        assert!((0..10).all(|_| shard.schedule(create(&engine), engine.context.now()).is_some()));
    };
    thread::scope(|scope| {
        scope.spawn(schedule_ten);
        while !shard.lock.has_waiter() {
            thread::yield_now();
        }
        let (said, heard) = channel();
        scope.spawn(move || {
            run(&mut { schedule_ten });
            said.send(PAUSES.get()).unwrap();
        });
        let pauses = heard.recv_timeout(A_WHILE);
        shard.unlock(core);
        pauses.unwrap()
    })
}

#[test]
fn a_thread_that_must_not_sleep_yields_in_a_crowd() {
    let task = |engine: &Engine| new(engine, HOUR).1;
    let future = |engine: &Engine| {
        let deadline = Deadline::after(engine.context.now(), HOUR);
        Timeout::new(engine.shards()[0].id(), deadline, Wakeup(Waker::noop().clone())).1
    };
    assert_eq!(pauses(true, task, |calls| calls()), 2, "an ordinary caller, in each call beyond its quota");
    assert_eq!(pauses(false, task, |calls| calls()), 0, "the timer forbids it");
    assert_eq!(pauses(true, future, |calls| calls()), 0, "a poll");
    let as_worker = |calls: &mut dyn FnMut()| {
        never_slow_down();
        calls();
    };
    assert_eq!(pauses(true, task, as_worker), 0, "a worker");
    let in_task = |calls: &mut dyn FnMut()| while_running(Running { timeout: 1, timer: 1 }, calls);
    assert_eq!(pauses(true, task, in_task), 0, "a task, also in the turn of a driver");
}

/// The other thread has moved a timeout and linked it, and is preempted before it wakes the worker.
#[test]
fn a_reset_wakes_the_worker_for_the_link_of_another_thread() {
    let engine = engine();
    let shard = engine.shards()[0];
    let alarm = &engine.context.alarm;
    let now = engine.context.now();
    let (timeout, linked) = new(&engine, HOUR);
    assert!(shard.schedule(linked, now).is_some());
    for is_held in [false, true] {
        let core = is_held.then(|| shard.lock.try_lock().unwrap());
        assert!(timeout.reset(Duration::from_secs(1)));
        alarm.arm();
        assert!(alarm.set(NO_TICK));
        let moved = timeout.state().reset(Deadline::after(now, Duration::from_secs(1)), true);
        assert_eq!(moved, Reset::MustLink);
        assert!(timeout.reset(Duration::from_secs(2)));
        assert!(alarm.is_up(), "the lock is held: {is_held}");
        core.into_iter().for_each(|core| shard.unlock(core));
        assert!(timeout.reset(HOUR));
    }
}

#[test]
fn a_second_stop_waits_until_the_first_one_has_closed_the_shards() {
    let config = Config { shards: Some(2), ..Config::default() };
    let engine = Engine::new(config, None, DrivenBy::Worker);
    let shard = engine.shards()[0];
    let core = shard.lock.try_lock().unwrap();
    let (said, heard) = channel();
    thread::scope(|scope| {
        scope.spawn(|| drop(engine.stop()));
        while !shard.lock.has_waiter() {
            thread::yield_now();
        }
        let engine = &engine;
        scope.spawn(move || {
            drop(engine.stop());
            said.send(engine.shards()[1].schedule(new(engine, HOUR).1, engine.context.now())).unwrap();
        });
        let early = heard.recv_timeout(Duration::from_millis(100));
        shard.unlock(core);
        assert!(early.is_err(), "the other shard is open, and has returned {early:?}");
        assert_eq!(heard.recv().unwrap(), None);
    });
}

#[test]
fn a_turn_waits_for_a_held_lock() {
    let engine = engine();
    let shard = engine.shards()[0];
    let mut dispatcher = Dispatcher::new(engine.clone());
    assert!(shard.schedule(new(&engine, Duration::ZERO).1, engine.context.now()).is_some());
    let core = shard.lock.try_lock().unwrap();
    let (said, heard) = channel();
    thread::scope(|scope| {
        let now = engine.context.now();
        scope.spawn(move || said.send(dispatcher.turn_to_end(now)).unwrap());
        let waits = wait_for_waiter(shard, &heard);
        shard.unlock(core);
        let ran = heard.recv();
        if ran != Ok(1) {
            // The lock may be reserved forever, and then the engine cannot be stopped.
            std::mem::forget(engine.clone());
        }
        assert!(waits && ran == Ok(1));
    });
}

#[test]
fn a_turn_waits_for_several_locks_at_once() {
    let engine = Engine::new(Config { shards: Some(2), ..Config::default() }, None, DrivenBy::Worker);
    let now = engine.context.now();
    for shard in engine.shards() {
        let (_, linked) = Timeout::new(shard.id(), Deadline::after(now, Duration::ZERO), Closure(|_: &Timeout| {}));
        assert!(shard.schedule(linked, now).is_some());
    }
    let held: Vec<_> = engine.shards().iter().map(|shard| shard.lock.try_lock().unwrap()).collect();
    let mut dispatcher = Dispatcher::new(engine.clone());
    let (said, heard) = channel();
    thread::scope(|scope| {
        scope.spawn(|| said.send(dispatcher.turn_to_end(engine.context.now())).unwrap());
        let begin = Instant::now();
        let are_reserved = || engine.shards().iter().all(|shard| shard.lock.has_waiter());
        while !are_reserved() && begin.elapsed() < A_WHILE {
            thread::yield_now();
        }
        let are_reserved = are_reserved();
        drop(held);
        assert!(are_reserved && heard.recv() == Ok(2));
    });
}
