//! Each task runs once, whether the executor accepts or rejects it.

use std::sync::Arc;
use std::time::Instant;

use timer_executor::{ExecuteError, Task, TaskExecutor};

use crate::support::{NEVER, Recorder, executors, numbered, sorted_numbers};

const TASKS: usize = 10_000;

#[test]
fn each_task_runs_once_by_execute() {
    for (name, executor) in executors() {
        let (tasks, ran) = numbered(TASKS);
        for task in tasks {
            if let Err(ExecuteError(task)) = executor.execute(task) {
                task.run();
            }
        }
        assert!(sorted_numbers(ran).into_iter().eq(0..TASKS), "{name}");
    }
}

#[test]
fn each_task_runs_once_by_execute_batch() {
    for (name, executor) in executors() {
        for batch in [1, 2, 3, 100, TASKS] {
            let (mut tasks, ran) = numbered(TASKS);
            while !tasks.is_empty() {
                let mut part = tasks.split_off(tasks.len().saturating_sub(batch));
                executor.execute_batch(&mut part);
                part.into_iter().for_each(Task::run);
            }
            assert!(sorted_numbers(ran).into_iter().eq(0..TASKS), "{name}, batches of {batch}");
        }
    }
}

#[test]
fn each_task_of_many_threads_runs_once() {
    for (name, executor) in executors() {
        let (mut tasks, ran) = numbered(TASKS);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let mut part = tasks.split_off(tasks.len() - TASKS / 4);
                let executor = &executor;
                scope.spawn(move || {
                    while let Some(task) = part.pop() {
                        if let Err(ExecuteError(task)) = executor.execute(task) {
                            task.run();
                        }
                        let mut batch = part.split_off(part.len().saturating_sub(7));
                        executor.execute_batch(&mut batch);
                        batch.into_iter().for_each(Task::run);
                    }
                });
            }
        });
        assert!(sorted_numbers(ran).into_iter().eq(0..TASKS), "{name}");
    }
}

#[test]
fn every_executor_wakes_a_waker_once() {
    for (name, executor) in executors() {
        let all: Vec<Arc<Recorder>> = (0..100).map(|_| Arc::default()).collect();
        let (mut tasks, ran) = numbered(1);
        for recorder in &all {
            if let Err(ExecuteError(task)) = executor.execute(recorder.task()) {
                task.run();
            }
        }
        executor.execute_batch(&mut tasks);
        tasks.into_iter().for_each(Task::run);
        assert_eq!(sorted_numbers(ran), [0], "{name}");
        for recorder in all {
            // A second reference belongs to a task that has not finished yet.
            let begun = Instant::now();
            while Arc::strong_count(&recorder) > 1 {
                assert!(begun.elapsed() < NEVER, "{name}");
                std::thread::yield_now();
            }
            assert_eq!(recorder.calls(), ["run"], "{name}");
        }
    }
}

#[test]
fn an_empty_batch_does_nothing() {
    for (_, executor) in executors() {
        executor.execute_batch(&mut Vec::new());
    }
}

#[test]
fn a_batch_keeps_the_buffer_of_the_caller() {
    for (name, executor) in executors() {
        let (mut tasks, ran) = numbered(100);
        tasks.reserve(1000);
        let room = tasks.capacity();
        executor.execute_batch(&mut tasks);
        assert_eq!(tasks.capacity(), room, "{name}");
        tasks.into_iter().for_each(Task::run);
        assert_eq!(sorted_numbers(ran).len(), 100, "{name}");
    }
}
