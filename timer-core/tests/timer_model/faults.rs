//! Faults that the model has found, each in its smallest case.

use std::sync::{Arc, Mutex};
use std::time::Duration;
use timer_core::{ManualDriver, Timer};
use timer_executor::Task;

const SECOND: Duration = Duration::from_secs(1);

/// A timer whose executor keeps the tasks that it is given.
fn keeping() -> (Timer, ManualDriver, Arc<Mutex<Vec<Task>>>) {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keep = kept.clone();
    let executor = move |task| keep.lock().unwrap().push(task);
    let (timer, driver) = Timer::builder().executor(executor).build_manual().unwrap();
    (timer, driver, kept)
}

fn lose_all(kept: &Mutex<Vec<Task>>) {
    let tasks = std::mem::take(&mut *kept.lock().unwrap());
    assert!(!tasks.is_empty());
    drop(tasks);
}

#[test]
fn a_task_that_the_executor_loses_runs_before_time_goes_on() {
    let (timer, mut driver, kept) = keeping();
    let (start, seen) = (driver.now(), Arc::new(Mutex::new(None)));
    let (then, see) = (timer.clone(), seen.clone());
    timer
        .new_timeout(Duration::ZERO, move |_| {
            let now = then.new_timeout(Duration::ZERO, |_| ()).unwrap().deadline();
            *see.lock().unwrap() = Some(now - start);
        })
        .unwrap();
    driver.advance(Duration::ZERO);
    lose_all(&kept);
    driver.advance(SECOND);
    assert_eq!(*seen.lock().unwrap(), Some(Duration::ZERO));
}

#[test]
fn what_the_executor_has_lost_is_not_kept_when_the_driver_is_dropped() {
    let (timer, mut driver, kept) = keeping();
    let captured = Arc::new(());
    let capture = captured.clone();
    timer.new_timeout(Duration::ZERO, move |_| drop(capture)).unwrap();
    driver.advance(Duration::ZERO);
    lose_all(&kept);
    drop(driver);
    assert_eq!(Arc::strong_count(&captured), 1);
    assert_eq!(timer.pending_timeouts(), 0);
}
