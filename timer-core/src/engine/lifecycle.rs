//! The start, the stop and the end of a timer.
//!
//! # Stopping
//!
//! 1. `stop` sets the flag of the timer.
//! 2. It closes every shard and takes its contents ([`crate::shard::Shard::close`]). Steps 1 and 2
//!    hold the lock of the worker, so a second call of `stop` waits for them.
//! 3. It wakes the worker, waits for its end and joins its thread. The worker puts the entries that
//!    it has taken out of a wheel but not won into `unclaimed`. If no thread waits for them, it
//!    cancels them.
//! 4. It cancels each entry of steps 2 and 3 by its state word, and returns the ones for which this
//!    succeeds. The others have run or were cancelled since.
//!
//! A caller that schedules a timeout at the same time either finds its shard closed and takes the
//! task back, or has linked the entry before step 2, and `stop` returns it.
//!
//! A task that an executor has received stays with the executor. It runs or is cancelled, and its
//! timeout is pending until it starts.

use super::Engine;
use super::run::run_abandoned;
use super::unprocessed::{StopReport, Unprocessed};
use crate::deadline::IMMEDIATE;
use crate::entry::state::Runs;
use crate::entry::{TaskRight, Timeout};
use crate::error::{RejectReason, StopError};
use crate::sync::{Arc, AtomicBool, AtomicUsize, Event, JoinHandle, Mutex, OnceLock, Ordering, ThreadId};
use crate::sync::{is_running, spawn, thread_id};
use std::time::{Duration, Instant};

/// The part of an engine that concerns its start and its end.
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
    worker_ended: Event,
    unclaimed: Mutex<Unclaimed>,
}

/// Entries that the worker had taken out of a wheel when the timer was stopped.
#[derive(Default)]
struct Unclaimed {
    entries: Vec<Timeout>,
    /// The number of threads that wait for the entries.
    waited_for: usize,
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
            unclaimed: Mutex::new(Unclaimed::default()),
        }
    }
}

impl Engine {
    /// Returns `true` if the worker runs, or if the timer is driven.
    #[inline]
    pub(crate) fn has_started(&self) -> bool {
        // ORDERING: Relaxed, because this is a hint. `spawn_worker` decides while it holds the
        // lock.
        self.lifecycle.started.load(Ordering::Relaxed)
    }

    /// Starts the worker, whose thread executes `run`. Does nothing if the worker runs or the timer
    /// is driven.
    #[cold]
    pub(crate) fn spawn_worker(self: &Arc<Self>, run: fn(Arc<Engine>)) -> Result<(), RejectReason> {
        let mut worker = self.lifecycle.worker.lock();
        if self.context.is_stopped() || self.context.is_draining() {
            return Err(RejectReason::Stopped);
        }
        if self.has_started() {
            return Ok(());
        }
        let engine = self.clone();
        // ORDERING: Relaxed, because the start of the thread and the lock order it.
        self.lifecycle.worker_gone.store(false, Ordering::Relaxed);
        // ORDERING: Relaxed, as above.
        self.lifecycle.thread_gone.store(false, Ordering::Relaxed);
        match spawn(&self.context.name, move || run(engine)) {
            Ok(thread) => {
                *worker = Some(thread);
                // ORDERING: Relaxed, because `has_started` is a hint. The lock orders the store for
                // `spawn_worker`.
                self.lifecycle.started.store(true, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                // ORDERING: Relaxed, as above.
                self.lifecycle.worker_gone.store(true, Ordering::Relaxed);
                // ORDERING: Relaxed, as above.
                self.lifecycle.thread_gone.store(true, Ordering::Relaxed);
                drop(worker);
                let context = &*self.context;
                context
                    .trace(|| tracing::error!(timer = %context.name, %error, "the worker thread could not be started"));
                Err(RejectReason::ThreadRefused)
            }
        }
    }

    /// Marks the calling thread as the worker.
    pub(crate) fn mark_as_worker(&self) {
        let _ = self.lifecycle.worker_id.set(thread_id());
    }

    /// Reports the end of the worker. Its thread does not touch the timer afterwards, but it may
    /// drop the last reference to the engine.
    pub(crate) fn worker_has_ended(&self) {
        // ORDERING: Relaxed, as in `wait_for_worker`.
        self.lifecycle.worker_gone.store(true, Ordering::Relaxed);
        self.lifecycle.worker_ended.notify_all();
    }

    /// Returns `true` if the calling thread is the worker.
    pub(crate) fn is_on_worker(&self) -> bool {
        self.lifecycle.worker_id.get() == Some(&thread_id())
    }

    fn may_stop(&self) -> Result<(), StopError> {
        if self.is_driven { Err(StopError::Driven) } else { Ok(()) }
    }

    /// Implements [`Timer::stop`](crate::Timer::stop).
    pub(crate) fn stop_by_handle(&self) -> Result<Vec<Unprocessed>, StopError> {
        self.may_stop()?;
        if self.is_on_worker() { Err(StopError::OnWorker) } else { Ok(self.stop()) }
    }

    /// Refuses timeouts from now on. The worker runs the pending ones.
    pub(super) fn refuse_further(&self) {
        // With the lock, so that no other thread starts the worker.
        let _no_start = self.lifecycle.worker.lock();
        self.context.set_draining();
        // ORDERING: Relaxed, because it sends callers to `spawn_worker`, which refuses them.
        self.lifecycle.started.store(false, Ordering::Relaxed);
    }

    /// Implements [`Timer::stop_and_wait`](crate::Timer::stop_and_wait).
    pub(crate) fn stop_and_wait(&self, limit: Duration) -> Result<StopReport, StopError> {
        self.may_wait()?;
        Ok(self.stop_by_limit(limit))
    }

    /// Returns an error if the calling thread may not wait for the tasks of the timer.
    pub(super) fn may_wait(&self) -> Result<(), StopError> {
        self.may_stop()?;
        let this = Arc::as_ptr(&self.context).addr();
        if is_running(|running| running.timer == this) {
            return Err(StopError::InTask);
        }
        if self.is_on_worker() { Err(StopError::OnWorker) } else { Ok(()) }
    }

    /// Stops the timer, waits for at most `limit` until all tasks have ended, and returns the
    /// timeouts that have not run. Runs no task.
    pub(crate) fn stop_by_limit(&self, limit: Duration) -> StopReport {
        let until = Instant::now().checked_add(limit);
        self.lifecycle.unclaimed.lock().waited_for += 1;
        let mut ended = self.close(false).map_or_else(Vec::new, |contents| self.end_all(contents));
        self.wait_for_worker(until);
        let in_flight = &self.context.counters.in_flight;
        let has_undecided = in_flight.has_undecided();
        ended.extend(self.end_abandoned());
        ended.extend(self.end_unclaimed());
        in_flight.wait_for_none(until);
        let (queued, running) = in_flight.get();
        // The worker cancels or hands over the entries that it has not decided.
        let in_flight = (queued + running).max(has_undecided.into());
        StopReport { unprocessed: ended, in_flight: usize::try_from(in_flight).unwrap_or(usize::MAX) }
    }

    /// Stops the timer, waits for the worker, and returns the timeouts that have not run. Later
    /// callers wait for the worker as well and get an empty list.
    pub(crate) fn stop(&self) -> Vec<Unprocessed> {
        let contents = self.close(true);
        self.wait_for_worker(None);
        let Some(contents) = contents else { return Vec::new() };
        run_abandoned(&self.context);
        let mut ended = self.end_all(contents);
        ended.extend(self.end_unclaimed());
        ended
    }

    /// Stops the timer without waiting for any thread, and cancels the timeouts that have not run.
    pub(crate) fn abandon(&self) {
        if let Some(contents) = self.close(false) {
            drop(self.end_all(contents));
            run_abandoned(&self.context);
        }
    }

    /// Ends all timeouts before the engine is freed.
    pub(super) fn end(&self) {
        self.abandon();
        drop(self.end_unclaimed());
        run_abandoned(&self.context);
    }

    /// Performs steps 1 and 2. Returns the entries of each shard that may wait, or `None` if the
    /// timer was stopped before. The caller sets `waits` if it then waits for the unclaimed
    /// entries.
    fn close(&self, waits: bool) -> Option<Vec<impl Iterator<Item = Timeout> + use<>>> {
        let contents = {
            let _worker = self.lifecycle.worker.lock();
            let mut unclaimed = self.lifecycle.unclaimed.lock();
            let first = self.context.set_stopped();
            unclaimed.waited_for += usize::from(first && waits);
            drop(unclaimed);
            first.then(|| self.shards().iter().map(|shard| shard.close()).collect())
        };
        contents.inspect(|_| self.context.alarm.wake_before(IMMEDIATE))
    }

    /// Ends the entries that have not ended yet, and returns those with tasks.
    fn end_all(&self, contents: Vec<impl Iterator<Item = Timeout>>) -> Vec<Unprocessed> {
        contents.into_iter().flatten().filter_map(|timeout| self.end_one(timeout)).collect()
    }

    /// Ends the unclaimed entries. Called by a thread that has waited for the worker, or by the
    /// last owner of the engine.
    fn end_unclaimed(&self) -> Vec<Unprocessed> {
        let entries = {
            let mut unclaimed = self.lifecycle.unclaimed.lock();
            unclaimed.waited_for = unclaimed.waited_for.saturating_sub(1);
            std::mem::take(&mut unclaimed.entries)
        };
        entries.into_iter().filter_map(|timeout| self.end_one(timeout)).collect()
    }

    /// Ends the timeouts whose tasks an executor has dropped unrun. `stop_by_limit` returns them,
    /// because a task that ran here could hold the calling thread beyond its limit.
    fn end_abandoned(&self) -> Vec<Unprocessed> {
        let context = &self.context;
        let mut ended = Vec::new();
        while context.backlog.take_abandoned() {
            context.backlog.start_next(|timeout, _| {
                let Some(right) = timeout.cancel_abandoned() else { return false };
                context.counters.executor_rejections.add_contended(1);
                context.end_cancelled();
                context.counters.in_flight.unqueue();
                ended.push(Unprocessed::new(right, context.clone()));
                true
            });
        }
        ended
    }

    pub(super) fn end_one(&self, timeout: Timeout) -> Option<Unprocessed> {
        let right: TaskRight<Timeout> = timeout.cancel_by_stop()?;
        self.context.end_cancelled();
        if right.timeout().runs() == Runs::Wake {
            // A future reports to its task that the timer is stopped.
            self.context.contain(|| right.cancelled());
            return None;
        }
        Some(Unprocessed::new(right, self.context.clone()))
    }

    /// Waits until the worker has ended and its thread has exited, or until `until`. Once the
    /// worker has ended, one caller joins its thread, whose exit has no limit.
    fn wait_for_worker(&self, until: Option<Instant>) {
        let lifecycle = &self.lifecycle;
        // After this lock, this thread sees every earlier start, and later starts find the timer
        // stopped. Without it, the flags could still be `true` from before a start by another
        // thread.
        drop(lifecycle.worker.lock());
        if until.is_none() {
            // A worker that has panicked, by a fault of this crate, does not report its end.
            self.join_worker();
        }
        // ORDERING: Relaxed, because the join, or the lock of the event, orders the worker's work.
        lifecycle.worker_ended.wait(until, || lifecycle.worker_gone.load(Ordering::Relaxed));
        // ORDERING: Relaxed, as above.
        if !lifecycle.worker_gone.load(Ordering::Relaxed) {
            return;
        }
        self.join_worker();
        // ORDERING: Relaxed, as above.
        lifecycle.worker_ended.wait(until, || lifecycle.thread_gone.load(Ordering::Relaxed));
    }

    /// Joins the worker's thread, unless another caller does.
    fn join_worker(&self) {
        let lifecycle = &self.lifecycle;
        let worker = lifecycle.worker.lock().take();
        if let Some(worker) = worker {
            // The worker catches every panic of user code. The panic hook has reported any other
            // panic.
            let _ = worker.join();
            // ORDERING: Relaxed, because the worker has notified the event, whose lock shows its
            // work to a caller that waits for the thread.
            lifecycle.worker_gone.store(true, Ordering::Relaxed);
            // ORDERING: Relaxed, as above.
            lifecycle.thread_gone.store(true, Ordering::Relaxed);
            lifecycle.worker_ended.notify_all();
        }
    }

    /// Keeps an entry that the turn's thread has taken out of a wheel but not won, because the
    /// timer was stopped. Cancels it if no thread waits for it.
    pub(crate) fn leave_unclaimed(&self, timeout: Timeout) {
        if !timeout.state().is_waiting() {
            return;
        }
        let mut unclaimed = self.lifecycle.unclaimed.lock();
        if unclaimed.waited_for > 0 {
            unclaimed.entries.push(timeout);
        } else {
            drop(unclaimed);
            drop(self.end_one(timeout));
        }
    }

    /// Counts one more handle.
    pub(crate) fn ref_inc(&self) {
        // ORDERING: Relaxed, because a new handle is made from an existing one.
        self.lifecycle.handles.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one more handle. Returns `false` if the last one is gone.
    pub(crate) fn try_ref_inc(&self) -> bool {
        let one_more = |handles: usize| (handles > 0).then_some(handles + 1);
        // ORDERING: Relaxed, as in `ref_inc`. The count never leaves zero again.
        self.lifecycle.handles.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }

    /// Decrements the number of handles. Returns `true` if that was the last one.
    pub(crate) fn ref_dec(&self) -> bool {
        // ORDERING: AcqRel, so that the drop of the last handle comes after all work through other
        // handles.
        self.lifecycle.handles.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests;
