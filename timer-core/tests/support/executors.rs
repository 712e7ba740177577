//! Executors that run their tasks, and executors that reject, lose or delay them.

use super::panics::panic_on_purpose;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use timer_executor::{ExecuteError, ImmediateExecutor, RayonExecutor, Task, TaskExecutor, ThreadPoolExecutor};

/// The way an executor treats a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Run,
    Reject,
    Drop,
    Panic,
}

/// An executor that repeats a list of actions.
#[derive(Debug)]
pub(crate) struct Scripted {
    actions: &'static [Action],
    inline: bool,
    count: AtomicUsize,
}

impl Scripted {
    pub(crate) fn new(actions: &'static [Action], inline: bool) -> Self {
        Self { actions, inline, count: AtomicUsize::new(0) }
    }
}

impl TaskExecutor for Scripted {
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        match self.actions[self.count.fetch_add(1, SeqCst) % self.actions.len()] {
            Action::Run => task.run(),
            Action::Reject => return Err(ExecuteError(task)),
            Action::Drop => drop(task),
            Action::Panic => panic_on_purpose(),
        }
        Ok(())
    }

    fn runs_inline(&self) -> bool {
        self.inline
    }
}

/// An executor that keeps its tasks until the test asks for them.
#[derive(Clone, Default)]
pub(crate) struct KeepingExecutor(Arc<Mutex<Vec<Task>>>);

impl KeepingExecutor {
    /// Returns the number of tasks.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Takes the tasks out, so that the test can run or drop them.
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

impl TaskExecutor for KeepingExecutor {
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        self.0.lock().unwrap().push(task);
        Ok(())
    }
}

/// Returns executors that run the tasks they accept.
pub(crate) fn good_executors() -> Vec<(&'static str, Arc<dyn TaskExecutor>)> {
    vec![
        ("immediate", Arc::new(ImmediateExecutor)),
        ("rayon", Arc::new(RayonExecutor::global())),
        ("threadpool", Arc::new(ThreadPoolExecutor::new(2))),
        ("bounded threadpool", Arc::new(ThreadPoolExecutor::bounded(1, 1))),
    ]
}
