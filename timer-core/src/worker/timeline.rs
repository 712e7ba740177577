//! The timeline of the worker, with the cause of each recent moment.
//!
//! The worker extends the timeline by the readings of the clock that it takes for its batches, so
//! the timeline has no gaps. The lateness of a run, from its tick to the reading after its batch,
//! is an interval at the end of the timeline. Therefore its parts add up to it.

use crate::counters::LateCause::{self, Executor, Lock, System, Tasks, Turn};
use crate::counters::{Counter, Lateness};
use crate::deadline::Nanos;
use crate::sync::cpu_use;
use std::mem;

/// The largest number of segments. Before another one is added, neighbors are joined.
const CAPACITY: usize = 128;

/// The shortest piece of work, 100 us, after which the worker asks the system if it lost the CPU.
/// Asking is one system call.
const MIN_LOSS: Nanos = 100_000;

#[cfg(test)]
thread_local! {
    /// The number of walks of a timeline for one moment.
    pub(super) static SPLITS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// A span of time with one cause. It ends where the next one begins.
#[derive(Clone)]
struct Segment {
    begin: Nanos,
    cause: LateCause,
    /// The task that ran, if it is known.
    task: Option<&'static str>,
    /// The number of runs that were due in this segment and the sum of their due times, while
    /// [`Timeline::split_all`] counts them.
    due: (u64, Nanos),
}

/// The timeline of one worker or driver.
pub(super) struct Timeline {
    /// The first one begins at 0. Recent segments are exact, and older ones are joined several
    /// times over.
    segments: Vec<Segment>,
    end: Nanos,
    /// The time of waiting for locks that the timeline already contains.
    lock_waits: u64,
    /// The time of the last note, with the CPU time of the thread and the number of times it had
    /// blocked. Stays `None` on virtual time.
    cpu_use: Option<(Nanos, (u64, usize))>,
}

impl Default for Timeline {
    fn default() -> Self {
        let mut segments = Vec::with_capacity(CAPACITY);
        segments.push(Segment { begin: 0, cause: System, task: None, due: (0, 0) });
        Self { segments, end: 0, lock_waits: 0, cpu_use: None }
    }
}

impl Timeline {
    /// Returns the last reading of the clock.
    #[inline]
    pub(super) fn end(&self) -> Nanos {
        self.end
    }

    /// Extends the timeline to `now`.
    #[inline]
    pub(super) fn extend(&mut self, now: Nanos, cause: LateCause, task: Option<&'static str>) {
        if now > self.end {
            if self.segments.last().is_none_or(|last| last.cause != cause || last.task != task) {
                self.push(cause, task);
            }
            self.end = now;
        }
    }

    /// Extends the timeline to `now` by the turn's own work, with the waits for locks in it.
    #[inline]
    pub(super) fn extend_turn(&mut self, now: Nanos, lock_waits: &Counter) {
        let waited = lock_waits.get();
        let wait = waited.wrapping_sub(mem::replace(&mut self.lock_waits, waited));
        if wait > 0 {
            self.extend(now.min(self.end.saturating_add(wait)), Lock, None);
        }
        self.extend_by_work(now, Turn, None, wait);
    }

    /// Extends the timeline to `now` by work of the calling thread, which waited for `waited`
    /// nanoseconds since the last note. Returns the time in which it did not have the CPU. That
    /// time is the system's, but a task that blocks counts all of its time.
    #[inline]
    pub(super) fn extend_by_work(
        &mut self,
        now: Nanos,
        cause: LateCause,
        task: Option<&'static str>,
        waited: Nanos,
    ) -> Nanos {
        let took = now.saturating_sub(self.end);
        let lost = if took < MIN_LOSS && waited == 0 { 0 } else { self.lost(now, cause, waited).min(took) };
        self.extend(now - lost, cause, task);
        self.extend(now, System, None);
        lost
    }

    /// Returns the time since the last note in which the calling thread neither ran nor `waited`,
    /// and makes a note. Returns 0 if user code may have blocked.
    #[cold]
    fn lost(&mut self, now: Nanos, cause: LateCause, waited: Nanos) -> Nanos {
        let Some((then, (used, blocked))) = self.cpu_use else { return 0 };
        self.note_cpu_use(now);
        match self.cpu_use {
            Some((_, (now_used, now_blocked))) if cause == Turn || now_blocked == blocked => {
                now.saturating_sub(then).saturating_sub(waited).saturating_sub(now_used.saturating_sub(used))
            }
            _ => 0,
        }
    }

    /// Notes how much CPU time the calling thread has used at `now`. Not called on virtual time.
    pub(super) fn note_cpu_use(&mut self, now: Nanos) {
        self.cpu_use = cpu_use().map(|at| (now, at));
    }

    fn push(&mut self, cause: LateCause, task: Option<&'static str>) {
        if self.segments.len() == CAPACITY {
            self.join_neighbors();
        }
        self.segments.push(Segment { begin: self.end, cause, task, due: (0, 0) });
    }

    /// Joins each segment with the next one, under the cause of the longer one.
    #[cold]
    fn join_neighbors(&mut self) {
        for at in 0..CAPACITY / 2 {
            let end = self.segments.get(2 * at + 2).map_or(self.end, |next| next.begin);
            let [first, second] = [2 * at, 2 * at + 1].map(|at| self.segments[at].begin);
            let longer = if second - first >= end - second { 2 * at } else { 2 * at + 1 };
            self.segments.swap(at, longer);
            self.segments[at].begin = first;
        }
        self.segments.truncate(CAPACITY / 2);
    }

    /// Returns the segment of a moment.
    fn segment_at(&self, moment: Nanos) -> usize {
        self.segments.partition_point(|segment| segment.begin <= moment).saturating_sub(1)
    }

    /// Returns a copy of the timeline that begins with the segment of `moment`.
    pub(super) fn since(&self, moment: Nanos) -> Timeline {
        let segments = self.segments[self.segment_at(moment)..].to_vec();
        Timeline { segments, end: self.end, lock_waits: 0, cpu_use: None }
    }

    pub(super) fn begin(&self) -> Nanos {
        self.segments.first().map_or(0, |first| first.begin)
    }

    /// Returns the time since `begin` in which the worker had the CPU and the locks.
    pub(super) fn worked_since(&self, begin: Nanos) -> Nanos {
        let (parts, _) = self.split(begin);
        [Turn, Tasks, Executor].map(|cause| parts.part_nanos(cause)).iter().sum()
    }

    /// Splits the times from some moments to the end of the timeline, each of which counts several
    /// times. Returns the sums of the parts.
    #[inline]
    pub(super) fn split_all(&mut self, moments: impl Iterator<Item = (Nanos, u64)>) -> Lateness {
        let mut all = 0;
        let mut at = 0;
        let mut begin = 0;
        let mut length = 0;
        let mut count = 0;
        let mut sum = 0_u64;
        for (due, times) in moments {
            if due.wrapping_sub(begin) >= length {
                self.note_due(at, mem::take(&mut count), mem::take(&mut sum));
                at = self.segment_at(due);
                begin = self.segments[at].begin;
                length = self.segments.get(at + 1).map_or(Nanos::MAX, |next| next.begin) - begin;
            }
            count += times;
            all += times;
            sum = sum.wrapping_add(due.wrapping_mul(times));
        }
        self.note_due(at, count, sum);
        let mut parts = Lateness::default();
        let mut until = self.end;
        for segment in self.segments.iter_mut().rev() {
            if all == 0 {
                break;
            }
            let (count, sum) = mem::take(&mut segment.due);
            all -= count;
            let here = until.wrapping_mul(count).wrapping_sub(sum);
            let before = (until - segment.begin).wrapping_mul(all);
            parts.add(segment.cause, here.wrapping_add(before));
            until = segment.begin;
        }
        parts
    }

    fn note_due(&mut self, at: usize, count: u64, sum: Nanos) {
        let due = &mut self.segments[at].due;
        due.0 += count;
        due.1 = due.1.wrapping_add(sum);
    }

    /// Splits the time from `begin` to the end of the timeline. If tasks took a tenth of it,
    /// returns the longest of them as well.
    #[inline]
    pub(super) fn split(&self, begin: Nanos) -> (Lateness, Option<&'static str>) {
        #[cfg(test)]
        SPLITS.set(SPLITS.get() + 1);
        let mut parts = Lateness::default();
        let mut until = self.end;
        let mut tasks = 0;
        let mut longest = 0;
        let mut behind = None;
        for segment in self.segments.iter().rev() {
            if until <= begin {
                break;
            }
            let length = until - segment.begin.max(begin);
            parts.add(segment.cause, length);
            if segment.cause == Tasks {
                tasks += length;
                if length > longest {
                    longest = length;
                    behind = segment.task;
                }
            }
            until = segment.begin;
        }
        (parts, behind.filter(|_| 10 * tasks >= self.end.saturating_sub(begin)))
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests;
