//! The timeline of a worker.

use super::{Cause, Lateness};
use crate::deadline::Nanos;

/// The least number of marks at which segments are joined.
const MIN_MARKS: usize = 64;

#[cfg(test)]
thread_local! {
    /// The number of single moments that were split on this thread.
    pub(crate) static SPLITS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The end of a segment of a timeline, which is a time with one cause or several joined ones.
#[derive(Clone, Copy, Debug)]
struct Mark<C: Cause> {
    at: Nanos,
    /// The cause of the segment, or of its longest part.
    cause: C,
    /// The name of the work in this part, if it is known.
    name: Option<&'static str>,
    /// The time that each cause has had from the beginning of the timeline up to the mark.
    spent: Lateness<C>,
}

/// The cause of each moment of a worker, from time 0 to the last reading of its clock, in
/// nanoseconds.
///
/// The worker extends the timeline by its readings of the clock, so that the timeline has no gaps.
/// The lateness of a run is an interval at the end of the timeline, and therefore its parts add up.
///
/// Recent segments are exact. Old neighbors are joined when both together are not longer than a
/// part of their age, and such a segment is taken as even. A timeline that was built with a
/// resolution of 16 therefore splits an interval of any length to about 6 %, and has about 16 times
/// as many segments as the logarithm of its length.
#[derive(Clone, Debug)]
pub struct Timeline<C: Cause> {
    /// The beginning, and the ends of all segments but the last one.
    marks: Vec<Mark<C>>,
    /// The end of the last segment.
    end: Mark<C>,
    resolution: u64,
    /// The number of marks at which neighbors are joined.
    limit: usize,
}

impl<C: Cause> Timeline<C> {
    /// Creates an empty timeline, whose first segment is expected to have the cause `first`. Two
    /// segments are joined when they are not longer than `1 / resolution` of their age.
    pub fn new(first: C, resolution: u64) -> Self {
        let end = Mark { at: 0, cause: first, name: None, spent: Lateness::default() };
        let mut marks = Vec::with_capacity(MIN_MARKS);
        marks.push(end);
        Self { marks, end, resolution: resolution.max(1), limit: MIN_MARKS }
    }

    /// Returns the end of the timeline.
    #[inline]
    pub fn end(&self) -> u64 {
        self.end.at
    }

    /// Extends the timeline to `now` by a time with this cause, and with the name of the work in it
    /// if that is known. Does nothing if the timeline reaches `now` already.
    #[inline]
    pub fn extend(&mut self, now: u64, cause: C, name: Option<&'static str>) {
        if now <= self.end.at {
            return;
        }
        if self.end.cause != cause || self.end.name != name {
            if self.marks.len() >= self.limit {
                self.join_neighbors();
            }
            self.marks.push(self.end);
            self.end.cause = cause;
            self.end.name = name;
        }
        self.end.spent.add_nanos(cause, now - self.end.at);
        self.end.at = now;
    }

    #[cold]
    fn join_neighbors(&mut self) {
        let mut kept = 1;
        for at in 1..self.marks.len() {
            let begin = self.marks[kept - 1].at;
            let mark = self.marks[at];
            match self.marks.get_mut(at + 1) {
                Some(next) if next.at - begin <= (self.end.at - next.at) / self.resolution => {
                    if mark.at - begin > next.at - mark.at {
                        next.cause = mark.cause;
                        next.name = mark.name;
                    }
                }
                _ => {
                    self.marks[kept] = mark;
                    kept += 1;
                }
            }
        }
        self.marks.truncate(kept);
        self.limit = MIN_MARKS.max(2 * kept);
    }

    /// Moves up to `time` of the part that `from` has since `since` to another cause, the latest
    /// part first.
    #[cold]
    pub(super) fn reassign(&mut self, since: Nanos, from: C, to: C, time: Nanos) {
        if time == 0 {
            return;
        }
        let mut left = time;
        let mut begin = since;
        let mut end = &self.end;
        for mark in self.marks.iter().rev() {
            let part = end.spent.part_nanos(from) - mark.spent.part_nanos(from);
            if part >= left {
                let length = u128::from(end.at - mark.at) * u128::from(left) / u128::from(part.max(1));
                begin = since.max(end.at - u64::try_from(length).unwrap_or(0));
                break;
            }
            left -= part;
            end = mark;
        }
        let first = self.divide(begin);
        let before = self.marks.get(first).map_or(0, |mark| mark.spent.part_nanos(from));
        for mark in self.marks.iter_mut().skip(first + 1).chain([&mut self.end]) {
            let part = mark.spent.part_nanos(from) - before;
            mark.spent.move_nanos(from, to, part);
            if mark.cause == from {
                mark.cause = to;
            }
        }
    }

    /// Returns the index of the mark at `at`, which is added in the middle of a segment.
    fn divide(&mut self, at: Nanos) -> usize {
        let next = self.marks.partition_point(|mark| mark.at <= at);
        let end = self.marks.get(next).unwrap_or(&self.end);
        let Some(begin) = next.checked_sub(1).and_then(|index| self.marks.get(index)) else { return 0 };
        if begin.at < at && at < end.at {
            let mut mark = Mark { at, spent: begin.spent, ..*end };
            mark.spent.add_all(&end.spent.since(&begin.spent).share(at - begin.at, end.at - begin.at));
            self.marks.insert(next, mark);
            return next;
        }
        next - 1
    }

    /// Splits the time from `from` to `until`. The time behind the end of the timeline has no cause
    /// and is left out.
    pub fn split(&self, from: u64, until: u64) -> Lateness<C> {
        #[cfg(test)]
        SPLITS.set(SPLITS.get() + 1);
        let until = until.min(self.end.at);
        let from = from.min(until);
        let to_end = |moment| self.split_all([(moment, 1)].into_iter());
        let split = to_end(from).since(&to_end(until));
        // The shares of a joined segment were rounded.
        if split.total_nanos() == until - from { split } else { split.share(until - from, split.total_nanos()) }
    }

    /// Splits the times from some moments to the end of the timeline, each of which counts several
    /// times. Returns the sums of the parts, which add up exactly.
    #[inline]
    pub(crate) fn split_all(&self, moments: impl Iterator<Item = (Nanos, u64)>) -> Lateness<C> {
        let mut parts = Lateness::default();
        let mut begin = &self.end;
        let mut end = &self.end;
        let mut count = 0;
        let mut rest: Nanos = 0;
        for (moment, times) in moments {
            if !(begin.at..end.at).contains(&moment) {
                self.add_segment(&mut parts, (begin, end), std::mem::take(&mut count), std::mem::take(&mut rest));
                let next = self.marks.partition_point(|mark| mark.at <= moment);
                begin = self.marks.get(next.saturating_sub(1)).unwrap_or(&self.end);
                end = self.marks.get(next).unwrap_or(&self.end);
            }
            count += times;
            rest = end.at.saturating_sub(moment).saturating_mul(times).saturating_add(rest);
        }
        self.add_segment(&mut parts, (begin, end), count, rest);
        parts
    }

    /// Adds the times from `count` moments in a segment to the end of the timeline, of which `rest`
    /// is the sum of their times in the segment.
    #[inline]
    fn add_segment(&self, parts: &mut Lateness<C>, (begin, end): (&Mark<C>, &Mark<C>), count: u64, rest: Nanos) {
        if count == 0 {
            return;
        }
        let length = end.at - begin.at;
        if end.spent.part_nanos(end.cause) - begin.spent.part_nanos(end.cause) == length {
            parts.add_nanos(end.cause, rest);
        } else {
            parts.add_all(&end.spent.since(&begin.spent).share(rest, length));
        }
        let behind = self.end.spent.combined(&end.spent, |now, then| (now - then).saturating_mul(count));
        *parts = parts.combined(&behind, u64::saturating_add);
    }

    /// Splits the time from `begin` to the end of the timeline. If `work` had a tenth of it,
    /// returns the name of the longest piece of work as well.
    pub(crate) fn explain(&self, begin: Nanos, work: C) -> (Lateness<C>, Option<&'static str>) {
        let split = self.split(begin, self.end.at);
        let mut longest = 0;
        let mut name = None;
        let first = self.marks.partition_point(|mark| mark.at <= begin).saturating_sub(1);
        let ends = self.marks.iter().skip(first + 1).chain([&self.end]);
        for (mark, end) in self.marks.iter().skip(first).zip(ends) {
            let worked = end.spent.part_nanos(work) - mark.spent.part_nanos(work);
            let worked = worked.min(end.at.saturating_sub(mark.at.max(begin)));
            if end.cause == work && worked > longest {
                longest = worked;
                name = end.name;
            }
        }
        (split, name.filter(|_| 10 * split.part_nanos(work) >= split.total_nanos()))
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;
    use crate::counters::LateCause::{self, Executor, Lock, System};
    use std::time::Duration;

    const CAUSES: [LateCause; 3] = [System, Lock, Executor];

    /// Returns a timeline of short segments of random lengths, and these segments.
    fn random(resolution: u64) -> (Timeline<LateCause>, Vec<(Nanos, Nanos, LateCause)>) {
        fastrand::seed(7);
        let (mut timeline, mut now, mut segments) = (Timeline::new(System, resolution), 0, Vec::new());
        for n in 0..200_000 {
            let (cause, length) = (CAUSES[n % 3], fastrand::u64(1..100));
            segments.push((now, now + length, cause));
            now += length;
            timeline.extend(now, cause, None);
        }
        (timeline, segments)
    }

    #[test]
    fn the_parts_of_any_interval_add_up() {
        for (resolution, marks) in [(16, 1_000), (4, 300)] {
            let (timeline, segments) = random(resolution);
            let now = timeline.end();
            assert!(timeline.marks.len() < marks, "{} marks", timeline.marks.len());
            for _ in 0..1_000 {
                let from = now - fastrand::u64(0..1 << fastrand::u32(1..23));
                let split = timeline.split(from, now);
                assert_eq!(split.total_nanos(), now - from);
                for cause in CAUSES {
                    let within = segments.iter().rev().take_while(|(_, end, _)| *end > from);
                    let within = within.filter(|segment| segment.2 == cause);
                    let exact: u64 = within.map(|(begin, end, _)| end - (*begin).max(from)).sum();
                    let off = split.part_nanos(cause).abs_diff(exact) as f64;
                    let most = (now - from) as f64 * 1.6 / resolution as f64 + 1.0;
                    assert!(off <= most, "{cause} is off by {off} of {}", now - from);
                }
                let until = fastrand::u64(from..=now);
                assert_eq!(timeline.split(from, until).total_nanos(), until - from);
            }
        }
    }

    #[test]
    fn many_moments_are_split_as_one_by_one() {
        let (timeline, _) = random(4);
        let moments: Vec<Nanos> = (0..1_000).map(|_| fastrand::u64(0..=timeline.end())).collect();
        let all = timeline.split_all(moments.iter().map(|moment| (*moment, 3)));
        assert_eq!(all.total_nanos(), moments.iter().map(|moment| 3 * (timeline.end() - moment)).sum());
        for cause in CAUSES {
            let parts = moments.iter().map(|moment| 3 * timeline.split(*moment, timeline.end()).part_nanos(cause));
            assert!(all.part_nanos(cause).abs_diff(parts.sum()) < 10_000, "each was rounded");
        }
        assert_eq!(timeline.split_all(std::iter::empty()), Lateness::default());
    }

    #[test]
    fn a_joined_segment_has_the_name_of_its_longer_part() {
        let mut timeline = Timeline::new(System, 1);
        timeline.extend(1_000, System, None);
        timeline.extend(1_300, LateCause::Tasks, Some("long"));
        timeline.extend(1_400, LateCause::Tasks, Some("short"));
        (0..100).for_each(|n| timeline.extend(2_000 + n, CAUSES[n as usize % 3], None));
        assert!(timeline.marks.iter().all(|mark| mark.at != 1_300), "both tasks are joined");
        let (split, behind) = timeline.explain(1_000, LateCause::Tasks);
        assert_eq!((split.part_nanos(LateCause::Tasks), split.total_nanos()), (400, 1_099));
        assert_eq!((behind, timeline.explain(1_400, LateCause::Tasks).1), (Some("long"), None));
        assert_eq!(split.total(), Duration::from_nanos(1_099));
    }
}
