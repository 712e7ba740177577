//! `ThreadPoolExecutor::wait_idle` returns when no task is left, and not earlier.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use timer_executor::{Task, TaskExecutor, ThreadPoolExecutor};

use crate::support::NEVER;

fn unbounded_and_bounded(threads: usize) -> [(&'static str, Arc<ThreadPoolExecutor>); 2] {
    let bounded = ThreadPoolExecutor::bounded(threads, 1000);
    [("unbounded", Arc::new(ThreadPoolExecutor::new(threads))), ("bounded", Arc::new(bounded))]
}

/// Tasks that count their runs. One in 16 panics.
#[derive(Clone, Default)]
struct RunCount(Arc<AtomicUsize>);

impl RunCount {
    fn tasks(&self, n: usize) -> Vec<Task> {
        let task = |i: usize| {
            let ran = self.clone();
            Task::new(move || {
                // ORDERING: Relaxed, a plain count. `wait_idle` orders it.
                ran.0.fetch_add(1, Ordering::Relaxed);
                if i % 16 == 15 {
                    std::panic::resume_unwind(Box::new("as asked, without a hook"));
                }
            })
        };
        (0..n).map(task).collect()
    }

    fn count(&self) -> usize {
        // ORDERING: as above.
        self.0.load(Ordering::Relaxed)
    }

    /// Returns the number of tasks that were not dropped yet, run or not.
    fn alive(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }
}

#[test]
fn singles_and_batches_have_ended_after_the_wait() {
    for threads in [1, 3] {
        for (name, executor) in unbounded_and_bounded(threads) {
            let ran = RunCount::default();
            let mut given = 0;
            for round in 0..300 {
                for size in [round % 40, 1, 2] {
                    let mut batch = ran.tasks(size);
                    executor.execute_batch(&mut batch);
                    assert!(batch.is_empty());
                    given += size;
                }
                for task in ran.tasks(round % 5) {
                    executor.execute(task).unwrap();
                    given += 1;
                }
                executor.wait_idle();
                assert_eq!((ran.count(), ran.alive()), (given, 0), "{name}, round {round}");
            }
        }
    }
}

#[test]
fn waiting_for_the_own_pool_does_not_hang() {
    for (name, executor) in unbounded_and_bounded(1) {
        for by_batch in [false, true] {
            let (report, returned) = channel();
            let pool = executor.clone();
            let again = report.clone();
            let task = Task::new(move || {
                pool.wait_idle();
                report.send(()).unwrap();
            });
            if by_batch {
                executor.execute_batch(&mut vec![task, Task::new(move || again.send(()).unwrap())]);
            } else {
                drop(again);
                executor.execute(task).unwrap();
            }
            for _ in 0..=usize::from(by_batch) {
                assert!(returned.recv_timeout(NEVER).is_ok(), "{name}, by batch: {by_batch}");
            }
            executor.wait_idle();
        }
    }
}
