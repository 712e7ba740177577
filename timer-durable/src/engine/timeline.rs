//! The timeline of a keeper, which has the cause of each moment on the store's clock.
//!
//! The keeper extends the timeline at the ends of its sleeps and of each part of its turns, so
//! that the timeline has no gaps. An attempt that begins is late by an interval at the end of the
//! timeline, and therefore its parts add up to that interval.

use crate::lateness::{DurableLateCause, DurableLateness};
use crate::store::Micros;
use crate::time::between;
use timer_core::lateness::{self, QuotaWatch};

/// An interval of any length is split to about 6 %. There are up to about 1,500 segments.
const RESOLUTION: u64 = 16;

pub(super) struct Timeline {
    begin: Micros,
    /// In nanoseconds since `begin`.
    causes: lateness::Timeline<DurableLateCause>,
    quota: QuotaWatch,
}

impl Timeline {
    /// Creates an empty timeline. `quota` finds nothing on virtual time.
    pub(super) fn new(now: Micros, quota: QuotaWatch) -> Self {
        Self { begin: now, causes: lateness::Timeline::new(DurableLateCause::System, RESOLUTION), quota }
    }

    /// Gives the CPU quota its part of the time from `due` to the end of the timeline.
    pub(super) fn name_quota(&mut self, due: Micros) {
        let due = self.nanos(due);
        self.quota.name(&mut self.causes, due, DurableLateCause::System, DurableLateCause::Quota);
    }

    /// Extends the timeline to `now`.
    pub(super) fn extend(&mut self, now: Micros, cause: DurableLateCause) {
        self.causes.extend(self.nanos(now), cause, None);
    }

    /// Splits the time from `from` to `until`, which is not behind the end of the timeline. The
    /// time before its beginning has the cause [`DurableLateCause::Lease`].
    pub(super) fn split(&self, from: Micros, until: Micros) -> DurableLateness {
        let mut split = self.causes.split(self.nanos(from), self.nanos(until));
        split.add(DurableLateCause::Lease, between(from, until.min(self.begin)));
        split
    }

    fn nanos(&self, at: Micros) -> u64 {
        u64::try_from(between(self.begin, at).as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_before_the_beginning_is_the_lease() {
        let mut timeline = Timeline::new(100, QuotaWatch::default());
        let split = |timeline: &Timeline, from, until| {
            let split = timeline.split(from, until);
            DurableLateCause::ALL.map(|cause| split.part(cause).as_micros()).to_vec()
        };
        assert_eq!(split(&timeline, 70, 90), [20, 0, 0, 0, 0, 0, 0, 0, 0]);
        timeline.extend(150, DurableLateCause::Places);
        timeline.extend(160, DurableLateCause::Store);
        timeline.extend(160, DurableLateCause::System);
        assert_eq!(split(&timeline, 70, 160), [30, 0, 0, 0, 50, 10, 0, 0, 0]);
        assert_eq!(split(&timeline, 110, 120), [0, 0, 0, 0, 10, 0, 0, 0, 0]);
    }
}
