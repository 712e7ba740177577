//! The executor that runs a task on the thread that hands it over, without threads, queues or
//! allocations.
//!
//! A task has finished when `execute` returns, and none is ever rejected.

use crate::{ExecuteError, Task, TaskExecutor};

/// An executor that runs each task at once on the thread that hands it over, the worker of a timer.
///
/// This is the cheapest executor, and it is right for short tasks, such as completing a future or
/// sending a message. A slow task delays all tasks after it. Use a pool if a task may be slow.
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
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        task.run();
        Ok(())
    }

    fn runs_inline(&self) -> bool {
        true
    }
}
