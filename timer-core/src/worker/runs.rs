//! The runs of a batch, and the split of their lateness.
//!
//! One walk of the timeline splits the lateness of all runs of a batch, however their deadlines are
//! ordered, so the explanation adds little to the lateness of a crowd. The sums of the parts are
//! exact and add up to the lags that the histogram gets. In the histograms of the causes, a few of
//! many late runs stand for the others.

use super::slow::SlowTasks;
use super::timeline::Timeline;
use crate::counters::{LagHistogram, LateCause, Lateness, MIN_LATENESS};
use crate::deadline::{IMMEDIATE, Nanos};
use crate::entry::TaskKind;
use crate::timer_context::TimerContext;

/// The largest number of late runs for which one stands.
const MAX_PER_SAMPLE: usize = 64;

/// The most types of tasks whose worst runs a batch offers.
const MAX_KINDS: usize = 4;

/// A run that was won.
struct Run {
    deadline: Nanos,
    /// The time at which its tick began.
    due: Nanos,
    kind: TaskKind,
}

impl Run {
    /// Returns `true` if both are of one type.
    fn is_like(&self, other: &Run) -> bool {
        self.kind.address() == other.kind.address()
    }

    /// Splits the lateness until the end of the timeline.
    fn split(&self, timeline: &Timeline) -> (Lateness, Option<&'static str>) {
        let (mut lateness, behind) = timeline.split(self.due);
        lateness.add(LateCause::Tick, self.due - self.deadline);
        (lateness, behind)
    }
}

/// The runs of a batch that were won since it began.
#[derive(Default)]
pub(super) struct Runs(Vec<Run>);

impl Runs {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a run that was linked under `tick`. Returns the time at which it was due.
    #[inline]
    pub(super) fn push(&mut self, deadline: Nanos, tick: u64, kind: TaskKind, context: &TimerContext) -> Nanos {
        let due = if tick == IMMEDIATE { deadline } else { context.resolution.start_of(tick).max(deadline) };
        self.0.push(Run { deadline, due, kind });
        due
    }

    /// Returns the name of the tasks if all have the same one.
    #[cold]
    pub(super) fn only_task(&self) -> Option<&'static str> {
        let name = self.0.first()?.kind.name();
        self.0.iter().all(|run| run.kind.name() == name).then_some(name)
    }

    /// Splits the lateness of the runs until the end of the timeline.
    #[inline]
    pub(super) fn split(&self, timeline: &mut Timeline, context: &TimerContext, slow: &mut SlowTasks) {
        if self.0.is_empty() {
            return;
        }
        let long_ago = timeline.end().saturating_sub(MIN_LATENESS);
        let (mut late, mut ticks) = (0, 0_u64);
        let mut sums = timeline.split_all(self.0.iter().map(|run| {
            late += usize::from(run.due <= long_ago);
            ticks = ticks.wrapping_add(run.due - run.deadline);
            run.due
        }));
        sums.add(LateCause::Tick, ticks);
        context.counters.lateness.add(&sums);
        slow.waited(self.0.iter().map(|run| run.due), context);
        if late > 0 {
            self.explain(late, long_ago, timeline, context);
        }
    }

    /// Counts the `late` runs that were due by `long_ago` by causes, and offers the worst ones.
    #[cold]
    fn explain(&self, late: usize, long_ago: Nanos, timeline: &Timeline, context: &TimerContext) {
        let counters = &context.counters;
        // Eight of 16, and two of 64.
        let each = (late * late / 128).clamp(1, MAX_PER_SAMPLE);
        let (mut left, mut next) = (late, late);
        let (mut worst, mut last) = ([None::<&Run>; MAX_KINDS], None::<&Run>);
        for run in self.0.iter().filter(|run| run.due <= long_ago) {
            if left == next {
                next = left.saturating_sub(each);
                counters.late_runs.record(&run.split(timeline).0, (left - next) as u64);
            }
            left -= 1;
            let is_as_late = |kept: &Run| kept.is_like(run) && kept.deadline <= run.deadline;
            if !last.is_some_and(is_as_late) {
                let place = worst.iter_mut().find(|place| place.is_none_or(|kept| kept.is_like(run)));
                if let Some(place) = place {
                    last = place.filter(|kept| is_as_late(kept)).or(Some(run));
                    *place = last;
                }
            }
        }
        for run in worst.into_iter().flatten() {
            let now = timeline.end();
            counters.worst.offer(run.kind.name(), now - run.deadline, now, || run.split(timeline));
        }
    }

    /// Records the lags at `now`.
    pub(super) fn record(&self, lag: &LagHistogram, now: Nanos) {
        self.0.iter().for_each(|run| lag.record(now.saturating_sub(run.deadline)));
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests;
