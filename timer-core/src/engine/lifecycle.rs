//! The handles of a timer and its worker's thread, from the start to the exit.

use crate::sync::{
    AtomicBool, AtomicUsize, Event, JoinHandle, Mutex, MutexGuard, OnceLock, Ordering, ThreadId, thread_id,
};
use std::io;
use std::time::Instant;

/// The number of handles, and the state of the worker's thread.
pub(crate) struct Lifecycle {
    /// The number of [`Timer`](crate::Timer) handles.
    handles: AtomicUsize,
    started: AtomicBool,
    worker: Mutex<Option<JoinHandle<()>>>,
    /// Set by the worker before it calls user code.
    worker_id: OnceLock<ThreadId>,
    /// `true` while no worker runs.
    worker_gone: AtomicBool,
    /// `true` while no worker thread exists. The thread exits after the worker has ended.
    thread_gone: AtomicBool,
    pub(super) worker_ended: Event,
}

impl Lifecycle {
    /// Returns the state before the start. A driven timer needs no worker, so it counts as started.
    pub(super) fn new(driven: bool) -> Self {
        Self {
            handles: AtomicUsize::new(1),
            started: AtomicBool::new(driven),
            worker: Mutex::new(None),
            worker_id: OnceLock::new(),
            worker_gone: AtomicBool::new(true),
            thread_gone: AtomicBool::new(true),
            worker_ended: Event::default(),
        }
    }

    /// Returns `true` if the worker runs, or if the timer is driven.
    #[inline]
    pub(crate) fn has_started(&self) -> bool {
        // ORDERING: Relaxed, because this is a hint. `start` decides while it holds the
        // lock.
        self.started.load(Ordering::Relaxed)
    }

    /// Starts the worker with `spawn`, unless it has started. Returns `false` if `may_start` does.
    /// Other threads neither start nor stop the worker during this call.
    #[cold]
    pub(super) fn start(
        &self,
        may_start: impl FnOnce() -> bool,
        spawn: impl FnOnce() -> io::Result<JoinHandle<()>>,
    ) -> io::Result<bool> {
        let mut worker = self.worker.lock();
        if !may_start() {
            return Ok(false);
        }
        if self.has_started() {
            return Ok(true);
        }
        // ORDERING: Relaxed, because the start of the thread and the lock order it.
        self.worker_gone.store(false, Ordering::Relaxed);
        // ORDERING: Relaxed, as above.
        self.thread_gone.store(false, Ordering::Relaxed);
        match spawn() {
            Ok(thread) => {
                *worker = Some(thread);
                // ORDERING: Relaxed, because `has_started` is a hint. The lock orders the store for
                // `start`.
                self.started.store(true, Ordering::Relaxed);
                Ok(true)
            }
            Err(error) => {
                // ORDERING: Relaxed, as above.
                self.worker_gone.store(true, Ordering::Relaxed);
                // ORDERING: Relaxed, as above.
                self.thread_gone.store(true, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    /// Keeps other threads from starting the worker until the guard is dropped.
    pub(super) fn hold_start(&self) -> MutexGuard<'_, impl Sized> {
        self.worker.lock()
    }

    /// Sends callers to [`start`](Self::start) from now on, although the worker runs.
    pub(super) fn require_start(&self) {
        // ORDERING: Relaxed, because `start` refuses them under its lock.
        self.started.store(false, Ordering::Relaxed);
    }

    /// Marks the calling thread as the worker.
    pub(crate) fn mark_as_worker(&self) {
        let _ = self.worker_id.set(thread_id());
    }

    /// Reports the end of the worker. Its thread does not touch the timer afterwards, but it may
    /// drop the last reference to the engine.
    pub(crate) fn worker_has_ended(&self) {
        // ORDERING: Relaxed, as in `wait_for_worker`.
        self.worker_gone.store(true, Ordering::Relaxed);
        self.worker_ended.notify_all();
    }

    /// Returns `true` if the calling thread is the worker.
    pub(crate) fn is_on_worker(&self) -> bool {
        self.worker_id.get() == Some(&thread_id())
    }

    /// Waits until the worker has ended and its thread has exited, or until `until`. Once the
    /// worker has ended, one caller joins its thread, whose exit has no limit.
    pub(super) fn wait_for_worker(&self, until: Option<Instant>) {
        // After this lock, this thread sees every earlier start, and later starts find the timer
        // stopped. Without it, the flags could still be `true` from before a start by another
        // thread.
        drop(self.worker.lock());
        if until.is_none() {
            // A worker that has panicked, by a fault of this crate, does not report its end.
            self.join_worker();
        }
        // ORDERING: Relaxed, because the join, or the lock of the event, orders the worker's work.
        self.worker_ended.wait(until, || self.worker_gone.load(Ordering::Relaxed));
        // ORDERING: Relaxed, as above.
        if !self.worker_gone.load(Ordering::Relaxed) {
            return;
        }
        self.join_worker();
        // ORDERING: Relaxed, as above.
        self.worker_ended.wait(until, || self.thread_gone.load(Ordering::Relaxed));
    }

    /// Joins the worker's thread, unless another caller does.
    fn join_worker(&self) {
        let worker = self.worker.lock().take();
        if let Some(worker) = worker {
            // The worker catches every panic of user code. The panic hook has reported any other
            // panic.
            let _ = worker.join();
            // ORDERING: Relaxed, because the worker has notified the event, whose lock shows its
            // work to a caller that waits for the thread.
            self.worker_gone.store(true, Ordering::Relaxed);
            // ORDERING: Relaxed, as above.
            self.thread_gone.store(true, Ordering::Relaxed);
            self.worker_ended.notify_all();
        }
    }

    /// Counts one more handle.
    pub(crate) fn ref_inc(&self) {
        // ORDERING: Relaxed, because a new handle is made from an existing one.
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one more handle. Returns `false` if the last one is gone.
    pub(crate) fn try_ref_inc(&self) -> bool {
        let one_more = |handles: usize| (handles > 0).then_some(handles + 1);
        // ORDERING: Relaxed, as in `ref_inc`. The count never leaves zero again.
        self.handles.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }

    /// Decrements the number of handles. Returns `true` if that was the last one.
    pub(crate) fn ref_dec(&self) -> bool {
        // ORDERING: AcqRel, so that the drop of the last handle comes after all work through other
        // handles.
        self.handles.fetch_sub(1, Ordering::AcqRel) == 1
    }
}
