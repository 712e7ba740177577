//! Runs a task where it stands: on the thread that hands it over.
//!
//! Promises: a task has finished when `execute` returns; nothing is ever rejected. Absent: threads,
//! queues, allocations.

use crate::{Rejected, Task, TaskExecutor};

/// Runs each task at once, on the thread that hands it over: for a timer, its worker.
///
/// The cheapest executor, right for short tasks (completing a future, sending a message). A slow
/// task delays those after it; if yours may be slow, use a pool.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc::channel;
/// use std::thread;
/// use timer_executor::{ImmediateExecutor, Task, TaskExecutor};
///
/// let (sender, receiver) = channel();
/// let task = Task::new(move || sender.send(thread::current().id()).unwrap());
/// ImmediateExecutor.execute(task).unwrap();
/// assert_eq!(receiver.try_recv(), Ok(thread::current().id()));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[doc(alias = "ImmediateExecutor.INSTANCE")]
#[doc(alias = "CallerRunsPolicy")]
#[doc(alias = "directExecutor")]
pub struct ImmediateExecutor;

impl TaskExecutor for ImmediateExecutor {
    fn execute(&self, task: Task) -> Result<(), Rejected> {
        task.run();
        Ok(())
    }

    fn runs_inline(&self) -> bool {
        true
    }
}
