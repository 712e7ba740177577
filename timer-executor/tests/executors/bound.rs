//! The bound of `ThreadPoolExecutor::bounded` is exact, and each ended task frees its place.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use timer_executor::{ExecuteError, Task, TaskExecutor, ThreadPoolExecutor};

use crate::support::{NEVER, numbered, run_here};

/// Tasks that end when the gates are dropped. Some of them panic then.
struct Gated {
    gates: Vec<Sender<()>>,
}

impl Gated {
    fn task(&mut self, panics: bool) -> Task {
        let (gate, closed): (Sender<()>, Receiver<()>) = channel();
        self.gates.push(gate);
        Task::new(move || {
            let _ = closed.recv();
            assert!(!panics, "as asked");
        })
    }
}

/// Counts the tasks that go in until one is rejected, while none of them ends.
fn count_free(executor: &ThreadPoolExecutor) -> usize {
    let mut gated = Gated { gates: Vec::new() };
    (0..).take_while(|_| executor.execute(gated.task(false)).is_ok()).count()
}

/// Hands the tasks over as permits become free. A task releases its permit a moment after its last
/// effect.
fn execute_all(executor: &ThreadPoolExecutor, mut tasks: Vec<Task>) {
    let begun = Instant::now();
    while !tasks.is_empty() {
        assert!(begun.elapsed() < NEVER, "no permit for {} tasks", tasks.len());
        executor.execute_batch(&mut tasks);
        std::thread::yield_now();
    }
}

#[test]
fn execute_keeps_the_bound() {
    for (threads, queue) in [(1, 0), (1, 1), (2, 3), (3, 100)] {
        assert_eq!(count_free(&ThreadPoolExecutor::bounded(threads, queue)), threads + queue);
    }
}

#[test]
fn a_batch_fills_the_bound_in_order() {
    let executor = ThreadPoolExecutor::bounded(2, 3);
    let (mut batch, ran) = numbered(10);
    let mut gated = Gated { gates: Vec::new() };
    for task in &mut batch[..5] {
        *task = gated.task(false);
    }
    executor.execute_batch(&mut batch);
    assert_eq!(batch.len(), 5);
    executor.execute_batch(&mut batch);
    assert_eq!(batch.len(), 5);
    assert_eq!(run_here(batch, &ran), [5, 6, 7, 8, 9]);
}

#[test]
fn the_bound_is_exact_with_many_threads() {
    let executor = ThreadPoolExecutor::bounded(2, 501);
    let mut gated = Gated { gates: Vec::new() };
    let accepted: usize = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for _ in 0..4 {
            let mut batch: Vec<Task> = (0..300).map(|_| gated.task(false)).collect();
            let mut singles: Vec<Task> = (0..300).map(|_| gated.task(false)).collect();
            let executor = &executor;
            threads.push(scope.spawn(move || {
                let mut accepted = 0;
                while let Some(task) = singles.pop() {
                    accepted += usize::from(executor.execute(task).is_ok());
                    let mut part = batch.split_off(batch.len().saturating_sub(3));
                    let before = part.len();
                    executor.execute_batch(&mut part);
                    accepted += before - part.len();
                }
                accepted
            }));
        }
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(accepted, 503);
}

#[test]
fn each_ended_task_returns_one_permit() {
    let executor = ThreadPoolExecutor::bounded(1, 4);
    for round in 0..200 {
        let mut gated = Gated { gates: Vec::new() };
        let by_batch = (0..round % 6).map(|_| gated.task(round % 2 == 0)).collect();
        execute_all(&executor, by_batch);
        for _ in round % 6..5 {
            let mut task = gated.task(round % 2 == 0);
            let begun = Instant::now();
            while let Err(ExecuteError(again)) = executor.execute(task) {
                assert!(begun.elapsed() < NEVER, "round {round}: no permit for a task");
                task = again;
                std::thread::yield_now();
            }
        }
        assert!(executor.execute(gated.task(false)).is_err(), "round {round}: the pool took one task too many");
    }
}

#[test]
fn an_overflowing_bound_is_no_bound() {
    let executor = ThreadPoolExecutor::bounded(2, usize::MAX);
    let (mut batch, ran) = numbered(1000);
    executor.execute_batch(&mut batch);
    assert!(batch.is_empty());
    assert_eq!(ran.iter().count(), 1000);
}

#[test]
fn zero_threads_count_as_one() {
    for executor in [ThreadPoolExecutor::new(0), ThreadPoolExecutor::bounded(0, 1)] {
        let (task, ran) = numbered(1);
        for task in task {
            executor.execute(task).unwrap();
        }
        assert_eq!(ran.iter().count(), 1);
    }
    assert_eq!(count_free(&ThreadPoolExecutor::bounded(0, 0)), 1);
}

#[test]
fn the_threads_have_a_name() {
    let executor = ThreadPoolExecutor::new(1);
    let (sender, name) = channel();
    let task = Task::new(move || sender.send(std::thread::current().name().map(String::from)).unwrap());
    executor.execute(task).unwrap();
    assert_eq!(name.recv().unwrap().as_deref(), Some("timer-pool"));
}
