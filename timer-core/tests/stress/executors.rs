//! The executors.

use crate::support::random::Rng;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use timer_core::TimerBuilder;
use timer_executor::{ExecuteError, RayonExecutor, Task, TaskExecutor, ThreadPoolExecutor};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Executor {
    Immediate,
    Rayon,
    ThreadPool,
    /// A small pool that rejects tasks beyond its bound.
    Bounded,
    /// A closure that sends the tasks to a thread.
    Closure,
    /// An executor that runs, rejects and drops tasks, and panics with a task.
    Unruly,
}

impl Executor {
    pub(crate) const ALL: [Executor; 6] = [
        Executor::Immediate,
        Executor::Rayon,
        Executor::ThreadPool,
        Executor::Bounded,
        Executor::Closure,
        Executor::Unruly,
    ];

    /// Adds the executor. The receiver disconnects when the executor is dropped, where a test can
    /// observe it.
    pub(crate) fn add_to(self, builder: TimerBuilder, seed: u64) -> (TimerBuilder, Option<Receiver<()>>) {
        let builder = match self {
            Executor::Immediate => builder,
            Executor::Rayon => builder.executor(RayonExecutor::global()),
            Executor::ThreadPool => builder.executor(ThreadPoolExecutor::new(2)),
            Executor::Bounded => builder.executor(ThreadPoolExecutor::bounded(2, 2)),
            Executor::Unruly => {
                let (lose, lost) = channel::<Task>();
                let (end, ended) = channel();
                std::thread::spawn(move || {
                    lost.into_iter().for_each(drop);
                    drop(end);
                });
                return (builder.executor(Unruly { seed: AtomicU64::new(seed), lose }), Some(ended));
            }
            Executor::Closure => {
                let (give, tasks) = channel::<Task>();
                let (end, ended) = channel();
                std::thread::spawn(move || {
                    tasks.into_iter().for_each(Task::run);
                    drop(end);
                });
                return (builder.executor(move |task| drop(give.send(task))), Some(ended));
            }
        };
        (builder, None)
    }
}

struct Unruly {
    seed: AtomicU64,
    /// Leads to a thread that drops its tasks.
    lose: Sender<Task>,
}

impl TaskExecutor for Unruly {
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        let seed = self.seed.fetch_add(1, Ordering::Relaxed);
        match Rng::with_seed(seed).usize(..16) {
            0 | 1 => return Err(ExecuteError(task)),
            2 => drop(task),
            3 => self.lose.send(task).unwrap_or_default(),
            4 => {
                let _in_hand = task;
                resume_unwind(Box::new("the executor"));
            }
            5..10 => task.run(),
            _ => return RayonExecutor::global().execute(task),
        }
        Ok(())
    }
}
