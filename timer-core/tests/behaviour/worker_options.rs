//! The options of the worker's thread, and calls beside a blocked worker.

use crate::support::panics::panic_on_purpose;
use crate::support::*;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use timer_core::Timer;
use timer_executor::{ExecuteError, Task, TaskExecutor};

#[test]
fn the_start_hook_runs_on_the_worker_before_tasks() {
    let (report, reports) = channel();
    let hook = report.clone();
    let builder = Timer::builder().name("hooked");
    let timer = builder.on_worker_start(move || hook.send(("hook", thread::current().id())).unwrap()).build().unwrap();
    accepted(timer.new_timeout(Duration::ZERO, move |_| report.send(("task", thread::current().id())).unwrap()));
    let first = next(&reports);
    let second = next(&reports);
    assert_eq!((first.0, second.0), ("hook", "task"));
    assert_eq!(first.1, second.1);
    assert_ne!(first.1, thread::current().id());
}

#[test]
fn a_panic_of_the_start_hook_is_contained() {
    let timer = Timer::builder().on_worker_start(|| panic_on_purpose()).build().unwrap();
    let (done, ended) = channel();
    accepted(timer.new_timeout(MILLI, move |_| done.send(()).unwrap()));
    next(&ended);
    assert_eq!(timer.stats().task_panics, 1);
}

/// An executor that keeps the first task and blocks the worker with the second.
struct Blocking {
    kept: Mutex<Option<Task>>,
    may_go_on: Mutex<Receiver<()>>,
}

impl TaskExecutor for Blocking {
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        let mut kept = self.kept.lock().unwrap();
        if kept.is_none() {
            *kept = Some(task);
            return Ok(());
        }
        drop(kept);
        next(&self.may_go_on.lock().unwrap());
        task.run();
        Ok(())
    }
}

#[test]
fn stop_and_wait_hands_back_tasks_a_pool_drops() {
    let (go_on, may_go_on) = channel();
    let executor = Arc::new(Blocking { kept: Mutex::default(), may_go_on: Mutex::new(may_go_on) });
    let timer = Timer::builder().executor(executor.clone()).build().unwrap();
    let (report, reports) = channel();
    let slow = accepted(timer.new_timeout(Duration::ZERO, move |_| {
        watch_for(SECOND);
        report.send(thread::current().id()).unwrap();
    }));
    wait_until(|| executor.kept.lock().unwrap().is_some());
    accepted(timer.new_timeout(Duration::ZERO, |_| {}));
    wait_until(|| timer.stats().queued == 2);
    drop(executor.kept.lock().unwrap().take());
    let begin = Instant::now();
    let report = timer.stop_and_wait(10 * MILLI).unwrap();
    let took = begin.elapsed();
    assert!(took < SECOND, "{took:?}: a task ran on the stopping thread");
    assert_eq!((report.unprocessed.len(), report.in_flight), (1, 1));
    assert_eq!(report.unprocessed[0].timeout(), &slow);
    go_on.send(()).unwrap();
    report.unprocessed.into_iter().for_each(|left| left.run());
    assert_eq!(next(&reports), thread::current().id());
    assert_eq!(timer.stop_and_wait(MAX_WAIT).unwrap().in_flight, 0);
    let stats = timer.stats();
    assert_eq!((stats.scheduled, stats.expired, stats.cancelled, stats.executor_rejections), (2, 1, 1, 1));
}
