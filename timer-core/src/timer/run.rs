//! One run of a task: on the worker, on a thread that an executor has chosen, or, for what an executor has thrown away, on the worker
//! after all.
//!
//! Whatever the task does, its timeout ends, or waits again, here. Ground rule: nothing is held while the task runs or is dropped.

use crate::context::Context;
use crate::entry::state::{Due, Runs};
use crate::entry::{Owned, Period, Timeout, Wakeup};
use crate::shard::{Closed, shard_of};
use crate::sync::{Arc, Running, event_of, while_running};
use crate::time::{Deadline, IMMEDIATE, Nanos};
use timer_executor::Task;

/// Runs a task that was won, which is counted by the caller, and ends its timeout or arms it again.
#[inline]
pub(crate) fn run(owned: Owned<&Timeout>, timeout: &Timeout, context: &Context) {
    let running = Running { timeout: timeout.address(), timer: std::ptr::from_ref(context).addr() };
    let ended = while_running(running, || {
        let due = owned.deadline().nanos();
        match context.contain(|| owned.run()) {
            Some(None) => true,
            Some(Some((owned, period))) => run_again(owned, period, due, context),
            None => {
                if timeout.runs() == Runs::Again && timeout.state().fail() {
                    context.counters.expired_elsewhere.add_contended(1);
                    context.release_permit();
                }
                true
            }
        }
    });
    // Without another reference no thread waits for the end.
    if ended && !timeout.is_last() && timeout.state().end_run() {
        event_of(timeout.address()).notify_all();
    }
}

/// Wakes the task of a future. The entry has run by then, and its waker is taken out: a task that is woken inline may use the future
/// again, or drop it.
#[inline]
pub(crate) fn wake(owned: Owned<&Timeout>, timeout: &Timeout, context: &Context) {
    let wakeup = owned.into_job::<Wakeup>();
    timeout.state().end_run();
    let running = Running { timeout: timeout.address(), timer: std::ptr::from_ref(context).addr() };
    while_running(running, || context.contain(|| wakeup.map(|Wakeup(waker)| waker.wake())));
}

/// After a run of many; `true` if it was the last.
fn run_again(owned: Owned<&Timeout>, period: Period, due: Nanos, context: &Context) -> bool {
    let timeout = owned.timeout().clone();
    let now = context.now();
    match owned.rearm(Deadline::up(period.next(due, now, context.resolution.tick_nanos(), context.missed_runs))) {
        Ok(deadline) => {
            link_again(timeout, deadline, now, context);
            false
        }
        Err(owned) => {
            // Cancelled during the run, and so dropped here: the canceller could not.
            context.contain(|| owned.discard());
            true
        }
    }
}

/// Puts an entry that waits again into its shard's wheel.
fn link_again(timeout: Timeout, deadline: Deadline, now: Nanos, context: &Context) {
    let tick = context.resolution.tick_from(deadline, now);
    if let Err(Closed(timeout)) = shard_of(timeout.shard_id()).submit(timeout, tick) {
        cancel_stopped(&timeout, context);
    }
}

/// The timer was stopped while this was out of its wheel, and not to be handed back: it is cancelled.
fn cancel_stopped(timeout: &Timeout, context: &Context) {
    if let (_, Some(owned)) = timeout.win_cancel() {
        context.counters.cancelled_elsewhere.add_contended(1);
        context.release_permit();
        context.contain(|| owned.cancelled());
    }
}

/// What an executor gets: a timeout that was handed over and not started. Dropped unrun, the task runs on the worker.
pub(crate) struct Shell {
    timeout: Option<Timeout>,
    context: Arc<Context>,
}

impl Shell {
    pub(crate) fn task(timeout: Timeout, context: &Arc<Context>) -> Task {
        let mut shell = Shell { timeout: Some(timeout), context: context.clone() };
        Task::new(move || {
            if let Some(timeout) = shell.timeout.take() {
                start(timeout, &shell.context);
            }
        })
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let Some(timeout) = self.timeout.take() else { return };
        let context = &self.context;
        context.abandoned.push(timeout);
        if context.is_stopped_after() {
            run_abandoned(context);
        } else {
            context.alarm.wake_before(IMMEDIATE);
        }
    }
}

/// Starts a task that was handed over, unless it was cancelled or moved meanwhile.
fn start(timeout: Timeout, context: &Context) {
    let (counters, now) = (&context.counters, context.now());
    match timeout.start(now) {
        Due::Won(owned) => {
            counters.in_flight.start();
            counters.start_lag.record_contended(now.saturating_sub(owned.deadline().nanos()));
            if timeout.runs() == Runs::Once {
                counters.expired_elsewhere.add_contended(1);
                context.release_permit();
            }
            run(owned, &timeout, context);
            counters.in_flight.finish();
        }
        Due::Later(deadline) => {
            counters.in_flight.unqueue();
            link_again(timeout, deadline, now, context);
        }
        // The canceller has taken it off the queue's count.
        Due::Gone => {}
    }
}

/// Runs the tasks that an executor has thrown away, here and now, whatever became of the executor and the timer.
pub(crate) fn run_abandoned(context: &Context) {
    while let Some(timeout) = context.abandoned.pop() {
        context.counters.executor_rejections.add_contended(1);
        context.trace(|| tracing::warn!(timer = %context.name, "the executor dropped a task: it runs here instead"));
        start(timeout, context);
    }
}
