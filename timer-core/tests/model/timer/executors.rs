//! Executors that run, keep, refuse, lose and panic over tasks, and tell the model.

use super::world::World;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use timer_executor::{Rejected, Task, TaskExecutor};

/// Which executor a case uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Immediate,
    /// A closure that runs each task at once; they are handed over together before.
    Closure,
    /// Each batch another way: runs it, refuses it, loses one task, panics with one in hand.
    Unruly,
    /// Keeps the tasks until the case runs or drops them.
    Deferred,
}

impl Mode {
    pub(crate) const ALL: [Mode; 4] = [Mode::Immediate, Mode::Closure, Mode::Unruly, Mode::Deferred];

    /// Nothing is handed over before it runs.
    pub(crate) fn is_inline(self) -> bool {
        self == Mode::Immediate
    }
}

/// What an executor needs to know, once it is there.
pub(crate) type Known = Arc<OnceLock<Weak<World>>>;

fn told(known: &Known, batch: usize, refused: usize) {
    let world = known.get().and_then(Weak::upgrade).expect("the world is there");
    world.watched(|| {
        let mut model = world.model();
        model.hand_over_batch(batch);
        model.counts.executor_rejections += refused as u64;
    });
}

/// Runs each task at once.
pub(crate) fn closure(known: Known) -> impl Fn(Task) + Send + Sync + 'static {
    move |task| {
        let world = known.get().and_then(Weak::upgrade).expect("the world is there");
        world.watched(|| world.model().hand_over_next());
        task.run();
    }
}

#[derive(Default)]
pub(crate) struct Unruly {
    pub(crate) known: Known,
    batches: AtomicUsize,
}

impl TaskExecutor for Unruly {
    fn execute(&self, task: Task) -> Result<(), Rejected> {
        Err(Rejected(task))
    }

    fn execute_batch(&self, tasks: &mut Vec<Task>) {
        let all = tasks.len();
        match self.batches.fetch_add(1, Ordering::Relaxed) % 4 {
            0 => {
                told(&self.known, all, 0);
                tasks.drain(..).for_each(Task::run);
            }
            1 => told(&self.known, all, all),
            2 => {
                told(&self.known, all, 1);
                drop(tasks.remove(0));
                tasks.drain(..).for_each(Task::run);
            }
            _ => {
                told(&self.known, all, all);
                let _in_hand = tasks.pop();
                resume_unwind(Box::new("the executor"));
            }
        }
    }
}

#[derive(Default)]
pub(crate) struct Deferred {
    pub(crate) known: Known,
    queue: Mutex<Vec<Task>>,
}

impl Deferred {
    /// One of the tasks that wait, or an empty shell of one.
    pub(crate) fn take(&self, any: usize) -> Option<Task> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let at = any.checked_rem(queue.len())?;
        Some(queue.remove(at))
    }
}

impl TaskExecutor for Deferred {
    fn execute(&self, task: Task) -> Result<(), Rejected> {
        Err(Rejected(task))
    }

    fn execute_batch(&self, tasks: &mut Vec<Task>) {
        told(&self.known, tasks.len(), 0);
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).append(tasks);
    }
}
