//! tokio-util's `DelayQueue`. It is made for one owner, so callers share it by a mutex with the
//! task that polls it.

use super::{Job, Peer};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio_util::time::DelayQueue;
use tokio_util::time::delay_queue::Key;

/// The greatest number of tasks that are removed under one lock.
const BATCH: usize = 1024;

type Task = Box<dyn FnOnce() + Send>;
type Tasks = Arc<Mutex<DelayQueue<Task>>>;

#[derive(Clone)]
pub(super) struct Queue {
    tasks: Tasks,
    runtime: Arc<Runtime>,
}

pub(super) struct CapturedJob<J>(J);

impl Queue {
    fn lock(&self) -> MutexGuard<'_, DelayQueue<Task>> {
        lock(&self.tasks)
    }
}

fn lock(tasks: &Tasks) -> MutexGuard<'_, DelayQueue<Task>> {
    tasks.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs due tasks. Never ends, because an empty queue may be filled again.
fn serve(tasks: &Tasks, due: &mut Vec<Task>, context: &mut Context<'_>) -> Poll<()> {
    loop {
        let mut queue = lock(tasks);
        while due.len() < BATCH
            && let Poll::Ready(Some(expired)) = queue.poll_expired(context)
        {
            due.push(expired.into_inner());
        }
        drop(queue);
        if due.is_empty() {
            return Poll::Pending;
        }
        due.drain(..).for_each(|task| task());
    }
}

impl Peer for Queue {
    const NAME: &'static str = "delay-queue";
    type Handle = Key;
    type Work<J: Job> = CapturedJob<J>;

    fn build(_: Duration) -> Self {
        let runtime = super::tokio::runtime();
        let entered = runtime.enter();
        let tasks = Tasks::default();
        drop(entered);
        let (served, mut due) = (tasks.clone(), Vec::with_capacity(BATCH));
        runtime.spawn(poll_fn(move |context| serve(&served, &mut due, context)));
        Self { tasks, runtime }
    }

    fn on_thread<R>(&self, body: impl FnOnce() -> R) -> R {
        let _entered = self.runtime.enter();
        body()
    }

    fn work<J: Job>(job: J) -> Self::Work<J> {
        CapturedJob(job)
    }

    fn schedule<J: Job>(&mut self, delay: Duration, work: &Self::Work<J>) -> Key {
        let job = work.0;
        let task: Task = Box::new(move || job.run());
        self.lock().insert(task, delay)
    }

    fn cancel(&mut self, key: Key) {
        // The name keeps the task alive until the lock is released.
        let _task = self.lock().try_remove(&key);
    }

    fn reset(&mut self, key: &mut Key, delay: Duration) {
        self.lock().reset(key, delay);
    }

    fn pending(&self) -> Option<usize> {
        Some(self.lock().len())
    }
}
