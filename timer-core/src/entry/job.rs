//! The kinds of jobs of timeouts: a closure, a periodic closure, a task with a hook, and a waker.

use super::Timeout;
use super::state::Runs;
use crate::config::MissedTickBehavior;
use crate::deadline::Nanos;
use crate::sync::{AtomicU64, Ordering};
use core::task::Waker;
use std::any::type_name;
use std::time::Duration;
use timer_executor::panics;

/// A task that is also told when it will not run.
///
/// A closure is enough in most cases. Implement this trait if a task must also act when it is
/// cancelled.
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
    /// Runs the task at its deadline, at most once, on the thread that the executor has chosen. A
    /// panic is caught and counted.
    fn run(self, timeout: &Timeout);

    /// Tells the task that it will not run. The timer calls this at most once, and instead of
    /// [`run`](Self::run), if the timeout is cancelled, or if `stop` returned the timeout and the
    /// program drops it unrun.
    ///
    /// Runs on the thread that cancels the timeout, before that call returns. It may call any
    /// method of the timer. The default drops the task. `cancel` and `cancel_and_wait` pass a panic
    /// on to their caller. All other calls catch and count it.
    fn cancelled(self, timeout: &Timeout) {
        let _ = timeout;
    }

    /// Returns the name of the task in [`Timer::worst`](crate::Timer::worst) and in warnings. The
    /// default is the name of the type, which is also used if this function panics. The worker
    /// calls the function when a run was late, so it must not block. [`named!`](crate::named) gives a
    /// closure a name.
    fn name() -> &'static str {
        type_name::<Self>()
    }
}

/// A task that runs again and again.
///
/// Closures implement it, and [`named!`](crate::named) gives them another name. Implement this
/// trait for a type whose name says more than that of a closure.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::{PeriodicTask, Timeout, Timer};
///
/// struct Heartbeat(u64);
///
/// impl PeriodicTask for Heartbeat {
///     fn run(&mut self, _: &Timeout) {
///         self.0 += 1;
///         println!("beat {}", self.0);
///     }
/// }
///
/// let (timer, mut driver) = Timer::builder().build_manual()?;
/// let second = Duration::from_secs(1);
/// timer.schedule_task_at_fixed_rate(second, second, Heartbeat(0))?;
/// assert_eq!(driver.advance(5 * second), 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait PeriodicTask: Sized + Send + 'static {
    /// Runs the task at each of its deadlines, on the thread that the executor has chosen. A panic
    /// is caught and counted, and no further run follows.
    fn run(&mut self, timeout: &Timeout);

    /// Returns the name of the task, as [`TimerTask::name`] does.
    fn name() -> &'static str {
        type_name::<Self>()
    }
}

impl<F: FnMut(&Timeout) + Send + 'static> PeriodicTask for F {
    fn run(&mut self, timeout: &Timeout) {
        self(timeout);
    }
}

/// The rule for the next run of a periodic task.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Period {
    /// The next run is due this number of nanoseconds after the last one was due.
    Rate(u64),
    /// The next run is due this number of nanoseconds after the last one ended.
    Delay(u64),
}

impl Period {
    /// Returns the next deadline after a run that was due at `due` and has ended at `now`.
    ///
    /// The wheel makes each run late by up to one `tick`. A run of a fixed rate is missed only if
    /// it is later than that. A period that is shorter than a tick therefore loses no runs. Those
    /// that fall into one tick run one after the other at its end.
    pub(crate) fn next(self, due: Nanos, now: Nanos, tick: Nanos, missed: MissedTickBehavior) -> Nanos {
        let overdue = now.saturating_sub(tick);
        match (self, missed) {
            (Period::Delay(delay), _) => now.saturating_add(delay),
            (Period::Rate(period), MissedTickBehavior::Burst) => due.saturating_add(period),
            (Period::Rate(period), MissedTickBehavior::Delay) if overdue > due => now.saturating_add(period),
            (Period::Rate(period), MissedTickBehavior::Delay) => due.saturating_add(period),
            (Period::Rate(period), MissedTickBehavior::Skip) => {
                let missed = overdue.saturating_sub(due) / period;
                due.saturating_add(missed.saturating_add(1).saturating_mul(period))
            }
        }
    }
}

/// Returns the nanoseconds of a period, at most 584 years. Returns `None` for zero.
pub(crate) fn period_nanos(period: Duration) -> Option<u64> {
    (!period.is_zero()).then(|| u64::try_from(period.as_nanos()).unwrap_or(u64::MAX))
}

/// The content of a timeout.
pub(crate) trait Job: Sized + Send + 'static {
    /// Decides how a run changes the state of the timeout.
    const RUNS: Runs;

    /// The part of the job that all threads share. It is not dropped.
    type Shared;

    /// Returns the shared part of a new job.
    fn shared(&self) -> Self::Shared;

    /// Returns the period in nanoseconds if the job runs again.
    fn period(_: &Self::Shared) -> Option<&AtomicU64> {
        None
    }

    /// Returns the name of the user's task.
    fn name() -> &'static str;

    /// Runs the job. Returns it with its period if it runs again.
    fn run(self, timeout: &Timeout) -> Option<(Self, Period)>;

    /// Ends the job, which will not run.
    fn cancelled(self, timeout: &Timeout);
}

/// A closure that runs once.
pub(crate) struct Closure<F>(pub(crate) F);

impl<F: FnOnce(&Timeout) + Send + 'static> Job for Closure<F> {
    const RUNS: Runs = Runs::Once;
    type Shared = ();

    fn shared(&self) {}

    fn name() -> &'static str {
        type_name::<F>()
    }

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
    type Shared = ();

    fn shared(&self) {}

    fn name() -> &'static str {
        panics::catch(T::name).unwrap_or_else(|_| type_name::<T>())
    }

    fn run(self, timeout: &Timeout) -> Option<(Self, Period)> {
        self.0.run(timeout);
        None
    }

    fn cancelled(self, timeout: &Timeout) {
        self.0.cancelled(timeout);
    }
}

/// A [`PeriodicTask`].
pub(crate) struct Periodic<T> {
    pub(crate) task: T,
    /// The kind of the period, and its first length.
    pub(crate) period: Period,
}

impl<T: PeriodicTask> Job for Periodic<T> {
    const RUNS: Runs = Runs::Again;
    type Shared = AtomicU64;

    fn shared(&self) -> AtomicU64 {
        let (Period::Rate(nanos) | Period::Delay(nanos)) = self.period;
        AtomicU64::new(nanos)
    }

    fn period(shared: &AtomicU64) -> Option<&AtomicU64> {
        Some(shared)
    }

    fn name() -> &'static str {
        panics::catch(T::name).unwrap_or_else(|_| type_name::<T>())
    }

    fn run(mut self, timeout: &Timeout) -> Option<(Self, Period)> {
        self.task.run(timeout);
        // ORDERING: Relaxed, because the period is the only value that its writer passes on.
        let nanos = timeout.period()?.load(Ordering::Relaxed);
        let period = match self.period {
            Period::Rate(_) => Period::Rate(nanos),
            Period::Delay(_) => Period::Delay(nanos),
        };
        Some((self, period))
    }

    fn cancelled(self, _: &Timeout) {}
}

/// The waker of a future's task.
pub(crate) struct Wakeup(pub(crate) Waker);

impl Job for Wakeup {
    const RUNS: Runs = Runs::Wake;
    type Shared = ();

    fn shared(&self) {}

    fn name() -> &'static str {
        "the waker of a future"
    }

    fn run(self, _: &Timeout) -> Option<(Self, Period)> {
        self.0.wake();
        None
    }

    /// Wakes the task as well, because the future reports that the timer was stopped.
    fn cancelled(self, _: &Timeout) {
        self.0.wake();
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;

    // Guards against a wrong time of the next run after missed runs.
    #[test]
    fn missed_runs_are_skipped_and_the_phase_is_kept() {
        for period in [1u64, 2, 3, 5, 7, 11, 13, 1_000_003] {
            for late in [0u64, 1, 2, 6, 7, 50, 1_000_003, 1_000_004, 123_456_789] {
                let due = 1_000;
                let next = Period::Rate(period).next(due, due + late, 0, MissedTickBehavior::Skip);
                assert_eq!((next - due) % period, 0, "phase of {period} after {late}");
                assert!(next > due + late && next <= due + late + period);
                assert_eq!(Period::Rate(period).next(due, due + late, 0, MissedTickBehavior::Burst), due + period);
                assert_eq!(
                    Period::Rate(period).next(due, due + late, 0, MissedTickBehavior::Delay),
                    due + late + period
                );
            }
        }
        assert_eq!(Period::Delay(10).next(1_000, 1_500, 100, MissedTickBehavior::Skip), 1_510);
    }

    /// Returns the number of runs within `span` on a wheel with ticks of a millisecond whose turns
    /// begin `late`.
    fn runs_within(span: Nanos, period: Nanos, late: Nanos, missed: MissedTickBehavior) -> u64 {
        const TICK: Nanos = 1_000_000;
        let (mut runs, mut due, mut now) = (0, period, 0);
        while due <= span {
            now = now.max(due.next_multiple_of(TICK) + late);
            due = Period::Rate(period).next(due, now, TICK, missed);
            runs += 1;
        }
        runs
    }

    #[test]
    fn a_period_below_a_tick_loses_no_runs() {
        for missed in [MissedTickBehavior::Skip, MissedTickBehavior::Burst, MissedTickBehavior::Delay] {
            for (period, runs) in [(500_000, 2_000), (100_000, 10_000), (333_333, 3_000), (1_500_000, 666)] {
                assert_eq!(runs_within(1_000_000_000, period, 0, missed), runs, "{missed:?} at {period}");
            }
        }
        let late = |missed| runs_within(1_000_000_000, 500_000, 3_000_000, missed);
        assert_eq!(late(MissedTickBehavior::Burst), 2_000);
        assert!(late(MissedTickBehavior::Skip) < 2_000, "turns that are late by themselves miss runs");
    }

    // Guards against a period of zero, and tokio-rs/tokio#3551, an overflow by the longest period.
    #[test]
    fn a_period_is_never_zero_and_never_overflows() {
        assert_eq!(period_nanos(Duration::ZERO), None);
        assert_eq!(period_nanos(Duration::MAX), Some(u64::MAX));
        let next = Period::Rate(u64::MAX).next(Nanos::MAX - 1, Nanos::MAX, 0, MissedTickBehavior::Skip);
        assert_eq!(next, Nanos::MAX);
    }
}
