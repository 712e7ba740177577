//! The end of a pool.
#![cfg(any(feature = "rayon", feature = "threadpool"))]

use std::sync::mpsc::channel;

use crate::support::{NEVER, blocker, pools, sorted_numbers, tasks};

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
