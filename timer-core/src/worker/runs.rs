//! The runs of a batch, and the split of their lateness.
//!
//! Runs of one tick and one type of task are late for the same reasons. They form a group, and the
//! timeline is read once for it. The part of the tick is the rest, so the parts of a group add up
//! to the lags that the histogram gets.

use super::slow::SlowTasks;
use super::timeline::Timeline;
use crate::clock;
use crate::counters::{LagHistogram, LateCause, LateRun, Lateness, MIN_LATENESS};
use crate::deadline::{IMMEDIATE, Nanos};
use crate::entry::TaskKind;
use crate::timer_context::TimerContext;

/// Successive runs of one type of task that are due in one tick.
#[derive(Clone, Copy)]
struct Group {
    kind: TaskKind,
    tick: u64,
    /// The index of the first one.
    begin: usize,
}

/// The runs of a batch that were won since it began.
#[derive(Default)]
pub(super) struct Runs {
    deadlines: Vec<Nanos>,
    /// The last group.
    last: Option<Group>,
    /// The other groups.
    groups: Vec<Group>,
}

impl Runs {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.deadlines.len()
    }

    /// Adds a run that was linked under `tick`.
    #[inline]
    pub(super) fn push(&mut self, deadline: Nanos, tick: u64, kind: TaskKind) {
        if self.last.map_or(0, |last| last.kind.address()) != kind.address()
            || self.last.is_none_or(|last| last.tick != tick)
        {
            let group = Group { kind, tick, begin: self.deadlines.len() };
            self.groups.extend(self.last.replace(group));
        }
        self.deadlines.push(deadline);
    }

    /// Returns the name of the task that probably made this batch slow. `suspect` was slow before.
    /// Returns `true` as well if all tasks have this name.
    #[cold]
    pub(super) fn slow_task(&self, suspect: Option<&'static str>) -> Option<(&'static str, bool)> {
        let names = || self.groups.iter().chain(&self.last).map(|group| group.kind.name());
        let first = names().next()?;
        let others = || names().filter(|name| *name != first);
        let known = others().find(|name| Some(*name) == suspect);
        Some((known.unwrap_or(first), others().next().is_none()))
    }

    /// Splits the lateness of the runs until the end of the timeline.
    #[inline]
    pub(super) fn split(&self, timeline: &Timeline, context: &TimerContext, slow: &mut SlowTasks) {
        let Some(last) = &self.last else { return };
        last.split(&self.deadlines[last.begin..], timeline, context, slow);
        let mut end = last.begin;
        for group in self.groups.iter().rev() {
            group.split(&self.deadlines[group.begin..end], timeline, context, slow);
            end = group.begin;
        }
    }

    /// Records the lags at `now`.
    pub(super) fn record(&self, lag: &LagHistogram, now: Nanos) {
        self.deadlines.iter().for_each(|deadline| lag.record(now.saturating_sub(*deadline)));
    }

    pub(super) fn clear(&mut self) {
        self.deadlines.clear();
        self.groups.clear();
        self.last = None;
    }
}

impl Group {
    /// Splits the lateness of the runs with these deadlines.
    #[inline]
    fn split(&self, deadlines: &[Nanos], timeline: &Timeline, context: &TimerContext, slow: &mut SlowTasks) {
        let (count, end) = (deadlines.len() as u64, timeline.end());
        let sum = deadlines.iter().fold(0, |sum: u64, deadline| sum.wrapping_add(*deadline));
        let late = end.wrapping_mul(count).wrapping_sub(sum);
        if late == 0 {
            return;
        }
        let due = due(end - late / count, self.tick, context);
        let waited = end.saturating_sub(due);
        let (each, _) = timeline.split(due);
        context.counters.lateness.add(&each, count, late.saturating_sub(waited * count));
        slow.waited(due, count, context);
        if self.tick == IMMEDIATE && late >= MIN_LATENESS {
            // These may have been due at very different times.
            let long = deadlines.iter().filter(|deadline| end - **deadline >= MIN_LATENESS);
            long.for_each(|deadline| context.counters.late_runs.record(&timeline.split(*deadline).0, 1));
        }
        if waited >= MIN_LATENESS {
            if self.tick != IMMEDIATE {
                let mut mean = each;
                mean.add(LateCause::Tick, late / count - waited);
                context.counters.late_runs.record(&mean, count);
            }
            let earliest = deadlines.iter().fold(end, |earliest, deadline| earliest.min(*deadline));
            let (lateness, behind) = split(earliest, self.tick, timeline, context);
            let at = clock::instant(timeline.end());
            let run = LateRun { task: self.kind.name(), behind, lateness, at };
            context.counters.worst.offer(run, timeline.end());
        }
    }
}

/// Returns the time at which a run of this deadline and tick was due.
#[inline]
pub(super) fn due(deadline: Nanos, tick: u64, context: &TimerContext) -> Nanos {
    if tick == IMMEDIATE { deadline } else { context.resolution.start_of(tick).max(deadline) }
}

/// Splits the lateness of one run.
#[cold]
pub(super) fn split(
    deadline: Nanos,
    tick: u64,
    timeline: &Timeline,
    context: &TimerContext,
) -> (Lateness, Option<&'static str>) {
    let due = due(deadline, tick, context);
    let (mut lateness, behind) = timeline.split(due);
    lateness.add(LateCause::Tick, due - deadline);
    (lateness, behind)
}

#[cfg(all(test, not(timer_loom)))]
mod tests;
