//! The counters of a timer, and the statistics that a reader gets.

use super::counter::Counter;
use super::expiry_time::ExpiryTime;
use super::histogram::LagSnapshot;
use super::in_flight::InFlight;
use super::lag::LagHistogram;
use super::late_runs::{LateRunCounters, LateRuns};
use super::lateness::{LateRun, Lateness, LatenessTotals};
use super::recent_max::RecentMax;
use crate::clock;
use crate::deadline::Nanos;
use crate::lateness::WorstRuns;
use crate::sync::Mutex;
use std::time::Duration;

/// The counters of a timer. Its shards count the timeouts that were accepted and cancelled. Any
/// thread writes a counter that names no writer.
#[derive(Default)]
pub(crate) struct TimerCounters {
    /// Written by the turn's thread.
    pub(crate) expired: Counter,
    /// Expiries of queued tasks, and of periodic tasks that panicked. Any thread that runs tasks
    /// writes.
    pub(crate) expired_elsewhere: Counter,
    /// Cancellations of timeouts that are in no wheel, and those by `stop`. Shards count the
    /// others.
    pub(crate) cancelled_elsewhere: Counter,
    /// Written by the turn's thread.
    pub(crate) runs: Counter,
    pub(crate) rejected: Counter,
    pub(crate) task_panics: Counter,
    pub(crate) executor_rejections: Counter,
    /// Written by the turn's thread.
    pub(crate) turns: Counter,
    /// Written by the turn's thread.
    pub(crate) cascaded: Counter,
    /// In nanoseconds. Written by the turn's thread.
    pub(crate) longest_batch: RecentMax,
    /// Written by the turn's thread.
    pub(crate) expiry_time: ExpiryTime,
    /// The time in nanoseconds for which the turn's thread has waited for the locks of shards. Only
    /// this thread writes and reads it.
    pub(crate) lock_waits: Counter,
    pub(crate) lateness: LatenessTotals,
    pub(crate) late_runs: LateRunCounters,
    /// By the names of the tasks. Threads that record runs only try to lock it.
    pub(crate) worst: Mutex<WorstRuns<&'static str, LateRun>>,
    pub(crate) in_flight: InFlight,
    /// Written by the turn's thread.
    pub(crate) tick_lag: LagHistogram,
    /// The lags of tasks that the turn's thread runs.
    pub(crate) inline_lag: LagHistogram,
    /// The lags of tasks that the turn's thread hands over to an executor.
    pub(crate) handover_lag: LagHistogram,
    /// The lags of tasks that start on threads of an executor. Any of these threads writes.
    pub(crate) start_lag: LagHistogram,
}

impl TimerCounters {
    /// Returns the number of expired timeouts.
    pub(crate) fn expired(&self) -> u64 {
        self.expired.get() + self.expired_elsewhere.get()
    }

    /// Keeps a run of `task`, which was late by `late` at `now`, if it is among the worst. Only
    /// then calls `split`, which returns the parts of its lateness and the task that it waited for.
    /// Does nothing if the list is locked, because the worker does not wait for a reader.
    #[cold]
    pub(crate) fn offer(
        &self,
        task: &'static str,
        late: Nanos,
        now: Nanos,
        split: impl FnOnce() -> (Lateness, Option<&'static str>),
    ) {
        let Some(mut worst) = self.worst.try_lock() else { return };
        let at = clock::instant(now);
        worst.offer(task, Duration::from_nanos(late), at, || {
            let (lateness, behind) = split();
            LateRun { task, behind, lateness, at }
        });
    }
}

/// The statistics of a timer.
///
/// `scheduled == pending + expired + cancelled` holds exactly if no call and no turn is in
/// progress. Otherwise each figure is right at some moment during the call. Reading the statistics
/// takes some microseconds and never blocks the worker.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::Timer;
///
/// let (timer, mut driver) = Timer::builder().build_manual()?;
/// timer.new_timeout(Duration::from_millis(1), |_| {})?;
/// timer.new_timeout(Duration::from_millis(2), |_| {})?.cancel();
/// timer.new_timeout(Duration::from_millis(3), |_| {})?;
/// driver.advance(Duration::from_millis(1));
/// let stats = timer.stats();
/// assert_eq!((stats.scheduled, stats.pending, stats.expired, stats.cancelled), (3, 1, 1, 1));
/// // Virtual time has one shard, which no other thread has locked, and the delays are short.
/// assert_eq!((stats.shards, stats.inbox_handovers, stats.cascaded), (1, 0, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A periodic check of a server may log the figures that point to a problem:
///
/// ```
/// use std::time::Duration;
/// use timer_core::{Timer, TimerStats};
///
/// fn problems(stats: &TimerStats) -> Vec<String> {
///     let mut found = Vec::new();
///     if stats.max_pending.is_some_and(|max| stats.pending > max as u64 / 10 * 9) {
///         found.push(format!("{} of the timeouts allowed are pending", stats.pending));
///     }
///     if stats.longest_batch > Duration::from_millis(10) {
///         found.push(format!("tasks held the worker for {:?}", stats.longest_batch));
///     }
///     if stats.start_lag.quantile(0.99) > Duration::from_millis(100) {
///         found.push(format!("tasks start late; {} wait in the executor", stats.queued));
///     }
///     if stats.tick_lag.quantile(0.99) > Duration::from_millis(100) {
///         found.push("the worker wakes up late".to_owned());
///     }
///     if stats.task_panics + stats.executor_rejections > 0 {
///         found.push("tasks panicked, or the executor refused them".to_owned());
///     }
///     found
/// }
///
/// assert!(problems(&Timer::new().stats()).is_empty());
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TimerStats {
    /// Timeouts that were accepted and have not ended.
    pub pending: u64,
    /// Timeouts that were accepted since the timer was built. A periodic task counts once.
    pub scheduled: u64,
    /// Timeouts that ended because their tasks started. A periodic task ends in this way only by a
    /// panic.
    pub expired: u64,
    /// Timeouts that were cancelled, or returned by `stop`.
    pub cancelled: u64,
    /// Calls that were refused. They count as rejected only.
    pub rejected: u64,
    /// Panics of tasks, hooks, wakers and `Drop` implementations that were caught.
    pub task_panics: u64,
    /// Tasks that ran on the worker or were returned by `stop_and_wait`, because the executor
    /// refused or dropped a task or panicked.
    pub executor_rejections: u64,
    /// The number of times that the worker or the driver looked for due timeouts.
    pub turns: u64,
    /// Tasks that have started. A periodic task counts with every run.
    pub runs: u64,
    /// Entries that cascaded from a coarse level of the hierarchical wheel to a finer one.
    pub cascaded: u64,
    /// Calls that found the lock of their shard held and left a request in its inbox.
    pub inbox_handovers: u64,
    /// The number of shards over which callers are spread.
    pub shards: u64,
    /// The longest time that a batch of up to 64 tasks and wakers held the worker within the last
    /// one to two minutes. No single task of the batch exceeded it. Zero unless tasks or wakers run
    /// on the worker.
    pub longest_batch: Duration,
    /// The mean time that the worker took for each timeout in recent crowds, from taking it out of
    /// the wheel to the end of its task or its hand-over. Waits for locks do not count. On Linux,
    /// the time in which the worker did not have a CPU does not count either. A crowd is 64
    /// timeouts or more that are due within about 2 ms. As long as there was no crowd, this is the
    /// shortest time of a lone timeout, which is longer. Zero until 64 timeouts have run.
    pub expiry_time: Duration,
    /// The time by which all runs together were late, from their deadlines to their starts, split
    /// by causes. It is the sum of `start_lag`, apart from tasks in the executor's queue.
    pub lateness: Lateness,
    /// The late runs in a histogram for each cause.
    pub late_runs: LateRuns,
    /// The time from the tick that the worker had to handle to the beginning of its turn.
    pub tick_lag: LagSnapshot,
    /// The time from the deadline of a task to the beginning of the hand-over of its batch. For
    /// tasks that run on the worker it ends with their batch, so it is never too low, and too high
    /// by at most the duration of the batch.
    pub timeout_lag: LagSnapshot,
    /// The time from the deadline of a task to its start. It includes the wait in an executor's
    /// queue. For tasks that run on the worker it equals `timeout_lag`.
    pub start_lag: LagSnapshot,
    /// Tasks that wait in the executor's queue. They are pending.
    pub queued: u64,
    /// Tasks that have started and not returned. Without an executor, all tasks that the worker
    /// runs count as one.
    pub running: u64,
    /// The sum of `queued` and `running`.
    pub in_flight: u64,
    /// The bound on pending timeouts, or `None`.
    pub max_pending: Option<usize>,
}
