//! The bound of `ThreadPoolExecutor::bounded`: exact, and free again when a task has ended.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use timer_executor::{Rejected, Task, TaskExecutor, ThreadPoolExecutor};

use crate::support::{NEVER, numbered, run_here};

/// Tasks that end when the gates are dropped, or panic then.
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

/// How many empty tasks go in until one is rejected, when nothing that went in ends before.
fn free(executor: &ThreadPoolExecutor) -> usize {
    let mut gated = Gated { gates: Vec::new() };
    (0..).take_while(|_| executor.execute(gated.task(false)).is_ok()).count()
}

/// Hands the tasks over as permits become free: an ended task releases its permit a moment after
/// its last word.
fn insist(executor: &ThreadPoolExecutor, mut tasks: Vec<Task>) {
    let begun = Instant::now();
    while !tasks.is_empty() {
        assert!(begun.elapsed() < NEVER, "no permit for {} tasks", tasks.len());
        executor.execute_batch(&mut tasks);
        std::thread::yield_now();
    }
}

#[test]
fn never_more_than_threads_and_queue_by_execute() {
    for (threads, queue) in [(1, 0), (1, 1), (2, 3), (3, 100)] {
        assert_eq!(free(&ThreadPoolExecutor::bounded(threads, queue)), threads + queue);
    }
}

#[test]
fn a_batch_is_taken_up_to_the_bound_in_order() {
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
fn the_bound_is_exact_when_many_threads_hand_over() {
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
fn each_ended_task_gives_back_one_permit() {
    let executor = ThreadPoolExecutor::bounded(1, 4);
    for round in 0..200 {
        let mut gated = Gated { gates: Vec::new() };
        let by_batch = (0..round % 6).map(|_| gated.task(round % 2 == 0)).collect();
        insist(&executor, by_batch);
        for _ in round % 6..5 {
            let mut task = gated.task(round % 2 == 0);
            while let Err(Rejected(again)) = executor.execute(task) {
                task = again;
                std::thread::yield_now();
            }
        }
        assert!(executor.execute(gated.task(false)).is_err(), "round {round}: a permit too many");
    }
}

#[test]
fn a_bound_that_would_overflow_is_no_bound() {
    let executor = ThreadPoolExecutor::bounded(2, usize::MAX);
    let (mut batch, ran) = numbered(1000);
    executor.execute_batch(&mut batch);
    assert!(batch.is_empty());
    assert_eq!(ran.iter().count(), 1000);
}

#[test]
fn zero_threads_are_taken_as_one() {
    for executor in [ThreadPoolExecutor::new(0), ThreadPoolExecutor::bounded(0, 1)] {
        let (task, ran) = numbered(1);
        for task in task {
            executor.execute(task).unwrap();
        }
        assert_eq!(ran.iter().count(), 1);
    }
    assert_eq!(free(&ThreadPoolExecutor::bounded(0, 0)), 1);
}

#[test]
fn the_threads_bear_a_name() {
    let executor = ThreadPoolExecutor::new(1);
    let (sender, name) = channel();
    let task = Task::new(move || sender.send(std::thread::current().name().map(String::from)).unwrap());
    executor.execute(task).unwrap();
    assert_eq!(name.recv().unwrap().as_deref(), Some("timer-pool"));
}
