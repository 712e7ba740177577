//! Executors, good and bad.

use super::panics::panic_on_purpose;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use timer_executor::{ImmediateExecutor, RayonExecutor, Rejected, Task, TaskExecutor, ThreadPoolExecutor};

/// What an executor does with a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    Run,
    Reject,
    Drop,
    Panic,
}

/// An executor that does these deeds in turn.
#[derive(Debug)]
pub(crate) struct Moody {
    deeds: &'static [Deed],
    inline: bool,
    count: AtomicUsize,
}

impl Moody {
    pub(crate) fn new(deeds: &'static [Deed], inline: bool) -> Self {
        Self { deeds, inline, count: AtomicUsize::new(0) }
    }
}

impl TaskExecutor for Moody {
    fn execute(&self, task: Task) -> Result<(), Rejected> {
        match self.deeds[self.count.fetch_add(1, SeqCst) % self.deeds.len()] {
            Deed::Run => task.run(),
            Deed::Reject => return Err(Rejected(task)),
            Deed::Drop => drop(task),
            Deed::Panic => panic_on_purpose(),
        }
        Ok(())
    }

    fn runs_inline(&self) -> bool {
        self.inline
    }
}

/// An executor that keeps its tasks until the test wants them.
#[derive(Clone, Default)]
pub(crate) struct Later(Arc<Mutex<Vec<Task>>>);

impl Later {
    /// Takes the tasks out, to be run or dropped.
    pub(crate) fn take(&self) -> Vec<Task> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// Runs the tasks, outside the queue's lock.
    pub(crate) fn run(&self) -> usize {
        let tasks = self.take();
        let count = tasks.len();
        tasks.into_iter().for_each(Task::run);
        count
    }
}

impl TaskExecutor for Later {
    fn execute(&self, task: Task) -> Result<(), Rejected> {
        self.0.lock().unwrap().push(task);
        Ok(())
    }
}

/// Executors that run what they take.
pub(crate) fn good() -> Vec<(&'static str, Arc<dyn TaskExecutor>)> {
    vec![
        ("immediate", Arc::new(ImmediateExecutor)),
        ("rayon", Arc::new(RayonExecutor::global())),
        ("threadpool", Arc::new(ThreadPoolExecutor::new(2))),
        ("bounded threadpool", Arc::new(ThreadPoolExecutor::bounded(1, 1))),
    ]
}

/// Executors that refuse tasks, lose them or panic over them.
pub(crate) fn bad() -> Vec<(&'static str, Arc<dyn TaskExecutor>)> {
    use Deed::{Drop, Panic, Reject, Run};
    vec![
        ("rejecting", Arc::new(Moody::new(&[Reject], false))),
        ("dropping", Arc::new(Moody::new(&[Drop], false))),
        ("panicking", Arc::new(Moody::new(&[Panic], false))),
        ("moody", Arc::new(Moody::new(&[Run, Reject, Run, Drop, Panic, Panic, Run], false))),
        ("moody inline", Arc::new(Moody::new(&[Run, Reject, Run, Drop, Panic, Panic, Run], true))),
    ]
}
