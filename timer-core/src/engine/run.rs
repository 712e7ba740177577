//! The run of a task, on the worker or on a thread that an executor has chosen.
//!
//! After a run, even one that panicked, the thread ends the timeout or arms it again. It holds no
//! lock while the task runs or is dropped.

use super::TimerLease;
use crate::counters::{LateCause, Lateness, MIN_LATENESS};
use crate::deadline::{Deadline, IMMEDIATE, Nanos};
use crate::entry::state::{Due, Runs};
use crate::entry::{Period, TaskRight, Timeout};
use crate::sync::{Arc, Running, event_of, while_running};
use crate::timer_context::TimerContext;
use timer_executor::Task;

/// Runs a task whose right the caller has won, and ends its timeout or arms it again. The caller
/// counts the run.
#[inline]
pub(crate) fn run(right: TaskRight<&Timeout>, timeout: &Timeout, context: &TimerContext) {
    if timeout.runs() == Runs::Wake {
        // The run ends first, because a task that is woken inline may use the future again.
        timeout.state().end_run();
    }
    let running = Running { timeout: timeout.address(), timer: std::ptr::from_ref(context).addr() };
    let ended = while_running(running, || {
        let due = right.deadline().nanos();
        match context.contain(|| right.run()) {
            Some(None) => true,
            Some(Some((right, period))) => run_again(right, period, due, context),
            None => {
                if timeout.runs() == Runs::Again && timeout.state().fail() {
                    context.end_expired_elsewhere();
                }
                true
            }
        }
    });
    // If this is the last reference, no thread waits, because a waiting thread would have one.
    if ended && !timeout.is_last() && timeout.state().end_run() {
        event_of(timeout.address()).notify_all();
    }
}

/// Arms a periodic timeout again after a run. Returns `true` if it was cancelled during the run, so
/// that the caller must end the run.
fn run_again(right: TaskRight<&Timeout>, period: Period, due: Nanos, context: &TimerContext) -> bool {
    let timeout = right.timeout().clone();
    let now = context.now();
    match right.rearm(Deadline::up(period.next(due, now, context.tick_nanos(), context.missed_runs))) {
        Ok(deadline) => {
            if let Some(right) = link_again(&timeout, deadline, now, context) {
                context.contain(|| right.cancelled());
            } else if context.is_draining() {
                let (cancel, right) = timeout.decide_cancel();
                timeout.finish_cancel(cancel);
                context.contain(|| right.map(TaskRight::cancelled));
            }
            false
        }
        Err(right) => {
            // The timeout was cancelled during the run. The canceller could not drop the task, so
            // this thread does.
            context.contain(|| right.cancelled());
            true
        }
    }
}

/// Links an entry that waits again. If the timer was stopped and the entry still waits, cancels it
/// and returns the right to its task.
fn link_again(timeout: &Timeout, deadline: Deadline, now: Nanos, context: &TimerContext) -> Option<TaskRight<Timeout>> {
    let tick = context.resolution.tick_from(deadline, now);
    if timeout.link(deadline, tick).is_ok() {
        return None;
    }
    // The entry is in no wheel, unless another thread has linked it since. In that case it may be
    // queued or run, or `stop` may be about to end it, and the state word decides.
    timeout.clone().cancel_by_stop().inspect(|_| context.end_cancelled())
}

/// The lateness of a task when it was handed over to an executor.
#[derive(Clone, Default)]
pub(crate) struct Handover {
    /// The time at which it was due.
    pub(crate) due: Nanos,
    /// The beginning of the batch with which it was handed over.
    pub(crate) at: Nanos,
    /// Splits the time from `due` to `at` if it is long.
    pub(crate) before: Option<Arc<Split>>,
}

/// A function that splits the time from a moment to a later one, and names the task that worked for
/// much of it.
pub(crate) type Split = dyn Fn(Nanos) -> (Lateness, Option<&'static str>) + Send + Sync;

impl Handover {
    /// Splits the lateness of a run that starts at `now`.
    fn split(&self, deadline: Nanos, now: Nanos) -> (Lateness, Option<&'static str>) {
        let (mut lateness, behind) = self.before.as_ref().map(|split| split(self.due)).unwrap_or_default();
        if self.before.is_none() {
            lateness.add(LateCause::Turn, self.at.saturating_sub(self.due));
        }
        lateness.add(LateCause::Tick, self.due.saturating_sub(deadline));
        lateness.add(LateCause::Executor, now.saturating_sub(self.at));
        (lateness, behind)
    }
}

/// The content of a task in an executor, a timeout that was handed over and has not started.
/// If the executor drops it unrun, the worker runs it. Once the timer is stopped, the thread that
/// drops it runs it, or `stop` runs or returns it.
pub(crate) struct QueuedTask {
    timeout: Option<Timeout>,
    lease: Arc<TimerLease>,
}

impl QueuedTask {
    pub(crate) fn task(timeout: Timeout, lease: &Arc<TimerLease>, handover: Handover) -> Task {
        let mut queued = QueuedTask { timeout: Some(timeout), lease: lease.clone() };
        Task::new(move || {
            if let Some(timeout) = queued.timeout.take() {
                start_queued(timeout, Some(&handover), &queued.lease.context);
            }
        })
    }
}

impl Drop for QueuedTask {
    fn drop(&mut self) {
        let Some(timeout) = self.timeout.take() else { return };
        let context = &self.lease.context;
        context.abandoned.push(timeout);
        if context.is_stopped_after() {
            run_abandoned(context);
        } else {
            context.alarm.wake_before(IMMEDIATE);
        }
    }
}

/// Starts a task that was handed over, unless it was cancelled or moved since.
fn start_queued(timeout: Timeout, handover: Option<&Handover>, context: &TimerContext) {
    let (counters, now) = (&context.counters, context.now());
    match timeout.start(now) {
        Due::Won(right) => {
            counters.in_flight.start();
            let lag = now.saturating_sub(right.deadline().nanos());
            counters.start_lag.record_contended(lag);
            if let Some(handover) = handover {
                let queued = now.saturating_sub(handover.at);
                counters.lateness.add_queued(queued);
                counters.late_runs.record_queued(queued);
                if lag >= MIN_LATENESS + context.tick_nanos() {
                    let split = || handover.split(right.deadline().nanos(), now);
                    counters.worst.offer(timeout.kind().name(), lag, now, split);
                }
            }
            if timeout.runs() == Runs::Once {
                context.end_expired_elsewhere();
            }
            run(right, &timeout, context);
            counters.in_flight.finish();
        }
        Due::Later(deadline) => {
            // The timeout has ended or is linked when it leaves the count. Its task is dropped
            // afterwards, because a `Drop` of the user may wait for the count.
            let right = link_again(&timeout, deadline, now, context);
            counters.in_flight.unqueue();
            if let Some(right) = right {
                context.contain(|| right.cancelled());
            }
        }
        // The canceller decrements the count of queued tasks.
        Due::Gone => {}
    }
}

/// Runs the tasks that an executor has dropped unrun, on this thread, even if the executor and the
/// timer are gone.
pub(crate) fn run_abandoned(context: &TimerContext) {
    while let Some(timeout) = context.abandoned.pop() {
        context.counters.executor_rejections.add_contended(1);
        context.trace(|| tracing::warn!(timer = %context.name, "the executor dropped a task, so this thread runs it"));
        start_queued(timeout, None, context);
    }
}

#[cfg(all(test, not(timer_loom)))]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::config::{Config, DrivenBy};
    use crate::engine::Engine;
    use crate::entry::Closure;
    use crate::sync::Mutex;
    use crate::worker::Dispatcher;
    use std::time::Duration;

    /// A thread is preempted before it links an entry again. Another thread links the entry, which
    /// is handed over, and then the timer is stopped.
    #[test]
    fn a_queued_task_is_left_to_its_executor_by_a_thread_that_links_too_late() {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let in_executor = kept.clone();
        let executor = move |task: Task| in_executor.lock().push(task);
        let engine = Engine::new(Config::default(), Some(Box::new(executor)), DrivenBy::ManualDriver);
        let (context, now) = (&engine.context, engine.context.now());
        let mut dispatcher = Dispatcher::new(engine.clone());
        let Ok(timeout) = engine.schedule(Closure(|_: &Timeout| {}), Deadline::down) else { panic!("refused") };
        assert_eq!(dispatcher.turn_to_end(now), 1);
        assert!(timeout.reset(Duration::from_secs(1)));
        let Due::Later(deadline) = timeout.start(now) else { panic!("moved to later") };
        context.counters.in_flight.unqueue();
        assert!(timeout.expire_now());
        assert_eq!(dispatcher.turn_to_end(now), 1);
        engine.abandon();
        assert!(link_again(&timeout, deadline, now, context).is_none());
        assert_eq!(context.counters.in_flight.get(), (1, 0));
        let mut tasks = std::mem::take(&mut *kept.lock());
        tasks.pop().unwrap().run();
        assert_eq!((context.counters.in_flight.get(), engine.pending()), ((0, 0), 0));
        assert_eq!((engine.stats().expired, engine.stats().cancelled), (1, 0));
    }
}
