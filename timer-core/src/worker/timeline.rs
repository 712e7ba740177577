//! The timeline of the worker: which cause had each of its recent moments.
//!
//! The worker extends the timeline by the readings of the clock that it takes for its batches, so
//! the timeline has no gaps. The lateness of a run, from its tick to the reading after its batch,
//! is an interval at the end of the timeline. Therefore its parts add up to it.

use crate::counters::LateCause::{self, Lock, System, Tasks, Turn};
use crate::counters::{Counter, Lateness};
use crate::deadline::Nanos;
use crate::sync::cpu_use;

/// The most segments. When there are more, neighbors are joined.
const CAPACITY: usize = 128;

/// A time that has one cause. It ends where the next one begins.
struct Segment {
    begin: Nanos,
    cause: LateCause,
    /// The task that ran, if it is known.
    task: Option<&'static str>,
}

/// The timeline of one worker or driver.
pub(super) struct Timeline {
    /// The first one begins at 0. The latest ones are exact. The older they are, the more of them
    /// have been joined.
    segments: Vec<Segment>,
    end: Nanos,
    /// The part of the time in which the worker has waited for locks that is on the timeline.
    lock_waits: u64,
    /// The thread's use of its CPU at some reading of the clock.
    cpu_use: Option<(Nanos, (u64, usize))>,
}

impl Default for Timeline {
    fn default() -> Self {
        let mut segments = Vec::with_capacity(CAPACITY);
        segments.push(Segment { begin: 0, cause: System, task: None });
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
        if waited != self.lock_waits {
            let wait = waited.wrapping_sub(std::mem::replace(&mut self.lock_waits, waited));
            self.extend(now.min(self.end.saturating_add(wait)), Lock, None);
        }
        self.extend(now, Turn, None);
    }

    /// Notes how much CPU time the calling thread has used at `now`. Returns the time since the
    /// last call in which it was ready and did not run, or 0 if it has blocked since.
    pub(super) fn note_cpu_use(&mut self, now: Nanos) -> Nanos {
        let at = cpu_use();
        let Some((then, before)) = std::mem::replace(&mut self.cpu_use, at.map(|at| (now, at))) else { return 0 };
        match at {
            Some((used, blocked)) if blocked == before.1 => {
                now.saturating_sub(then).saturating_sub(used.saturating_sub(before.0))
            }
            _ => 0,
        }
    }

    fn push(&mut self, cause: LateCause, task: Option<&'static str>) {
        if self.segments.len() == CAPACITY {
            self.join_neighbors();
        }
        self.segments.push(Segment { begin: self.end, cause, task });
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

    /// Splits the time from `begin` to the end of the timeline. If tasks took a tenth of it,
    /// returns the longest of them as well.
    #[inline]
    pub(super) fn split(&self, begin: Nanos) -> (Lateness, Option<&'static str>) {
        let (mut parts, mut until) = (Lateness::default(), self.end);
        let (mut tasks, mut longest, mut behind) = (0, 0, None);
        for segment in self.segments.iter().rev() {
            if until <= begin {
                break;
            }
            let length = until - segment.begin.max(begin);
            parts.add(segment.cause, length);
            if segment.cause == Tasks {
                tasks += length;
                if length > longest {
                    (longest, behind) = (length, segment.task);
                }
            }
            until = segment.begin;
        }
        (parts, behind.filter(|_| 10 * tasks >= self.end.saturating_sub(begin)))
    }
}
