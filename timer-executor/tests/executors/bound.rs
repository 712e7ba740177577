//! The bound of `ThreadPoolExecutor::bounded` is exact, and each ended task frees its place.

use std::sync::mpsc::{Receiver, Sender, channel};

use timer_executor::{Task, TaskExecutor, ThreadPoolExecutor};

use crate::support::numbered;

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

#[test]
fn execute_keeps_the_bound() {
    for (threads, queue) in [(1, 0), (1, 1), (2, 3), (3, 100)] {
        assert_eq!(count_free(&ThreadPoolExecutor::bounded(threads, queue)), threads + queue);
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
    let named = ThreadPoolExecutor::builder().thread_name("mailer").build().unwrap();
    for (executor, expected) in [(ThreadPoolExecutor::new(1), "timer-pool"), (named, "mailer")] {
        let (sender, name) = channel();
        let task = Task::new(move || sender.send(std::thread::current().name().map(String::from)).unwrap());
        executor.execute(task).unwrap();
        assert_eq!(name.recv().unwrap().as_deref(), Some(expected));
    }
    assert!(ThreadPoolExecutor::builder().thread_name("a\0b").build().is_err());
}
