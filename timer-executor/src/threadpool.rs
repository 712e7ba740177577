//! Runs tasks on a pool of plain threads, with or without a bound on what waits.
//!
//! Promises: accepted tasks that have not finished never exceed threads + queue; no task waits behind a slow one while a
//! thread of the pool is idle; a panicking task costs no thread. Absent: growing and shrinking, keep-alive times.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ::threadpool::ThreadPool;

use crate::batch::{self, Runner, RunnerQueue};
use crate::{Rejected, Task, TaskExecutor};

/// Runs each task on a pool of threads of its own, named `timer-pool`.
///
/// A slow task occupies one thread and delays no other as long as one is idle. A batch costs the caller one job, however
/// many tasks are in it; the threads share it out task by task. The tasks of a batch start in its order; several batches run
/// side by side.
///
/// Dropping the executor does not wait: what was accepted still runs, then the threads end. They do not keep the process
/// alive: what has not run when `main` returns is lost.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc::channel;
/// use timer_executor::{Task, TaskExecutor, ThreadPoolExecutor};
///
/// let executor = ThreadPoolExecutor::new(2);
/// let (sender, receiver) = channel();
/// executor.execute(Task::new(move || sender.send(7).unwrap())).unwrap();
/// assert_eq!(receiver.recv().unwrap(), 7);
/// ```
#[derive(Debug)]
#[doc(alias = "newFixedThreadPool")]
pub struct ThreadPoolExecutor {
    jobs: Jobs,
}

impl ThreadPoolExecutor {
    /// A pool of so many threads (0 is taken as 1) that takes any amount of work.
    ///
    /// # Panics
    ///
    /// If the operating system refuses to start a thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    /// use timer_executor::{Task, TaskExecutor, ThreadPoolExecutor};
    ///
    /// let executor = ThreadPoolExecutor::new(2);
    /// let (sender, receiver) = channel();
    /// let mut tasks: Vec<Task> = (0..100)
    ///     .map(|i| {
    ///         let sender = sender.clone();
    ///         Task::new(move || sender.send(i).unwrap())
    ///     })
    ///     .collect();
    /// executor.execute_batch(&mut tasks);
    /// assert!(tasks.is_empty());
    /// drop(sender);
    /// assert_eq!(receiver.iter().count(), 100);
    /// ```
    #[must_use]
    pub fn new(threads: usize) -> Self {
        Self { jobs: Jobs { pool: start(threads.max(1)), slots: None } }
    }

    /// A pool of so many threads (0 is taken as 1) that holds at most `threads + queue` tasks that have not finished.
    ///
    /// Beyond that, tasks are rejected: of a batch, those that come last.
    ///
    /// # Panics
    ///
    /// If the operating system refuses to start a thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    /// use timer_executor::{Rejected, Task, TaskExecutor, ThreadPoolExecutor};
    ///
    /// let executor = ThreadPoolExecutor::bounded(1, 1);
    /// let (open, gate) = channel::<()>();
    /// executor.execute(Task::new(move || gate.recv().unwrap())).unwrap(); // occupies the thread
    /// executor.execute(Task::new(|| println!("waited in the queue"))).unwrap();
    /// let Rejected(task) = executor.execute(Task::new(|| println!("ran by the caller"))).unwrap_err();
    /// task.run();
    /// open.send(()).unwrap();
    /// ```
    #[must_use]
    #[doc(alias = "ArrayBlockingQueue")]
    pub fn bounded(threads: usize, queue: usize) -> Self {
        let threads = threads.max(1);
        let slots = Slots { taken: AtomicUsize::new(0), max: threads.saturating_add(queue) };
        Self { jobs: Jobs { pool: start(threads), slots: Some(Arc::new(slots)) } }
    }
}

fn start(threads: usize) -> ThreadPool {
    ThreadPool::with_name("timer-pool".into(), threads)
}

impl TaskExecutor for ThreadPoolExecutor {
    fn execute(&self, task: Task) -> Result<(), Rejected> {
        if self.jobs.reserve(1) == 0 {
            return Err(Rejected(task));
        }
        self.jobs.push_one(task);
        Ok(())
    }

    fn execute_batch(&self, tasks: &mut Vec<Task>) {
        let accepted = self.jobs.reserve(tasks.len());
        if accepted > 1 {
            // Not taken whole: the caller keeps its buffer for the next batch.
            self.jobs.push(batch::share(tasks.drain(..accepted).collect(), self.jobs.clone()));
        } else {
            tasks.drain(..accepted).for_each(|task| self.jobs.push_one(task));
        }
    }
}

/// A handle to the pool and its bound. The pool's threads end when the last one is gone, and the queue is empty.
#[derive(Clone, Debug)]
struct Jobs {
    pool: ThreadPool,
    slots: Option<Arc<Slots>>,
}

impl Jobs {
    fn reserve(&self, wanted: usize) -> usize {
        self.slots.as_ref().map_or(wanted, |slots| slots.reserve(wanted))
    }

    /// For a task whose place is reserved.
    fn push_one(&self, task: Task) {
        let job = Job { task, _slot: self.slots.clone().map(Slot) };
        self.pool.execute(move || job.run());
    }
}

impl RunnerQueue for Jobs {
    fn push(&self, runner: Runner<Self>) {
        self.pool.execute(move || runner.run());
    }

    fn finished(&self) {
        if let Some(slots) = &self.slots {
            slots.release();
        }
    }
}

/// A single task with its place. Fields are dropped in order: a task that is lost has ended when its place is free.
struct Job {
    task: Task,
    _slot: Option<Slot>,
}

impl Job {
    fn run(self) {
        self.task.run();
    }
}

struct Slot(Arc<Slots>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// How many accepted tasks have not finished; never more than `max`.
#[derive(Debug)]
struct Slots {
    taken: AtomicUsize,
    max: usize,
}

impl Slots {
    /// Takes as many places as are free, up to `wanted`; says how many.
    fn reserve(&self, wanted: usize) -> usize {
        let mut granted = 0;
        // ORDERING: Acquire pairs with the Release in `release`: what a finished task did has happened before the task that
        // gets its place is accepted. Relaxed on failure, nothing is taken then.
        let _ = self.taken.fetch_update(Ordering::Acquire, Ordering::Relaxed, |taken| {
            granted = wanted.min(self.max - taken);
            (granted > 0).then_some(taken + granted)
        });
        granted
    }

    fn release(&self) {
        // ORDERING: Release pairs with the Acquire in `reserve`.
        self.taken.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn places_taken_at_the_same_time_never_exceed_the_bound() {
        let slots = Slots { taken: AtomicUsize::new(0), max: 5 };
        let in_use = AtomicUsize::new(0);
        let together = Barrier::new(4);
        thread::scope(|scope| {
            for wanted in [1, 2, 3, 4] {
                let (slots, in_use, together) = (&slots, &in_use, &together);
                scope.spawn(move || {
                    together.wait();
                    for _ in 0..200_000 {
                        let granted = slots.reserve(wanted);
                        // ORDERING: Relaxed, `slots` orders both against those who hold the places before and after.
                        let others = in_use.fetch_add(granted, Ordering::Relaxed);
                        assert!(granted <= wanted && others + granted <= 5, "{others} + {granted}");
                        // ORDERING: as above.
                        in_use.fetch_sub(granted, Ordering::Relaxed);
                        (0..granted).for_each(|_| slots.release());
                    }
                });
            }
        });
        assert_eq!(slots.reserve(9), 5);
        assert_eq!(slots.reserve(1), 0);
    }
}
