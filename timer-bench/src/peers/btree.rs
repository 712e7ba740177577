//! `Mutex<BTreeMap>` and a thread, a simple timer that frees cancelled entries.

use super::shared::{Ordered, Shared};
use super::storming::Storming;
use super::{Job, Peer};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

type Task = Box<dyn FnOnce() + Send>;
type Key = (Instant, u64);

/// Tasks by deadline. A number makes the keys unique.
#[derive(Default)]
pub(crate) struct Tasks {
    tree: BTreeMap<Key, Task>,
    number: u64,
}

impl Tasks {
    fn insert(&mut self, deadline: Instant, task: Task) -> Key {
        self.number += 1;
        let key = (deadline, self.number);
        self.tree.insert(key, task);
        key
    }
}

impl Ordered for Tasks {
    type Due = Task;

    fn first(&self) -> Option<Instant> {
        self.tree.first_key_value().map(|((deadline, _), _)| *deadline)
    }

    fn take_first(&mut self) -> Option<Task> {
        self.tree.pop_first().map(|(_, task)| task)
    }

    fn run(task: Task) {
        task();
    }
}

#[derive(Clone)]
pub(crate) struct BTree {
    tasks: Shared<Tasks>,
}

pub(crate) struct CapturedJob<J>(J);

impl Peer for BTree {
    const NAME: &'static str = "btree";
    type Handle = Key;
    type Work<J: Job> = CapturedJob<J>;

    fn build(_: Duration) -> Self {
        Self { tasks: Shared::start() }
    }

    fn work<J: Job>(job: J) -> Self::Work<J> {
        CapturedJob(job)
    }

    fn schedule<J: Job>(&mut self, delay: Duration, work: &Self::Work<J>) -> Key {
        let job = work.0;
        let task = Box::new(move || job.run());
        let deadline = Instant::now() + delay;
        self.tasks.add(deadline, |tasks| tasks.insert(deadline, task))
    }

    fn cancel(&mut self, key: Key) {
        // The task is dropped outside the lock.
        let _: Option<Task> = self.tasks.take(|tasks| tasks.tree.remove(&key));
    }

    fn reset(&mut self, key: &mut Key, delay: Duration) {
        let deadline = Instant::now() + delay;
        self.tasks.add(deadline, |tasks| {
            if let Some(task) = tasks.tree.remove(key) {
                *key = tasks.insert(deadline, task);
            }
        });
    }

    fn pending(&self) -> Option<usize> {
        Some(self.tasks.read(|tasks| tasks.tree.len()))
    }

    fn stop(self) {
        self.tasks.stop();
    }
}

impl Storming for BTree {
    type Back = Tasks;

    fn try_schedule<J: Job>(&mut self, delay: Duration, work: &Self::Work<J>) -> Option<Key> {
        let job = work.0;
        let task = Box::new(move || job.run());
        let deadline = Instant::now() + delay;
        self.tasks.add_unless_stopped(deadline, |tasks| tasks.insert(deadline, task))
    }

    fn try_cancel(&mut self, key: Key) -> Option<bool> {
        // The name keeps the task alive until the lock is released.
        let task = self.tasks.take(|tasks| tasks.tree.remove(&key));
        Some(task.is_some())
    }

    fn stop_beside_callers(&self) -> Tasks {
        self.tasks.take_all_and_stop()
    }

    fn run_back(back: Tasks) {
        back.tree.into_values().for_each(|task| task());
    }
}
