//! The period of a periodic task, and the rule for its next run.

use crate::config::MissedTickBehavior;
use crate::deadline::Nanos;
use std::time::Duration;

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
        let mut runs = 0;
        let mut due = period;
        let mut now = 0;
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
