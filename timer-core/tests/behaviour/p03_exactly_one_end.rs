//! Promise 3, exactly one end. Every accepted timeout is run, cancelled, or handed back by `stop`,
//! in every race. The test `stress` checks this on many threads, and the model in every state.

use crate::support::executors::{Action, KeepingExecutor};
use crate::support::ledger::Ledger;
use crate::support::panics::panic_on_purpose;
use crate::support::*;
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use timer_core::{ManualDriver, Timer, WeakTimer};
use timer_executor::{ExecuteError, Task, TaskExecutor};

/// An executor that treats its first task by `action` once `stop` has begun.
struct UntilStopped {
    action: Action,
    timer: Arc<OnceLock<WeakTimer>>,
    entered: std::sync::mpsc::Sender<()>,
}

impl TaskExecutor for UntilStopped {
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        self.entered.send(()).unwrap();
        let timer = self.timer.get().unwrap().upgrade().unwrap();
        while let Ok(timeout) = timer.new_timeout(HOUR, |_| {}) {
            timeout.cancel();
        }
        match self.action {
            Action::Run => task.run(),
            Action::Reject => return Err(ExecuteError(task)),
            Action::Drop => drop(task),
            Action::Panic => panic_on_purpose(),
        }
        Ok(())
    }
}

#[test]
fn tasks_handed_over_during_stop_end_once() {
    for action in [Action::Run, Action::Reject, Action::Drop, Action::Panic] {
        let weak = Arc::new(OnceLock::new());
        let (entered, inside) = channel();
        let executor = UntilStopped { action, timer: weak.clone(), entered };
        let timer = Timer::builder().executor(executor).build().unwrap();
        weak.set(timer.downgrade()).unwrap();
        let ledger = Ledger::new();
        let (probe, end) = ledger.probe();
        let timeout = accepted(timer.new_timeout_task(Duration::ZERO, probe));
        next(&inside);
        let left = timer.stop().unwrap();
        drop(left);
        ledger.wait();
        let (ran, cancelled) = end.counts();
        assert_eq!(ran + cancelled, 1, "{action:?}: ran {ran} times, cancelled {cancelled} times");
        assert!(timeout.is_expired() != timeout.is_cancelled());
        let stats = timer.stats();
        assert_eq!((stats.pending, stats.scheduled), (0, stats.expired + stats.cancelled), "{action:?}");
    }
}

/// Returns a timer on virtual time and its executor, which keeps the tasks.
fn keeping() -> (Timer, ManualDriver, KeepingExecutor) {
    let pool = KeepingExecutor::default();
    let (timer, driver) = Timer::builder().executor(pool.clone()).build_manual().unwrap();
    (timer, driver, pool)
}

#[test]
fn a_lost_task_that_holds_its_timer_is_not_kept() {
    let (timer, mut driver, pool) = keeping();
    let captured = Arc::new(());
    let held = timer.clone();
    let inner = captured.clone();
    accepted(timer.new_timeout(MILLI, move |_| drop((held, inner))));
    driver.advance(MILLI);
    assert_eq!(pool.take().len(), 1, "the executor loses the task");
    drop((driver, timer));
    assert_eq!(Arc::strong_count(&captured), 1);
}

#[test]
fn lost_tasks_are_dropped_with_the_driver() {
    let (timer, mut driver, pool) = keeping();
    let captured = Arc::new(());
    let inner = captured.clone();
    accepted(timer.new_timeout(Duration::ZERO, move |_| drop(inner)));
    driver.advance(Duration::ZERO);
    assert_eq!(pool.take().len(), 1, "the executor loses the task");
    drop(driver);
    assert_eq!((Arc::strong_count(&captured), timer.pending_timeouts()), (1, 0));
}
