//! A timeout that is cancelled or moved in an executor's queue gives its place to the next one.

use super::keeping;
use crate::support::executors::KeepingExecutor;
use crate::support::*;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::current;
use timer_core::{Timeout, Timer};
use timer_executor::{ExecuteError, Task, TaskExecutor, ThreadPoolExecutor};

/// An executor of a user with room for a number of tasks.
struct Bounded(KeepingExecutor, usize);

impl TaskExecutor for Bounded {
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        if self.0.len() < self.1 { self.0.execute(task) } else { Err(ExecuteError(task)) }
    }
}

const WAYS: [fn(&Timeout) -> bool; 3] = [Timeout::cancel, |one| one.reset(HOUR), |one| one.reset(2 * HOUR)];

// Guards against Ericsson/ecchronos#1621, in which dead tasks filled a queue and living ones were
// rejected.
#[test]
fn a_full_queue_of_dead_tasks_rejects_no_living_one() {
    for leave in WAYS {
        let pool = Arc::new(ThreadPoolExecutor::bounded(1, 100));
        let (timer, mut driver) = Timer::builder().executor(pool).build_manual().unwrap();
        let (open, gate) = channel::<()>();
        let (begun, inside) = channel();
        let (ran, runs) = channel();
        let block = move |_: &Timeout| {
            begun.send(()).unwrap();
            let _ = gate.recv();
        };
        accepted(timer.new_timeout(MILLI, block));
        driver.advance(MILLI);
        next(&inside);
        for _ in 0..3 {
            let dead: Vec<_> = (0..100).map(|_| accepted(timer.new_timeout(MILLI, |_| panic!("ran")))).collect();
            assert_eq!((driver.advance(MILLI), timer.stats().queued), (100, 100));
            assert!(dead.iter().all(leave));
            assert_eq!(timer.stats().queued, 0);
        }
        let ran = ran.clone();
        accepted(timer.new_timeout(MILLI, move |_| ran.send(current().name().map(str::to_owned)).unwrap()));
        driver.advance(MILLI);
        let stats = timer.stats();
        assert_eq!((stats.executor_rejections, stats.queued, stats.runs), (0, 1, 1), "{stats:?}");
        drop(open);
        assert_eq!(next(&runs).as_deref(), Some("timer-pool"));
    }
}

#[test]
fn an_executor_of_the_user_may_be_full_of_dead_tasks() {
    for leave in WAYS {
        let pool = KeepingExecutor::default();
        let (timer, mut driver) = Timer::builder().executor(Bounded(pool.clone(), 2)).build_manual().unwrap();
        let dead = [(); 2].map(|()| accepted(timer.new_timeout(MILLI, |_| panic!("ran"))));
        driver.advance(MILLI);
        assert!(dead.iter().all(leave));
        let (ran, runs) = channel();
        for number in 0..3 {
            let ran = ran.clone();
            accepted(timer.new_timeout(MILLI, move |_| ran.send(number).unwrap()));
        }
        driver.advance(MILLI);
        let stats = timer.stats();
        assert_eq!((stats.executor_rejections, stats.queued), (1, 2), "the executor has room for two");
        assert_eq!(pool.run(), 2);
        assert_eq!((runs.try_iter().collect(), timer.stats().queued), (vec![0, 1, 2], 0));
    }
}

#[test]
fn dead_tasks_are_hardly_more_than_living_ones() {
    let (timer, mut driver, pool) = keeping();
    for _ in 0..20 {
        let dead: Vec<_> = (0..100).map(|_| accepted(timer.new_timeout(MILLI, |_| panic!("ran")))).collect();
        driver.advance(MILLI);
        assert!(dead.iter().all(WAYS[0]));
    }
    assert!(pool.len() <= 300, "{} tasks for 100 timeouts", pool.len());
    let (ran, runs) = channel();
    accepted(timer.new_timeout(MILLI, move |_| ran.send(()).unwrap()));
    driver.advance(MILLI);
    pool.run();
    next(&runs);
    assert_eq!((timer.stats().runs, timer.stats().queued), (1, 0));
}

#[test]
fn a_spare_task_that_the_executor_drops_is_no_loss() {
    let (timer, mut driver, pool) = keeping();
    let timeouts = [(); 2].map(|()| accepted(timer.new_timeout(MILLI, |_| {})));
    driver.advance(MILLI);
    assert!(timeouts[0].cancel());
    let mut tasks = pool.take();
    drop(tasks.pop());
    driver.advance(MILLI);
    assert_eq!((timer.stats().queued, timer.stats().executor_rejections), (1, 0));
    tasks.into_iter().for_each(Task::run);
    assert!(timeouts[1].is_expired());
}
