//! Slow tasks, later batches, and the end of a pool.
#![cfg(any(feature = "rayon", feature = "threadpool"))]

use std::sync::mpsc::channel;

use timer_executor::{Task, TaskExecutor};

use crate::support::{NEVER, blocker, numbered, pools, sorted_numbers, tasks};

#[test]
fn a_blocked_task_does_not_delay_its_batch() {
    for (name, executor) in pools(2) {
        for at in [0, 1, 2, 50, 99] {
            let (others, one_ran) = channel();
            let (report, outcome) = channel();
            let mut batch = tasks(0..99, &others);
            batch.insert(
                at,
                Task::new(move || {
                    let all = (0..99).all(|_| one_ran.recv_timeout(NEVER).is_ok());
                    report.send(all).unwrap();
                }),
            );
            executor.execute_batch(&mut batch);
            assert!(batch.is_empty());
            assert!(outcome.recv().unwrap(), "{name}: blocked at {at}");
        }
    }
}

#[test]
fn a_task_may_hand_a_batch_to_its_own_pool() {
    for threads in [1, 2] {
        for (name, executor) in pools(threads) {
            let (mut inner, ran) = numbered(100);
            let pool = executor.clone();
            let outer = Task::new(move || {
                pool.execute_batch(&mut inner);
            });
            executor.execute(outer).unwrap();
            assert_eq!(sorted_numbers(ran).len(), 100, "{name}");
        }
    }
}

#[test]
fn the_tasks_of_a_batch_start_in_order() {
    for (name, executor) in pools(1) {
        let (mut batch, ran) = numbered(1000);
        executor.execute_batch(&mut batch);
        assert!(ran.into_iter().eq(0..1000), "{name}");
    }
}

#[test]
fn accepted_tasks_run_after_the_drop_of_the_pool() {
    for (name, executor) in pools(1) {
        let (task, is_running, open) = blocker();
        executor.execute(task).unwrap();
        is_running.recv_timeout(NEVER).unwrap();
        let (sender, ran) = channel();
        let mut queued = tasks(0..100, &sender);
        executor.execute_batch(&mut queued);
        for task in tasks(100..110, &sender) {
            executor.execute(task).unwrap();
        }
        drop((executor, sender));
        open.send(()).unwrap();
        assert!(sorted_numbers(ran).into_iter().eq(0..110), "{name}");
    }
}
