//! Tasks for rayon's global pool, which cannot be started. That cannot be undone, so this test has
//! a separate process.

#![cfg(feature = "rayon")]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use timer_executor::{ExecuteError, RayonExecutor, Task, TaskExecutor};

#[test]
fn a_pool_that_cannot_start_loses_no_task() {
    let no_thread = |_| Err(io::Error::other("no thread"));
    rayon::ThreadPoolBuilder::new().spawn_handler(no_thread).build_global().unwrap_err();
    let executor = RayonExecutor::global();
    let ran = Arc::new(AtomicUsize::new(0));
    let task = || {
        let ran = ran.clone();
        Task::new(move || _ = ran.fetch_add(1, Ordering::Relaxed))
    };
    let Err(ExecuteError(rejected)) = executor.execute(task()) else { panic!("no thread can run it") };
    rejected.run();
    for size in 1..=3 {
        let mut batch: Vec<Task> = (0..size).map(|_| task()).collect();
        executor.execute_batch(&mut batch);
        assert_eq!(batch.len(), size, "the caller keeps what was not accepted");
        batch.into_iter().for_each(Task::run);
    }
    assert_eq!(ran.load(Ordering::Relaxed), 7);
}
