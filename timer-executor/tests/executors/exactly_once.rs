//! Each task runs once, whether the executor accepts or rejects it.

use timer_executor::{ExecuteError, Task, TaskExecutor};

use crate::support::{executors, numbered, sorted_numbers};

const TASKS: usize = 10_000;

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
