//! Promise 13. The worker never keeps the process alive, and dropping the last `Timer` stops it.
//!
//! The warning about more than 64 live timers counts the timers of the whole process, so its test
//! is a separate binary.

mod stop;

use crate::support::executors::KeepingExecutor;
use crate::support::ledger::Ledger;
use crate::support::*;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use timer_core::{RejectReason, StopError, Timeout, Timer};
use timer_executor::{ExecuteError, Task, TaskExecutor};

/// An executor that lives as long as the internals of its timer. The worker owns them, so the
/// worker has ended when this is dropped.
struct DropSignal(#[allow(dead_code)] Sender<()>);

impl TaskExecutor for DropSignal {
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        task.run();
        Ok(())
    }

    fn runs_inline(&self) -> bool {
        true
    }
}

fn with_drop_signal() -> (Timer, Receiver<()>) {
    let (alive, gone) = channel();
    (Timer::builder().executor(DropSignal(alive)).build().unwrap(), gone)
}

#[test]
fn the_last_handle_ends_the_worker_and_all_timeouts() {
    let (timer, ended) = with_drop_signal();
    let ledger = Ledger::new();
    let (probe, end) = ledger.probe();
    let timeout = accepted(timer.new_timeout_task(HOUR, probe));
    let other = timer.clone();
    drop(timer);
    assert_eq!(other.pending_timeouts(), 1, "another handle keeps the timer");
    drop(other);
    assert_eq!((end.counts(), end.dropped_on()), ((0, 1), Some(std::thread::current().id())));
    assert!(timeout.is_cancelled());
    all_gone(&ended);
    ledger.wait();
}

#[test]
fn a_timeout_does_not_keep_the_timer() {
    let (timer, ended) = with_drop_signal();
    let timeouts = [Duration::ZERO, HOUR, Duration::MAX].map(|delay| accepted(timer.new_timeout(delay, |_| {})));
    let weak = timer.downgrade();
    drop(timer);
    all_gone(&ended);
    assert!(weak.upgrade().is_none());
    for timeout in timeouts {
        assert!(timeout.is_cancelled() != timeout.is_expired() && !timeout.cancel() && !timeout.reset(SECOND));
        assert!(timeout.deadline() > Instant::now() - HOUR, "a handle answers after the end of its timer");
    }
}

// Guards against netty/netty#1885, in which a leak was reported for a timer that was never started
// or not even built.
#[test]
fn a_timer_that_never_started_leaves_no_trace() {
    let (timer, ended) = with_drop_signal();
    drop(timer);
    all_gone(&ended);
    let (alive, ended) = channel();
    let failed = Timer::builder().executor(DropSignal(alive)).tick_duration(Duration::ZERO).build();
    assert!(failed.is_err());
    all_gone(&ended);
    let (timer, ended) = with_drop_signal();
    assert_eq!(timer.stop().unwrap().len(), 0);
    assert_eq!(timer.start(), Err(RejectReason::Stopped));
    drop(timer);
    all_gone(&ended);
}

// Guards against a fault in which the timer was destroyed in a callback.
#[test]
fn a_task_on_the_worker_may_drop_the_last_handle() {
    let (timer, ended) = with_drop_signal();
    let seat = Arc::new(Mutex::new(Some(timer.clone())));
    let last = seat.clone();
    let (done, reached) = channel();
    let (dropped, may_drop) = channel();
    let ledger = Ledger::new();
    let ends: Vec<_> = (0..50)
        .map(|id| {
            let (probe, end) = ledger.probe();
            let delay = if id % 2 == 0 { 2 * MILLI } else { HOUR };
            accepted(timer.new_timeout_task(delay, probe));
            end
        })
        .collect();
    accepted(timer.new_timeout(2 * MILLI, move |me| {
        let _ = may_drop.recv();
        let timer: Option<Timer> = last.lock().unwrap().take();
        drop(timer);
        done.send(me.is_expired()).unwrap();
    }));
    drop(timer);
    dropped.send(()).unwrap();
    assert!(next(&reached));
    all_gone(&ended);
    ledger.wait();
    assert!(ends.iter().all(|end| matches!(end.counts(), (1, 0) | (0, 1))));
}

#[test]
fn a_driven_timer_is_stopped_by_its_driver_only() {
    let (timer, driver) = Timer::builder().build_driven().unwrap();
    assert_eq!((timer.stop().err(), timer.start()), (Some(StopError::Driven), Ok(())));
    accepted(timer.new_timeout(HOUR, |_| {}));
    assert_eq!(driver.stop().len(), 1);
    assert!(timer.new_timeout(SECOND, |_| {}).is_err());
    let (timer, mut driver) = manual(WHEELS[0]);
    assert_eq!(timer.stop().err(), Some(StopError::Driven));
    let timeout = accepted(timer.new_timeout(SECOND, |_| {}));
    drop(timer);
    assert_eq!(driver.advance(SECOND), 1, "the driver keeps the timer");
    assert!(timeout.is_expired());
}

#[test]
fn a_pool_may_run_its_tasks_after_the_timer_is_gone() {
    let pool = KeepingExecutor::default();
    let (timer, mut driver) = Timer::builder().executor(pool.clone()).build_manual().unwrap();
    let runs = Runs::default();
    record(&timer, SECOND, &runs, 1);
    let recorded = runs.clone();
    let rate =
        accepted(timer.schedule_at_fixed_rate(SECOND, SECOND, move |_: &Timeout| recorded.lock().unwrap().push(2)));
    assert_eq!(driver.advance(SECOND), 2);
    drop((timer, driver));
    assert_eq!((pool.run(), take_runs(&runs)), (2, vec![1, 2]));
    assert!(rate.is_cancelled(), "no next run can follow");
}

#[test]
fn no_handle_comes_back_while_the_worker_ends() {
    let timer = Timer::new();
    let (begun, inside) = channel();
    let (release, released) = channel();
    let task = accepted(timer.new_timeout(Duration::ZERO, move |_| {
        begun.send(()).unwrap();
        next(&released);
    }));
    let far = accepted(timer.new_timeout(HOUR, |_| {}));
    next(&inside);
    let weak = timer.downgrade();
    assert!(weak.upgrade().is_some() && task.timer().is_some(), "one handle is left");
    drop(timer);
    // The worker owns the internals of the timer while its last task runs, and the timer counts as
    // stopped.
    assert!(weak.upgrade().is_none() && task.timer().is_none() && far.timer().is_none());
    assert!(far.is_cancelled() && !far.reset(SECOND));
    release.send(()).unwrap();
    assert_eq!(task.cancel_and_wait(), Ok(false));
    assert!(weak.upgrade().is_none() && task.is_expired());
}

/// Leaves a worker that waits for an hour, and returns. The test below runs this as a separate
/// program.
#[test]
#[ignore = "a part of the_worker_does_not_keep_the_process_alive"]
fn child_with_a_worker() {
    let timer = Timer::new();
    accepted(timer.new_timeout(HOUR, |_| {}));
    std::mem::forget(timer);
}

// The worker's thread must not keep the process alive.
#[test]
fn the_worker_does_not_keep_the_process_alive() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "p13_end_of_life::child_with_a_worker", "--ignored"]).stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    let (done, exited) = channel();
    let id = child.id();
    std::thread::spawn(move || done.send(child.wait_with_output().unwrap()).unwrap());
    let output = exited.recv_timeout(MAX_WAIT).unwrap_or_else(|_| panic!("process {id} is still alive"));
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}
