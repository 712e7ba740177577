//! The counts of a timer: as its parts write them, and as a reader gets them.

use super::counter::{ContendedCounter, Counter};
use super::in_flight::InFlight;
use super::lag::{LagHistogram, LagSnapshot};
use super::recent_max::RecentMax;
use std::time::Duration;

/// What is counted per timer; its shards count what was accepted and cancelled.
#[derive(Default)]
pub(crate) struct Counters {
    /// By the owner of the turn.
    pub(crate) expired: Counter,
    /// By threads of an executor.
    pub(crate) expired_elsewhere: ContendedCounter,
    /// Other than by `cancel` of one that waits, which its shard counts.
    pub(crate) cancelled_elsewhere: ContendedCounter,
    /// By the owner of the turn.
    pub(crate) runs: Counter,
    pub(crate) rejected: ContendedCounter,
    pub(crate) task_panics: ContendedCounter,
    pub(crate) executor_rejections: ContendedCounter,
    /// By the owner of the turn.
    pub(crate) turns: Counter,
    /// By the owner of the turn.
    pub(crate) cascaded: Counter,
    /// In nanoseconds. Written by the owner of the turn.
    pub(crate) longest_batch: RecentMax,
    pub(crate) in_flight: InFlight,
    /// By the owner of the turn.
    pub(crate) tick_lag: LagHistogram,
    /// Of tasks that the owner of the turn runs.
    pub(crate) inline_lag: LagHistogram,
    /// Of tasks that the owner of the turn hands over to an executor.
    pub(crate) handover_lag: LagHistogram,
    /// Of tasks that start on threads of an executor; any of them writes.
    pub(crate) start_lag: LagHistogram,
}

impl Counters {
    pub(crate) fn expired(&self) -> u64 {
        self.expired.get() + self.expired_elsewhere.get()
    }
}

/// What a timer has done so far, and what is pending.
///
/// At quiet, `scheduled == pending + expired + cancelled`, exactly; while calls and turns go on each figure is right for a
/// moment during the call. Reading it costs some microseconds of the reader's time and never blocks the worker.
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
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TimerStats {
    /// Accepted and not ended.
    pub pending: u64,
    /// Accepted since the timer was built; a periodic task counts once.
    pub scheduled: u64,
    /// Ended by running: the task has started. A periodic task ends so only by a panic of it.
    pub expired: u64,
    /// Ended by `cancel`, or handed back by `stop`.
    pub cancelled: u64,
    /// Calls that were refused; they count nowhere else.
    pub rejected: u64,
    /// Panics of tasks, of `cancelled` hooks and of `Drop`s that were caught.
    pub task_panics: u64,
    /// Tasks that the executor refused, lost or panicked over; they ran on the worker instead.
    pub executor_rejections: u64,
    /// How often the worker (or the driver) looked for due timeouts.
    pub turns: u64,
    /// Tasks handed over to run; a periodic task counts with every run, one that is moved while it waits in an executor's queue
    /// may count again.
    pub runs: u64,
    /// Entries moved from a coarse level of the hierarchical wheel to a finer one.
    pub cascaded: u64,
    /// How often a caller found the lock of its shard taken and left a request in its inbox.
    pub inbox_handovers: u64,
    /// Among how many shards callers are spread.
    pub shards: u64,
    /// The longest time that a batch of up to 64 tasks held the worker within the last one to two minutes. No single task of
    /// the batch exceeded it. Zero unless tasks run on the worker.
    pub longest_batch: Duration,
    /// How late a worker's turn began after the tick that it was to handle.
    pub tick_lag: LagSnapshot,
    /// How late a task was handed over after its deadline. Never told lower than it was; for tasks that run on the worker higher
    /// by what its batch of up to 64 took.
    pub timeout_lag: LagSnapshot,
    /// How late a task started after its deadline: with an executor that has a queue, how long it waited there as well. For
    /// tasks that run on the worker the same as `timeout_lag`.
    pub start_lag: LagSnapshot,
    /// Handed over to the executor, and not started: they wait in its queue. They are pending.
    pub queued: u64,
    /// Started, and not returned.
    pub running: u64,
    /// `queued` and `running`.
    pub in_flight: u64,
    /// The bound on pending timeouts; `None` for a timer without one.
    pub max_pending: Option<usize>,
}
