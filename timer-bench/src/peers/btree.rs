//! `Mutex<BTreeMap>` and a thread at a condition variable, the timer that a program has without a
//! library.

use crate::peer::{Job, Peer};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The greatest number of tasks that are removed under one lock.
const BATCH: usize = 1024;

type Task = Box<dyn FnOnce() + Send>;
/// A deadline and a number, which makes the keys unique.
type Key = (Instant, u64);

#[derive(Default)]
struct Tasks {
    tree: BTreeMap<Key, Task>,
    number: u64,
    is_stopped: bool,
}

#[derive(Clone, Default)]
pub(crate) struct BTree(Arc<(Mutex<Tasks>, Condvar)>);

pub(crate) struct CapturedJob<J>(J);

impl BTree {
    fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Inserts a task, and wakes the thread if it is the first.
    fn insert(&self, mut tasks: MutexGuard<'_, Tasks>, deadline: Instant, task: Task) -> Key {
        tasks.number += 1;
        let key = (deadline, tasks.number);
        let is_first = tasks.tree.first_key_value().is_none_or(|(first, _)| key < *first);
        tasks.tree.insert(key, task);
        drop(tasks);
        if is_first {
            self.0.1.notify_one();
        }
        key
    }

    fn serve(&self) {
        let mut due = Vec::with_capacity(BATCH);
        let mut tasks = self.lock();
        while !tasks.is_stopped {
            let now = Instant::now();
            while due.len() < BATCH && tasks.tree.first_key_value().is_some_and(|((first, _), _)| *first <= now) {
                due.extend(tasks.tree.pop_first().map(|(_, task)| task));
            }
            if !due.is_empty() {
                drop(tasks);
                due.drain(..).for_each(|task: Task| task());
                tasks = self.lock();
                continue;
            }
            let first = tasks.tree.first_key_value().map(|((first, _), _)| first.saturating_duration_since(now));
            // An hour is as long as any sleep that nothing interrupts.
            let wait = first.unwrap_or(Duration::from_secs(3600));
            tasks = self.0.1.wait_timeout(tasks, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Peer for BTree {
    const NAME: &'static str = "btree";
    type Handle = Key;
    type Work<J: Job> = CapturedJob<J>;

    fn build(_: Duration) -> Self {
        let timer = Self::default();
        let served = timer.clone();
        thread::spawn(move || served.serve());
        timer
    }

    fn work<J: Job>(job: J) -> Self::Work<J> {
        CapturedJob(job)
    }

    fn schedule<J: Job>(&mut self, delay: Duration, work: &Self::Work<J>) -> Key {
        let job = work.0;
        let task = Box::new(move || job.run());
        self.insert(self.lock(), Instant::now() + delay, task)
    }

    fn cancel(&mut self, key: Key) {
        // The name keeps the task alive until the lock is released.
        let _task = self.lock().tree.remove(&key);
    }

    fn reset(&mut self, key: &mut Key, delay: Duration) {
        let mut tasks = self.lock();
        if let Some(task) = tasks.tree.remove(key) {
            *key = self.insert(tasks, Instant::now() + delay, task);
        }
    }

    fn pending(&self) -> Option<usize> {
        Some(self.lock().tree.len())
    }

    fn stop(self) {
        let mut tasks = self.lock();
        tasks.is_stopped = true;
        let _tree = std::mem::take(&mut tasks.tree);
        drop(tasks);
        self.0.1.notify_one();
    }
}
