//! The counts of a timer: as its parts write them, and as a reader gets them.

use crate::lag::{LagHistogram, LagSnapshot};
use crate::sync::{AtomicU64, Ordering};
use crate::tally::Tally;
use std::time::Duration;

/// What a whole timer counts; the shards count what was scheduled and cancelled.
///
/// Ground rule: `add` of a [`Tally`], and the histograms, belong to the owner of the turn.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) expired: Tally,
    pub(crate) runs: Tally,
    pub(crate) rejected: Tally,
    pub(crate) task_panics: Tally,
    pub(crate) executor_rejections: Tally,
    pub(crate) turns: Tally,
    pub(crate) tick_lag: LagHistogram,
    pub(crate) timeout_lag: LagHistogram,
    longest_task: AtomicU64,
}

impl Counters {
    /// Notes how long a task has held the worker.
    #[inline]
    pub(crate) fn task_took(&self, nanos: u64) {
        // ORDERING: Relaxed, one writer, a figure for people.
        if nanos > self.longest_task.load(Ordering::Relaxed) {
            self.longest_task.store(nanos, Ordering::Relaxed);
        }
    }

    /// The longest that a task has held the worker, in nanoseconds.
    pub(crate) fn longest_task(&self) -> u64 {
        // ORDERING: Relaxed, as above.
        self.longest_task.load(Ordering::Relaxed)
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
    /// Ended by running (handed over to the executor), or, for a periodic task, by a panic of it.
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
    /// Tasks handed over to run; a periodic task counts with every run.
    pub runs: u64,
    /// Entries moved from a coarse level of the hierarchical wheel to a finer one.
    pub cascaded: u64,
    /// How often a caller met a taken latch and left a note in the shard's inbox.
    pub inbox_handovers: u64,
    /// Among how many shards callers are spread.
    pub shards: u64,
    /// The longest that one task has held the worker. Zero unless the executor runs tasks on it.
    pub longest_task: Duration,
    /// How late a worker's turn began after the tick that it was to handle.
    pub tick_lag: LagSnapshot,
    /// How late a task was handed over after its deadline.
    pub timeout_lag: LagSnapshot,
}
