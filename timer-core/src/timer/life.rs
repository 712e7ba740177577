//! How a timer starts, stops and ends.
//!
//! *Stopping.* The flag is set; every shard is shut and emptied ([`crate::shard::Shard::close`]); the worker is told and joined; what it had
//! taken out of a wheel and not yet won it leaves here, unclaimed, or cancels it if no thread waits any more. Each entry that comes
//! out of this is ended by its state word, so it is handed back only if it has not run or been cancelled meanwhile. A caller that
//! races this with a new timeout either finds its shard shut, and takes the timeout back, or was in time, and gets it handed back.
//!
//! What an executor has been handed stays with it: it runs, can be cancelled, and is pending until it starts.

use super::engine::Engine;
use super::run::run_abandoned;
use super::unprocessed::{StopReport, Unprocessed};
use crate::config::DrivenBy;
use crate::entry::state::Runs;
use crate::entry::{Owned, Timeout};
use crate::error::{RejectReason, StopError};
use crate::shard::Contents;
use crate::sync::{Arc, AtomicBool, AtomicUsize, Event, JoinHandle, Mutex, OnceLock, Ordering, ThreadId};
use crate::sync::{is_running, spawn, thread_id};
use crate::time::IMMEDIATE;
use std::time::{Duration, Instant};

/// What of an engine has to do with its beginning and end.
pub(crate) struct Life {
    /// How many [`Timer`](crate::Timer) handles there are.
    handles: AtomicUsize,
    started: AtomicBool,
    worker: Mutex<Option<JoinHandle<()>>>,
    /// Held while a thread waits for the worker's end, so that a second `stop` waits as well.
    stopping: Mutex<()>,
    /// Set by the worker itself, before it calls anything foreign.
    worker_id: OnceLock<ThreadId>,
    /// No worker runs: there is none, or it has ended.
    worker_gone: AtomicBool,
    worker_ended: Event,
    unclaimed: Mutex<Unclaimed>,
    /// The timer of the whole process: it is never stopped.
    global: AtomicBool,
    /// What the worker's thread does.
    worker_body: fn(Arc<Engine>),
}

/// Entries that the worker had taken out when the timer was stopped.
#[derive(Default)]
struct Unclaimed {
    entries: Vec<Timeout>,
    /// How many threads wait for them: one whose limit has come does not.
    waited_for: usize,
}

impl Life {
    pub(super) fn new(driven: bool, worker_body: fn(Arc<Engine>)) -> Self {
        Self {
            handles: AtomicUsize::new(1),
            started: AtomicBool::new(driven),
            worker: Mutex::new(None),
            stopping: Mutex::new(()),
            worker_id: OnceLock::new(),
            worker_gone: AtomicBool::new(true),
            worker_ended: Event::default(),
            unclaimed: Mutex::new(Unclaimed::default()),
            global: AtomicBool::new(false),
            worker_body,
        }
    }

    #[inline]
    pub(super) fn has_started(&self) -> bool {
        // ORDERING: Relaxed, a hint: whether to start is decided under the lock in `start`.
        self.started.load(Ordering::Relaxed)
    }
}

impl Engine {
    /// Starts the worker, if there is to be one and it does not run yet.
    #[cold]
    pub(crate) fn start(self: &Arc<Self>) -> Result<(), RejectReason> {
        let mut worker = self.life.worker.lock();
        if self.context.is_stopped() {
            return Err(RejectReason::Stopped);
        }
        if self.life.has_started() {
            return Ok(());
        }
        let (engine, run) = (self.clone(), self.life.worker_body);
        // ORDERING: Relaxed, the thread's start and the lock order it.
        self.life.worker_gone.store(false, Ordering::Relaxed);
        match spawn(&self.context.name, move || run(engine)) {
            Ok(thread) => {
                *worker = Some(thread);
                // ORDERING: Relaxed, a hint for `admit`; the lock orders it for `start`.
                self.life.started.store(true, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                // ORDERING: Relaxed, as above.
                self.life.worker_gone.store(true, Ordering::Relaxed);
                drop(worker);
                let context = &*self.context;
                context
                    .trace(|| tracing::error!(timer = %context.name, %error, "the worker thread could not be started"));
                Err(RejectReason::ThreadRefused)
            }
        }
    }

    /// For the worker: the calling thread is it.
    pub(crate) fn am_worker(&self) {
        let _ = self.life.worker_id.set(thread_id());
    }

    /// For the worker: it calls nothing of the timer's any more.
    pub(crate) fn worker_has_ended(&self) {
        // ORDERING: Release pairs with the load in `wait_for_worker`: what the worker did comes before.
        self.life.worker_gone.store(true, Ordering::Release);
        self.life.worker_ended.notify_all();
    }

    /// Whether the calling thread is the worker.
    pub(crate) fn is_on_worker(&self) -> bool {
        self.life.worker_id.get() == Some(&thread_id())
    }

    /// The timer of the whole process.
    #[allow(dead_code, reason = "for futures")]
    pub(crate) fn make_global(&self) {
        // ORDERING: Relaxed, set before the timer is published.
        self.life.global.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_driven(&self) -> bool {
        self.driven_by != DrivenBy::Worker
    }

    fn may_stop(&self) -> Result<(), StopError> {
        // ORDERING: Relaxed, as in `make_global`.
        if self.life.global.load(Ordering::Relaxed) {
            return Err(StopError::Global);
        }
        if self.is_driven() { Err(StopError::Driven) } else { Ok(()) }
    }

    /// [`Timer::stop`](crate::Timer::stop).
    pub(crate) fn stop_by_handle(&self) -> Result<Vec<Unprocessed>, StopError> {
        self.may_stop()?;
        if self.is_on_worker() { Err(StopError::OnWorker) } else { Ok(self.stop()) }
    }

    /// [`Timer::stop_and_wait`](crate::Timer::stop_and_wait).
    pub(crate) fn stop_and_wait(&self, limit: Duration) -> Result<StopReport, StopError> {
        self.may_stop()?;
        let this = Arc::as_ptr(&self.context).addr();
        if is_running(|running| running.timer == this) {
            return Err(StopError::InTask);
        }
        if self.is_on_worker() {
            return Err(StopError::OnWorker);
        }
        Ok(self.stop_by_limit(limit))
    }

    /// Stops, waits for at most `limit` until all tasks have ended, and hands back what has not run. Runs no task.
    pub(crate) fn stop_by_limit(&self, limit: Duration) -> StopReport {
        let until = Instant::now().checked_add(limit);
        self.life.unclaimed.lock().waited_for += 1;
        let first = self.context.set_stopped();
        let mut ended = if first { self.end_all(self.close()) } else { Vec::new() };
        self.wait_for_worker(until);
        ended.extend(self.end_abandoned());
        ended.extend(self.end_unclaimed());
        let in_flight = &self.context.counters.in_flight;
        in_flight.wait_for_none(until);
        let (queued, running) = in_flight.get();
        StopReport { unprocessed: ended, in_flight: usize::try_from(queued + running).unwrap_or(usize::MAX) }
    }

    /// Stops, waits for the worker, and hands back what has not run. Empty for all callers but the first; they wait as well.
    pub(crate) fn stop(&self) -> Vec<Unprocessed> {
        let stopping = self.life.stopping.lock();
        let first = {
            let mut unclaimed = self.life.unclaimed.lock();
            let first = self.context.set_stopped();
            unclaimed.waited_for += usize::from(first);
            first
        };
        let contents = if first { self.close() } else { Vec::new() };
        let worker = self.life.worker.lock().take();
        match worker {
            // The worker catches every panic of foreign code; one of its own would have been printed.
            Some(worker) => drop(worker.join()),
            // Another thread has taken the right to join it, and may have left before its end.
            None => self.wait_for_worker(None),
        }
        drop(stopping);
        if !first {
            return Vec::new();
        }
        run_abandoned(&self.context);
        let mut ended = self.end_all(contents);
        ended.extend(self.end_unclaimed());
        ended
    }

    /// Stops without waiting for any thread: what has not run is cancelled.
    pub(crate) fn abandon(&self) {
        if self.context.set_stopped() {
            let contents = self.close();
            drop(self.end_all(contents));
            run_abandoned(&self.context);
        }
    }

    /// For the engine's last moment: nothing that was accepted is lost.
    pub(super) fn end(&self) {
        self.abandon();
        drop(self.end_unclaimed());
        run_abandoned(&self.context);
    }

    fn close(&self) -> Vec<Contents> {
        let contents = self.shards().iter().map(|shard| shard.close()).collect();
        self.context.alarm.wake_before(IMMEDIATE);
        contents
    }

    /// Ends the entries that have not ended yet.
    fn end_all(&self, contents: Vec<Contents>) -> Vec<Unprocessed> {
        contents.into_iter().flat_map(Contents::into_entries).filter_map(|timeout| self.end_one(timeout)).collect()
    }

    /// For a thread that has waited for them, or the last that knows the engine.
    fn end_unclaimed(&self) -> Vec<Unprocessed> {
        let entries = {
            let mut unclaimed = self.life.unclaimed.lock();
            unclaimed.waited_for = unclaimed.waited_for.saturating_sub(1);
            std::mem::take(&mut unclaimed.entries)
        };
        entries.into_iter().filter_map(|timeout| self.end_one(timeout)).collect()
    }

    /// Ends the tasks that an executor has dropped unrun. They are handed back, because a task that runs here could hold the
    /// stopping thread beyond its limit.
    fn end_abandoned(&self) -> Vec<Unprocessed> {
        let context = &self.context;
        let abandoned = std::iter::from_fn(|| context.abandoned.pop());
        let ended = abandoned.filter_map(Timeout::cancel_queued).inspect(|_| {
            context.counters.executor_rejections.add_contended(1);
            context.counters.in_flight.unqueue();
            context.counters.cancelled_elsewhere.add_contended(1);
            context.release_permit();
        });
        ended.map(|owned| Unprocessed::new(owned, context.clone())).collect()
    }

    fn end_one(&self, timeout: Timeout) -> Option<Unprocessed> {
        let owned: Owned<Timeout> = timeout.cancel_by_stop().ok()?;
        self.context.counters.cancelled_elsewhere.add_contended(1);
        self.context.release_permit();
        if owned.timeout().runs() == Runs::Wake {
            // A future says itself that the timer is stopped.
            self.context.contain(|| owned.cancelled());
            return None;
        }
        Some(Unprocessed::new(owned, self.context.clone()))
    }

    fn wait_for_worker(&self, until: Option<Instant>) {
        // A start either came before this, and is seen, or finds the timer stopped: the flag alone may be read as it was before.
        drop(self.life.worker.lock());
        // ORDERING: Acquire pairs with the Release in `worker_has_ended`.
        self.life.worker_ended.wait(until, || self.life.worker_gone.load(Ordering::Acquire));
    }

    /// Keeps an entry that the owner of the turn has taken out of a wheel and, because the timer was stopped, has not won; it is
    /// cancelled here if no thread waits for it.
    pub(crate) fn leave_unclaimed(&self, timeout: Timeout) {
        if !timeout.state().is_waiting() {
            return;
        }
        let mut unclaimed = self.life.unclaimed.lock();
        if unclaimed.waited_for > 0 {
            unclaimed.entries.push(timeout);
        } else {
            drop(unclaimed);
            drop(self.end_one(timeout));
        }
    }

    /// One handle more.
    pub(crate) fn ref_inc(&self) {
        // ORDERING: Relaxed, a new handle comes from one that exists.
        self.life.handles.fetch_add(1, Ordering::Relaxed);
    }

    /// One handle more, unless the last one is gone.
    pub(crate) fn try_ref_inc(&self) -> bool {
        let one_more = |handles: usize| (handles > 0).then_some(handles + 1);
        // ORDERING: Relaxed, as in `ref_inc`: the count cannot leave zero again.
        self.life.handles.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }

    /// One handle less; `true` for the last.
    pub(crate) fn ref_dec(&self) -> bool {
        // ORDERING: AcqRel, what was done through any handle comes before what the last one's end does.
        self.life.handles.fetch_sub(1, Ordering::AcqRel) == 1
    }
}
