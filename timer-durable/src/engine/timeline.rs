//! The timeline of a keeper, which has the cause of each moment on the store's clock.
//!
//! The keeper extends the timeline at the ends of its sleeps and of each part of its turns, so
//! that the timeline has no gaps. An attempt that begins is late by an interval at the end of the
//! timeline, and therefore its parts add up to that interval.
//!
//! The timeline is a list of marks with the time that each cause has had up to the mark. Between
//! two marks it is taken as even. The marks of a moment are the closer together the younger it is.

use crate::lateness::{DurableLateCause, DurableLateness};
use crate::store::Micros;
use std::time::Duration;

/// Two neighbors are joined if they are not longer than this part of their age.
const RESOLUTION: Micros = 16;

/// The least number of marks at which neighbors are joined.
const MIN_MARKS: usize = 64;

#[derive(Clone, Copy)]
struct Mark {
    at: Micros,
    /// The time that each cause has had up to the mark.
    spent: DurableLateness,
    /// The cause since the mark before.
    cause: DurableLateCause,
}

pub(super) struct Timeline {
    /// The first mark is the beginning, which stays.
    marks: Vec<Mark>,
    /// The number of marks beyond which neighbors are joined. It grows with the logarithm of the
    /// length, up to about 1,500.
    limit: usize,
}

impl Timeline {
    pub(super) fn new(now: Micros) -> Self {
        let mark = Mark { at: now, spent: DurableLateness::default(), cause: DurableLateCause::Lease };
        Self { marks: vec![mark], limit: MIN_MARKS }
    }

    /// Extends the timeline to `now`.
    pub(super) fn extend(&mut self, now: Micros, cause: DurableLateCause) {
        let is_first = self.marks.len() == 1;
        let Some(last) = self.marks.last_mut().filter(|last| last.at < now) else { return };
        let mut mark = Mark { at: now, cause, ..*last };
        mark.spent.add_micros(cause, now - last.at);
        if last.cause == cause && !is_first {
            *last = mark;
            return;
        }
        self.marks.push(mark);
        if self.marks.len() > self.limit {
            self.join_neighbors();
        }
    }

    fn join_neighbors(&mut self) {
        let (Some(end), mut kept) = (self.marks.last().map(|last| last.at), 1) else { return };
        for n in 1..self.marks.len() {
            let is_fine = |next: &Mark| next.at - self.marks[kept - 1].at <= (end - next.at) / RESOLUTION;
            if !self.marks.get(n + 1).is_some_and(is_fine) {
                self.marks[kept] = self.marks[n];
                kept += 1;
            }
        }
        self.marks.truncate(kept);
        self.limit = MIN_MARKS.max(2 * kept);
    }

    /// Splits the time from `from` to `until`, which is not behind the end of the timeline. The
    /// time before its beginning has the cause [`DurableLateCause::Lease`].
    pub(super) fn split(&self, from: Micros, until: Micros) -> DurableLateness {
        if from >= until {
            return DurableLateness::default();
        }
        let begin = self.marks[0].at;
        let mut split = self.spent(until).since(&self.spent(from));
        split.add_micros(DurableLateCause::Lease, until.min(begin).saturating_sub(from.min(begin)));
        // The shares of joined intervals were rounded.
        split.fit(Duration::from_micros(until.saturating_sub(from).unsigned_abs()));
        split
    }

    /// Returns the time that each cause has had from the beginning up to `at`.
    fn spent(&self, at: Micros) -> DurableLateness {
        if let Some(last) = self.marks.last().filter(|last| last.at <= at) {
            return last.spent;
        }
        let next = self.marks.partition_point(|mark| mark.at < at);
        match (next.checked_sub(1).and_then(|before| self.marks.get(before)), self.marks.get(next)) {
            (Some(before), Some(next)) => {
                let mut spent = next.spent.since(&before.spent);
                spent = spent.share(at.abs_diff(before.at), next.at.abs_diff(before.at));
                spent.add_all(&before.spent);
                spent
            }
            _ => DurableLateness::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAUSES: [DurableLateCause; 3] = [DurableLateCause::System, DurableLateCause::Store, DurableLateCause::Places];

    #[test]
    fn the_parts_of_any_interval_add_up() {
        fastrand::seed(7);
        let mut timeline = Timeline::new(1_000);
        let (mut now, mut segments) = (1_000, Vec::new());
        for n in 0..200_000 {
            let (cause, length) = (CAUSES[n % 3], fastrand::i64(1..100));
            segments.push((now, now + length, cause));
            now += length;
            timeline.extend(now, cause);
        }
        assert!(timeline.marks.len() < 1_500, "{} marks", timeline.marks.len());
        for _ in 0..1_000 {
            let from = now - fastrand::i64(0..1 << fastrand::u32(1..23));
            let split = timeline.split(from, now);
            assert_eq!(split.total(), Duration::from_micros((now - from).unsigned_abs()));
            for cause in CAUSES {
                let within = segments.iter().rev().take_while(|(_, end, _)| *end > from).filter(|part| part.2 == cause);
                let exact: i64 = within.map(|(begin, end, _)| end - (*begin).max(from)).sum();
                let off = split.part(cause).as_secs_f64() * 1e6 - exact as f64;
                assert!(off.abs() <= (now - from) as f64 / 10.0 + 1.0, "{cause} is off by {off} of {}", now - from);
            }
        }
    }

    #[test]
    fn the_time_before_the_beginning_is_the_lease() {
        let mut timeline = Timeline::new(100);
        let split = |timeline: &Timeline, from, until| {
            let split = timeline.split(from, until);
            DurableLateCause::ALL.map(|cause| split.part(cause).as_micros()).to_vec()
        };
        assert_eq!(split(&timeline, 70, 90), [20, 0, 0, 0, 0, 0, 0, 0]);
        timeline.extend(150, DurableLateCause::Places);
        timeline.extend(160, DurableLateCause::Store);
        timeline.extend(160, DurableLateCause::System);
        assert_eq!(split(&timeline, 70, 160), [30, 0, 0, 0, 50, 10, 0, 0]);
        assert_eq!(split(&timeline, 110, 120), [0, 0, 0, 0, 10, 0, 0, 0]);
    }
}
