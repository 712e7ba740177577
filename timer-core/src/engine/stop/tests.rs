//! Threads that stop a timer whose worker is inside a task.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::config::{Config, DrivenBy};
use crate::deadline::Deadline;
use crate::entry::Closure;
use crate::entry::state::Reset;
use crate::sync::{AtomicUsize, Mutex, Ordering};
use crate::worker::Dispatcher;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use timer_executor::Task;

const LONG: Duration = Duration::from_secs(60);

/// A timer whose worker is inside the first task of a batch of two.
struct Busy {
    engine: Arc<Engine>,
    end: Sender<()>,
    ran: Arc<AtomicUsize>,
}

fn busy() -> Busy {
    let config = Config { shards: Some(1), ..Config::default() };
    let engine = Engine::new(config, None, DrivenBy::Worker);
    let (begun, has_begun) = channel();
    let (end, may_end) = channel::<()>();
    let may_end = Arc::new(Mutex::new(may_end));
    let ran = Arc::new(AtomicUsize::new(0));
    let task = || {
        let begun = begun.clone();
        let may_end = may_end.clone();
        let ran = ran.clone();
        let run = move |_: &Timeout| {
            begun.send(()).unwrap();
            may_end.lock().recv().unwrap();
            ran.fetch_add(1, Ordering::Relaxed);
        };
        (Duration::from_millis(2), Closure(run))
    };
    crate::worker::start(&engine).unwrap();
    let mut accepted = Vec::new();
    engine.schedule_chunk(&mut vec![task(), task()], &mut accepted);
    assert!(accepted.iter().all(Result::is_ok));
    has_begun.recv().unwrap();
    Busy { engine, end, ran }
}

impl Busy {
    /// Calls `stop` on another thread. Returns when the timer is stopped.
    fn stop<R: Send + 'static>(&self, stop: impl FnOnce(&Engine) -> R + Send + 'static) -> Receiver<R> {
        let engine = self.engine.clone();
        let (said, heard) = channel();
        thread::spawn(move || said.send(stop(&engine)).unwrap());
        while !self.engine.context.is_stopped() {
            thread::yield_now();
        }
        heard
    }

    /// Lets the first task end.
    fn end(&self) {
        self.end.send(()).unwrap();
    }

    fn ran(&self) -> usize {
        self.ran.load(Ordering::Relaxed)
    }
}

#[test]
fn stop_returns_the_rest_of_a_batch() {
    let busy = busy();
    let stopped = busy.stop(|engine| engine.stop().len());
    busy.end();
    assert_eq!((stopped.recv().unwrap(), busy.ran()), (1, 1));
}

#[test]
fn stop_and_wait_returns_the_rest_of_a_batch() {
    let busy = busy();
    let stopped = busy.stop(|engine| engine.stop_and_wait(LONG).unwrap().unprocessed.len());
    busy.end();
    assert_eq!((stopped.recv().unwrap(), busy.ran()), (1, 1));
}

/// A thread is preempted while it moves a queued timeout, and the executor drops the task.
#[test]
fn a_lost_task_does_not_end_a_timeout_that_is_being_moved() {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let in_executor = kept.clone();
    let executor = move |task: Task| in_executor.lock().push(task);
    let engine = Engine::new(Config::default(), Some(Box::new(executor)), DrivenBy::ManualDriver);
    let now = engine.context.now();
    let Ok(timeout) = engine.schedule(Closure(|_: &Timeout| {}), Deadline::down) else { panic!("refused") };
    assert_eq!(Dispatcher::new(engine.clone()).turn_to_end(now), 1);
    let deadline = Deadline::after(now, Duration::from_secs(1));
    let reset = timeout.state().reset(deadline, false);
    assert_eq!(reset, Reset::WasQueued);
    kept.lock().clear();
    assert!(engine.end_abandoned().is_empty());
    assert!(timeout.finish_reset(reset, deadline, now));
    engine.abandon();
    assert_eq!((engine.pending(), engine.stats().cancelled, engine.context.counters.in_flight.get()), (0, 1, (0, 0)));
}

#[test]
fn a_wait_that_gives_up_takes_nothing_from_another() {
    let busy = busy();
    let stopped = busy.stop(|engine| engine.stop_and_wait(LONG).unwrap().unprocessed.len());
    assert_eq!(busy.engine.stop_and_wait(Duration::ZERO).unwrap().unprocessed.len(), 0);
    busy.end();
    assert_eq!((stopped.recv().unwrap(), busy.ran()), (1, 1));
}

/// A waker that blocks until the test lets it go on.
struct Blocking {
    begun: Mutex<Sender<()>>,
    may_end: Mutex<Receiver<()>>,
}

impl std::task::Wake for Blocking {
    fn wake(self: std::sync::Arc<Self>) {
        self.begun.lock().send(()).unwrap();
        self.may_end.lock().recv().unwrap();
    }
}

// The executor has not received the task, and the worker has not decided it.
#[test]
fn stop_and_wait_reports_entries_that_the_worker_has_not_decided() {
    let config = Config { shards: Some(1), ..Config::default() };
    let engine = Engine::new(config, Some(Box::new(|task: timer_executor::Task| task.run())), DrivenBy::Worker);
    let (begun, has_begun) = channel();
    let (end, may_end) = channel();
    let waker = std::sync::Arc::new(Blocking { begun: Mutex::new(begun), may_end: Mutex::new(may_end) });
    let deadline = crate::deadline::Deadline::after(engine.context.now(), Duration::from_millis(2));
    assert!(engine.schedule(crate::entry::Wakeup(waker.into()), |_| deadline).is_ok());
    assert!(engine.schedule(Closure(|_: &Timeout| {}), |_| deadline).is_ok());
    crate::worker::start(&engine).unwrap();
    has_begun.recv().unwrap();
    let report = engine.stop_and_wait(Duration::ZERO).unwrap();
    assert_eq!((report.unprocessed.len(), report.in_flight), (0, 1));
    end.send(()).unwrap();
    let report = engine.stop_and_wait(LONG).unwrap();
    drop(report.unprocessed);
    assert_eq!((report.in_flight, engine.pending()), (0, 0));
}

#[test]
fn a_second_stop_waits_for_the_worker() {
    let busy = busy();
    let first = busy.stop(|engine| engine.stop().len());
    let second = busy.stop(|engine| engine.stop().len());
    // Both threads wait for the event.
    while !busy.engine.lifecycle.worker_ended.wake_in_vain() {
        assert!([&first, &second].iter().all(|stop| stop.try_recv().is_err()), "the worker is inside a task");
        thread::yield_now();
    }
    busy.end();
    assert_eq!((first.recv().unwrap(), second.recv().unwrap(), busy.ran()), (1, 0, 1));
}

#[test]
fn stop_returns_after_a_panic_of_the_worker() {
    let engine = Engine::new(Config::default(), None, DrivenBy::Worker);
    assert_eq!(engine.spawn_worker(|_| std::panic::resume_unwind(Box::new("a fault of this crate"))), Ok(()));
    let (said, heard) = channel();
    thread::spawn(move || said.send(engine.stop().len()).unwrap());
    assert_eq!(heard.recv_timeout(LONG / 6), Ok(0));
}
