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
    /// A small pool that rejects tasks beyond its bound.
    Bounded,
    /// An executor that runs tasks here and on rayon, rejects and drops them, and panics with one.
    Unruly,
}

impl Executor {
    pub(crate) const ALL: [Executor; 3] = [Executor::Immediate, Executor::Bounded, Executor::Unruly];

    /// Adds the executor. The receiver disconnects when the executor is dropped, where a test can
    /// observe it.
    pub(crate) fn add_to(self, builder: TimerBuilder, seed: u64) -> (TimerBuilder, Option<Receiver<()>>) {
        match self {
            Executor::Immediate => (builder, None),
            Executor::Bounded => (builder.executor(ThreadPoolExecutor::bounded(2, 2)), None),
            Executor::Unruly => {
                let (lose, lost) = channel::<Task>();
                let (end, ended) = channel();
                std::thread::spawn(move || {
                    lost.into_iter().for_each(drop);
                    drop(end);
                });
                (builder.executor(Unruly { seed: AtomicU64::new(seed), lose }), Some(ended))
            }
        }
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
