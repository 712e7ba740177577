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
fn a_blocked_task_does_not_delay_later_tasks() {
    for (name, executor) in pools(2) {
        let (task, is_running, open) = blocker();
        let (mut first, first_ran) = numbered(50);
        first.insert(0, task);
        executor.execute_batch(&mut first);
        is_running.recv_timeout(NEVER).unwrap();
        for _ in 0..20 {
            let (mut later, later_ran) = numbered(50);
            executor.execute_batch(&mut later);
            let (single, single_ran) = numbered(1);
            for task in single {
                executor.execute(task).unwrap();
            }
            assert_eq!(sorted_numbers(later_ran).len(), 50, "{name}");
            assert_eq!(sorted_numbers(single_ran).len(), 1, "{name}");
        }
        assert_eq!(sorted_numbers(first_ran).len(), 50, "{name}");
        open.send(()).unwrap();
    }
}

#[test]
fn all_threads_but_one_may_be_blocked() {
    for (name, executor) in pools(4) {
        let (mut batch, ran) = numbered(60);
        let mut gates = Vec::new();
        for at in [0, 20, 40] {
            let (task, is_running, open) = blocker();
            batch.insert(at, task);
            gates.push((is_running, open));
        }
        executor.execute_batch(&mut batch);
        assert_eq!(sorted_numbers(ran).len(), 60, "{name}");
        for (is_running, open) in gates {
            is_running.recv_timeout(NEVER).unwrap();
            open.send(()).unwrap();
        }
    }
}

#[test]
fn every_thread_runs_tasks() {
    for (name, executor) in pools(3) {
        // The barrier opens only when all three threads run one of the tasks.
        let barrier = std::sync::Arc::new(std::sync::Barrier::new(3));
        let (done, finished) = channel();
        let task = |_| {
            let (barrier, done) = (barrier.clone(), done.clone());
            Task::new(move || {
                barrier.wait();
                done.send(()).unwrap();
            })
        };
        let mut batch = (0..3).map(task).collect();
        executor.execute_batch(&mut batch);
        drop(done);
        for _ in 0..3 {
            assert!(finished.recv_timeout(NEVER).is_ok(), "{name}");
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

#[test]
fn no_task_runs_on_the_handing_thread() {
    for (name, executor) in pools(1) {
        let (sender, ran) = channel();
        let mut batch = (0..10)
            .map(|_| {
                let sender = sender.clone();
                Task::new(move || sender.send(std::thread::current().id()).unwrap())
            })
            .collect();
        executor.execute_batch(&mut batch);
        drop(sender);
        let here = std::thread::current().id();
        let there: Vec<_> = ran.iter().collect();
        assert!(there.len() == 10 && !there.contains(&here), "{name}: {there:?}");
    }
}
