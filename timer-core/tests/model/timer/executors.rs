//! Executors that run, keep, reject or lose tasks or panic, and inform the model.

use super::world::World;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use timer_executor::{ExecuteError, Task, TaskExecutor};

/// The executor of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Immediate,
    /// A closure that runs each task at once. The model sees the hand-over of the whole batch
    /// before its first task runs.
    Closure,
    /// An executor that runs a batch, rejects it, loses one task, or panics with a task, in turn.
    Unruly,
    /// An executor that keeps the tasks until the case runs or drops them.
    Deferred,
}

impl Mode {
    pub(crate) const ALL: [Mode; 4] = [Mode::Immediate, Mode::Closure, Mode::Unruly, Mode::Deferred];

    /// Returns `true` if a task runs in its hand-over.
    pub(crate) fn is_inline(self) -> bool {
        self == Mode::Immediate
    }
}

/// The world of an executor, set after the executor was made.
pub(crate) type WorldSlot = Arc<OnceLock<Weak<World>>>;

fn world(known: &WorldSlot) -> Arc<World> {
    known.get().and_then(Weak::upgrade).expect("the world is there")
}

fn hand_over(known: &WorldSlot) {
    let world = world(known);
    let handed_over = world.timer.stats().timeout_lag.count();
    world.watched(|| world.model().hand_over_batch(handed_over));
}

/// Returns an executor that runs each task at once.
pub(crate) fn closure(known: WorldSlot) -> impl Fn(Task) + Send + Sync + 'static {
    move |task| {
        let world = world(&known);
        let handed_over = world.timer.stats().timeout_lag.count();
        world.watched(|| world.model().hand_over_next(handed_over));
        world.run_in_executor(task);
    }
}

#[derive(Default)]
pub(crate) struct Unruly {
    pub(crate) known: WorldSlot,
    batches: AtomicUsize,
}

impl TaskExecutor for Unruly {
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        Err(ExecuteError(task))
    }

    fn execute_batch(&self, tasks: &mut Vec<Task>) {
        hand_over(&self.known);
        let run = |task| world(&self.known).run_in_executor(task);
        match self.batches.fetch_add(1, Ordering::Relaxed) % 4 {
            0 => tasks.drain(..).for_each(run),
            1 => {}
            2 => {
                drop(tasks.remove(0));
                tasks.drain(..).for_each(run);
            }
            _ => {
                let _in_hand = tasks.pop();
                resume_unwind(Box::new("the executor"));
            }
        }
    }
}

#[derive(Default)]
pub(crate) struct Deferred {
    pub(crate) known: WorldSlot,
    queue: Mutex<Vec<Task>>,
}

impl Deferred {
    pub(crate) fn len(&self) -> u64 {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }

    /// Takes one of the waiting tasks, which may be a spare one.
    pub(crate) fn take(&self, any: usize) -> Option<Task> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let at = any.checked_rem(queue.len())?;
        Some(queue.remove(at))
    }
}

impl TaskExecutor for Deferred {
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        Err(ExecuteError(task))
    }

    fn execute_batch(&self, tasks: &mut Vec<Task>) {
        hand_over(&self.known);
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).append(tasks);
    }
}
