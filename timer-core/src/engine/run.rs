//! The run of a task, on the worker or on a thread that an executor has chosen.
//!
//! After a run, even one that panicked, the thread ends the timeout or arms it again. It holds no
//! lock while the task runs or is dropped.

use crate::backlog::Handover;
use crate::counters::{LateCause, Lateness};
use crate::deadline::{Deadline, IMMEDIATE, Nanos};
use crate::entry::state::Runs;
use crate::entry::{Period, TaskRight, Timeout};
use crate::lateness::MIN_LATENESS;
use crate::shard::Block;
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
            if let Some(right) = timeout.link_again(deadline, now, context) {
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

impl Handover {
    /// Splits the lateness of a run that starts at `now`.
    fn split(&self, deadline: Nanos, now: Nanos) -> (Lateness, Option<&'static str>) {
        if deadline > self.at {
            // The timeout was moved and handed over again, and this is its first item.
            let mut lateness = Lateness::default();
            lateness.add_nanos(LateCause::Executor, now.saturating_sub(deadline));
            return (lateness, None);
        }
        let (mut lateness, behind) =
            self.before.as_ref().map(|line| line.explain(self.due, LateCause::Tasks)).unwrap_or_default();
        if self.before.is_none() {
            lateness.add_nanos(LateCause::Turn, self.at.saturating_sub(self.due));
        }
        lateness.add_nanos(LateCause::Tick, self.due.saturating_sub(deadline));
        lateness.add_nanos(LateCause::Executor, now.saturating_sub(self.at));
        (lateness, behind)
    }
}

/// The shards of a timer with its context. Tasks in an executor share it with the engine, so that
/// they and their timeouts go by one clock also when the timer is gone.
pub(crate) struct TimerLease {
    pub(crate) context: Arc<TimerContext>,
    pub(crate) block: Block,
}

/// A task in an executor, which starts the next timeout of the backlog. If the executor drops it
/// unrun and it is not a spare one, the worker does its work. Once the timer is stopped, the thread
/// that drops it does the work, or `stop` runs or returns the timeout.
pub(crate) struct QueuedTask {
    lease: Option<Arc<TimerLease>>,
}

impl QueuedTask {
    pub(crate) fn task(lease: &Arc<TimerLease>) -> Task {
        let mut queued = QueuedTask { lease: Some(lease.clone()) };
        Task::new(move || {
            if let Some(lease) = queued.lease.take() {
                let context = &lease.context;
                context.backlog.start_next(|timeout, handover| start_queued(&timeout, handover, context, || {}));
            }
        })
    }
}

impl Drop for QueuedTask {
    fn drop(&mut self) {
        let Some(lease) = self.lease.take() else { return };
        let context = &lease.context;
        if context.backlog.take_spare() {
            return;
        }
        context.backlog.abandon();
        if context.is_stopped_after() {
            run_abandoned(context);
        } else {
            context.alarm.wake_before(IMMEDIATE);
        }
    }
}

/// Runs a timeout that was handed over, after calling `before_run`. Returns `false` if the timeout
/// has been cancelled or moved since.
fn start_queued(timeout: &Timeout, handover: &Handover, context: &TimerContext, before_run: impl FnOnce()) -> bool {
    let Some(right) = timeout.start() else { return false };
    let counters = &context.counters;
    let now = context.now();
    counters.in_flight.start();
    before_run();
    let due = right.deadline().nanos();
    let lag = now.saturating_sub(due);
    counters.start_lag.record_contended(lag);
    let queued = now.saturating_sub(handover.at.max(due));
    counters.lateness.add_queued(queued);
    counters.late_runs.record_queued(queued);
    if lag >= MIN_LATENESS + context.tick_nanos() {
        counters.offer(timeout.kind().name(), lag, now, || handover.split(due, now));
    }
    if timeout.runs() == Runs::Once {
        context.end_expired_elsewhere();
    }
    run(right, timeout, context);
    counters.in_flight.finish();
    true
}

/// Does the work of the tasks that the executor has rejected or dropped, on this thread, even if
/// the executor and the timer are gone.
pub(crate) fn run_abandoned(context: &TimerContext) {
    while run_one_abandoned(context) {}
}

/// Does the work of one such task. Returns `false` if there is none.
pub(crate) fn run_one_abandoned(context: &TimerContext) -> bool {
    let report = || {
        context.counters.executor_rejections.add_contended(1);
        context.trace(
            || tracing::warn!(timer = %context.name, "the executor rejected or dropped a task, so this thread runs it"),
        );
    };
    let found = context.backlog.take_abandoned();
    if found {
        context.backlog.start_next(|timeout, handover| start_queued(&timeout, handover, context, report));
    }
    found
}

#[cfg(all(test, not(timer_loom)))]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::config::{Config, DrivenBy};
    use crate::engine::Engine;
    use crate::entry::Closure;
    use crate::entry::state::Reset;
    use crate::sync::Mutex;
    use crate::worker::Dispatcher;
    use std::time::Duration;

    /// A thread is preempted before it links an entry that it has moved. Another thread links the
    /// entry, which is handed over, and then the timer is stopped.
    #[test]
    fn a_queued_task_is_left_to_its_executor_by_a_thread_that_links_too_late() {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let in_executor = kept.clone();
        let executor = move |task: Task| in_executor.lock().push(task);
        let engine = Engine::new(Config::default(), Some(Box::new(executor)), DrivenBy::ManualDriver);
        let context = &engine.context;
        let now = engine.context.now();
        let mut dispatcher = Dispatcher::new(engine.clone());
        let Ok(timeout) = engine.schedule(Closure(|_: &Timeout| {}), Deadline::down) else { panic!("refused") };
        assert_eq!(dispatcher.turn_to_end(now), 1);
        let deadline = Deadline::after(now, Duration::from_secs(1));
        let reset = timeout.state().reset(deadline, false);
        assert_eq!(reset, Reset::WasQueued);
        assert!(timeout.expire_now());
        assert_eq!(dispatcher.turn_to_end(now), 1);
        engine.abandon();
        assert!(timeout.finish_reset(reset, deadline, now));
        assert_eq!(context.counters.in_flight.get(), (1, 0));
        let mut tasks = std::mem::take(&mut *kept.lock());
        tasks.drain(..).for_each(Task::run);
        assert_eq!((context.counters.in_flight.get(), engine.pending()), ((0, 0), 0));
        assert_eq!((engine.stats().expired, engine.stats().cancelled, engine.stats().runs), (1, 0, 1));
    }
}
