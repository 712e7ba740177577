//! The part of a lateness that a CPU quota has caused.

use super::{Cause, Timeline};
use crate::deadline::Nanos;
use crate::sync::Cgroup;

/// The part of the system in a lateness above which the quota is asked, a tenth of the usual period
/// of a quota. A process is stopped for at most one period at a time, less its share of it.
const LEAST: Nanos = 10_000_000;

/// The time between two looks at the quota.
const PAUSE: Nanos = 1_000_000_000;

/// Finds out how much of a lateness is due to the CPU quota of the process, such as that of a
/// container.
///
/// A worker that is stopped by the quota cannot tell this from a busy CPU. On Linux, the watch
/// reads for how long the control group of the process has been throttled. It reads at most once a
/// second, and only after a long lateness. The share that a reading has found counts until the next
/// one. A quota of a group above that of the process is not seen. Other systems have no quota.
///
/// # Examples
///
/// See [`Timeline`] for the causes. A worker names the time before it splits a lateness:
///
/// ```
/// use timer_core::lateness::{QuotaWatch, Timeline};
/// use timer_core::LateCause;
///
/// let mut quota = QuotaWatch::of_this_process();
/// let mut timeline = Timeline::new(LateCause::System, 4);
/// timeline.extend(300_000_000, LateCause::System, None);
/// let due = 100_000_000;
/// quota.name(&mut timeline, due, LateCause::System, LateCause::Quota);
/// let late = timeline.split(due, timeline.end());
/// assert_eq!(late.part(LateCause::System) + late.part(LateCause::Quota), late.total());
/// ```
#[derive(Debug, Default)]
pub struct QuotaWatch {
    cgroup: Option<Cgroup>,
    /// The time of the last reading.
    read_at: Nanos,
    /// The throttled time at the last reading.
    throttled: Nanos,
    /// The throttled time that the last reading has found, and the part of the system in the
    /// lateness for which it was made.
    found: (Nanos, Nanos),
    /// The end of the time that has its causes already.
    named: Nanos,
}

impl QuotaWatch {
    /// Creates a watch of the quota of this process. Throttling before this call is not counted.
    ///
    /// [`default`](Self::default) creates a watch that finds nothing, for virtual time.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self::of(Cgroup::of_this_process())
    }

    fn of(cgroup: Option<Cgroup>) -> Self {
        let throttled = cgroup.as_ref().and_then(Cgroup::throttled).unwrap_or(0);
        Self { cgroup, throttled, ..Self::default() }
    }

    /// Moves the time for which the quota stopped the process from the cause `system` to `quota`,
    /// between `since`, in nanoseconds on the clock of the timeline, and the end of the timeline.
    /// Does nothing if `system` has at most 10 ms.
    #[inline]
    pub fn name<C: Cause>(&mut self, timeline: &mut Timeline<C>, since: u64, system: C, quota: C) {
        let since = since.max(self.named);
        if timeline.end().saturating_sub(since) > LEAST && self.cgroup.is_some() {
            self.name_late(timeline, since, system, quota);
        }
    }

    #[cold]
    fn name_late<C: Cause>(&mut self, timeline: &mut Timeline<C>, since: Nanos, system: C, quota: C) {
        let now = timeline.end();
        let part = timeline.split(since, now).part_nanos(system);
        if part <= LEAST {
            return;
        }
        self.named = now;
        if self.read_at == 0 || now.saturating_sub(self.read_at) >= PAUSE {
            let throttled = self.cgroup.as_ref().and_then(Cgroup::throttled).unwrap_or(self.throttled);
            self.found = (throttled.saturating_sub(self.throttled).min(part), part);
            self.throttled = throttled;
            self.read_at = now;
        }
        let (found, of) = self.found;
        let share = u128::from(part) * u128::from(found) / u128::from(of);
        timeline.reassign(since, system, quota, u64::try_from(share).unwrap_or(u64::MAX));
    }
}

#[cfg(all(test, not(timer_loom)))]
pub(crate) mod tests;
