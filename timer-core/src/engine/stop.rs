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
use crate::sync::{Arc, is_running, spawn};
use std::time::{Duration, Instant};

impl Engine {
    /// Starts the worker, whose thread executes `run`. Does nothing if the worker runs or the timer
    /// is driven.
    #[cold]
    pub(crate) fn spawn_worker(self: &Arc<Self>, run: fn(Arc<Engine>)) -> Result<(), RejectReason> {
        let context = &*self.context;
        let may_start = || !context.is_stopped() && !context.is_draining();
        let engine = self.clone();
        match self.lifecycle.start(may_start, || spawn(&context.name, move || run(engine))) {
            Ok(true) => Ok(()),
            Ok(false) => Err(RejectReason::Stopped),
            Err(error) => {
                context
                    .trace(|| tracing::error!(timer = %context.name, %error, "the worker thread could not be started"));
                Err(RejectReason::ThreadRefused)
            }
        }
    }

    fn may_stop(&self) -> Result<(), StopError> {
        if self.is_driven { Err(StopError::Driven) } else { Ok(()) }
    }

    /// Implements [`Timer::stop`](crate::Timer::stop).
    pub(crate) fn stop_by_handle(&self) -> Result<Vec<Unprocessed>, StopError> {
        self.may_stop()?;
        if self.lifecycle.is_on_worker() { Err(StopError::OnWorker) } else { Ok(self.stop()) }
    }

    /// Refuses timeouts from now on. The worker runs the pending ones.
    pub(super) fn refuse_further(&self) {
        let _no_start = self.lifecycle.hold_start();
        self.context.set_draining();
        self.lifecycle.require_start();
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
        if self.lifecycle.is_on_worker() { Err(StopError::OnWorker) } else { Ok(()) }
    }

    /// Stops the timer, waits for at most `limit` until all tasks have ended, and returns the
    /// timeouts that have not run. Runs no task.
    pub(crate) fn stop_by_limit(&self, limit: Duration) -> StopReport {
        let until = Instant::now().checked_add(limit);
        self.unclaimed.wait_if(|| true);
        let mut ended = self.close(false).map_or_else(Vec::new, |contents| self.end_all(contents));
        self.lifecycle.wait_for_worker(until);
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
        self.lifecycle.wait_for_worker(None);
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
        let mut first = false;
        let contents = {
            let _no_start = self.lifecycle.hold_start();
            self.unclaimed.wait_if(|| {
                first = self.context.set_stopped();
                first && waits
            });
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
        self.unclaimed.take().into_iter().filter_map(|timeout| self.end_one(timeout)).collect()
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

    /// Keeps an entry that the turn's thread has taken out of a wheel but not won, because the
    /// timer was stopped. Cancels it if no thread waits for it.
    pub(crate) fn leave_unclaimed(&self, timeout: Timeout) {
        if !timeout.state().is_waiting() {
            return;
        }
        if let Some(timeout) = self.unclaimed.leave(timeout) {
            drop(self.end_one(timeout));
        }
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests;
