//! What a timeout runs: a task with a hook, a closure, or a closure again and again.

use super::Timeout;
use super::state::Runs;
use crate::config::MissedRuns;
use crate::time::Nanos;
use core::task::Waker;
use std::time::Duration;

/// A task that is told when it will not run.
///
/// Closures do for most cases; implement this where a cancelled task has to answer too.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use timer_core::{Timeout, Timer, TimerTask};
///
/// struct Reply(mpsc::Sender<&'static str>);
///
/// impl TimerTask for Reply {
///     fn run(self, _: &Timeout) {
///         let _ = self.0.send("timed out");
///     }
///     fn cancelled(self, _: &Timeout) {
///         let _ = self.0.send("answered in time");
///     }
/// }
///
/// let (sender, replies) = mpsc::channel();
/// let timer = Timer::new();
/// let timeout = timer.new_timeout_task(Duration::from_secs(3600), Reply(sender))?;
/// assert!(timeout.cancel());
/// assert_eq!(replies.recv()?, "answered in time");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "Runnable")]
pub trait TimerTask: Sized + Send + 'static {
    /// The deadline has come. Called at most once, on the thread that the executor chose. A panic is caught and counted.
    fn run(self, timeout: &Timeout);

    /// The timeout was cancelled, or handed back by `stop` and then dropped: it will not run. Called at most once, instead
    /// of [`run`](Self::run), on the thread that cancelled it and before that call returns; it may call any method of the
    /// timer. The default drops the task. On a caller's thread a panic goes to the caller of `cancel`.
    fn cancelled(self, timeout: &Timeout) {
        let _ = timeout;
    }
}

/// When a periodic task runs next.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Period {
    /// So many nanoseconds after the last run was due.
    Rate(u64),
    /// So many nanoseconds after the last run ended.
    Delay(u64),
}

impl Period {
    /// When to run again, for a run that was due at `due` and has ended at `now`.
    pub(crate) fn next(self, due: Nanos, now: Nanos, missed: MissedRuns) -> Nanos {
        match (self, missed) {
            (Period::Delay(delay), _) => now.saturating_add(delay),
            (Period::Rate(period), MissedRuns::Burst) => due.saturating_add(period),
            (Period::Rate(period), MissedRuns::Delay) => now.max(due).saturating_add(period),
            (Period::Rate(period), MissedRuns::Skip) => {
                let missed = now.saturating_sub(due) / period;
                due.saturating_add(missed.saturating_add(1).saturating_mul(period))
            }
        }
    }
}

/// Nanoseconds of a period; `None` for zero. Longer than 584 years is 584 years.
pub(crate) fn period_nanos(period: Duration) -> Option<u64> {
    (!period.is_zero()).then(|| u64::try_from(period.as_nanos()).unwrap_or(u64::MAX))
}

/// What a timeout holds.
pub(crate) trait Job: Sized + Send + 'static {
    /// Whether its timeout ends when it starts to run.
    const RUNS: Runs;

    /// Runs; what comes back runs again.
    fn run(self, timeout: &Timeout) -> Option<(Self, Period)>;

    /// It will not run.
    fn cancelled(self, timeout: &Timeout);
}

/// A closure that runs once.
pub(crate) struct Closure<F>(pub(crate) F);

impl<F: FnOnce(&Timeout) + Send + 'static> Job for Closure<F> {
    const RUNS: Runs = Runs::Once;

    fn run(self, timeout: &Timeout) -> Option<(Self, Period)> {
        (self.0)(timeout);
        None
    }

    fn cancelled(self, _: &Timeout) {}
}

/// A [`TimerTask`].
pub(crate) struct Hooked<T>(pub(crate) T);

impl<T: TimerTask> Job for Hooked<T> {
    const RUNS: Runs = Runs::Once;

    fn run(self, timeout: &Timeout) -> Option<(Self, Period)> {
        self.0.run(timeout);
        None
    }

    fn cancelled(self, timeout: &Timeout) {
        self.0.cancelled(timeout);
    }
}

/// A closure that runs again and again.
pub(crate) struct Periodic<F> {
    pub(crate) task: F,
    pub(crate) period: Period,
}

impl<F: FnMut(&Timeout) + Send + 'static> Job for Periodic<F> {
    const RUNS: Runs = Runs::Again;

    fn run(mut self, timeout: &Timeout) -> Option<(Self, Period)> {
        (self.task)(timeout);
        let period = self.period;
        Some((self, period))
    }

    fn cancelled(self, _: &Timeout) {}
}

/// What a future leaves: the waker of its task.
pub(crate) struct Wakeup(pub(crate) Waker);

impl Job for Wakeup {
    const RUNS: Runs = Runs::Wake;

    fn run(self, _: &Timeout) -> Option<(Self, Period)> {
        self.0.wake();
        None
    }

    /// The timer was stopped: the future says so.
    fn cancelled(self, _: &Timeout) {
        self.0.wake();
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;

    // B62: the next time of an interval after missed runs.
    #[test]
    fn missed_runs_are_skipped_and_the_phase_is_kept() {
        for period in [1u64, 2, 3, 5, 7, 11, 13, 1_000_003] {
            for late in [0u64, 1, 2, 6, 7, 50, 1_000_003, 1_000_004, 123_456_789] {
                let due = 1_000;
                let next = Period::Rate(period).next(due, due + late, MissedRuns::Skip);
                assert_eq!((next - due) % period, 0, "phase of {period} after {late}");
                assert!(next > due + late && next <= due + late + period);
                assert_eq!(Period::Rate(period).next(due, due + late, MissedRuns::Burst), due + period);
                assert_eq!(Period::Rate(period).next(due, due + late, MissedRuns::Delay), due + late + period);
            }
        }
        assert_eq!(Period::Delay(10).next(1_000, 1_500, MissedRuns::Skip), 1_510);
    }

    // B92, B88: a period of zero; the longest period.
    #[test]
    fn a_period_is_never_zero_and_never_overflows() {
        assert_eq!(period_nanos(Duration::ZERO), None);
        assert_eq!(period_nanos(Duration::MAX), Some(u64::MAX));
        let next = Period::Rate(u64::MAX).next(Nanos::MAX - 1, Nanos::MAX, MissedRuns::Skip);
        assert_eq!(next, Nanos::MAX);
    }
}
