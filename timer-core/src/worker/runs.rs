//! The runs of a batch, and the split of their lateness.
//!
//! One walk of the timeline splits the lateness of all runs of a batch, however their deadlines are
//! ordered, so the explanation adds little to the lateness of a crowd. The sums of the parts are
//! exact and add up to the lags that the histogram gets. In the histograms of the causes, a few of
//! many late runs represent the others.

use super::slow::SlowTasks;
use crate::counters::{LagHistogram, LateCause, Lateness};
use crate::deadline::{IMMEDIATE, Nanos};
use crate::entry::TaskKind;
use crate::lateness::{MIN_LATENESS, Timeline};
use crate::timer_context::TimerContext;

/// The largest number of late runs that one run represents in the histograms.
const MAX_PER_SAMPLE: usize = 64;

/// The number of types of tasks whose worst runs a batch offers.
const MAX_KINDS: usize = 8;

/// A run that was won.
struct Run {
    deadline: Nanos,
    /// The beginning of its tick, or its deadline if that is later.
    due: Nanos,
    kind: TaskKind,
}

impl Run {
    /// Returns `true` if both runs are of one type of task.
    fn is_like(&self, other: &Run) -> bool {
        self.kind.address() == other.kind.address()
    }

    /// Splits the lateness until the end of the timeline, and names the task that worked for much
    /// of it.
    fn explain(&self, timeline: &Timeline<LateCause>) -> (Lateness, Option<&'static str>) {
        let (mut lateness, behind) = timeline.explain(self.due, LateCause::Tasks);
        lateness.add_nanos(LateCause::Tick, self.due - self.deadline);
        (lateness, behind)
    }
}

/// The runs of a batch that were won since it began.
#[derive(Default)]
pub(super) struct Runs {
    runs: Vec<Run>,
    /// The last tick, and the time at which it began.
    tick: (u64, Nanos),
}

impl Runs {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.runs.len()
    }

    /// Returns the time at which the first run was due, or the end of time if there is none.
    #[inline]
    pub(super) fn first_due(&self) -> Nanos {
        self.runs.iter().map(|run| run.due).min().unwrap_or(Nanos::MAX)
    }

    /// Adds a run that was linked under `tick`. Returns the time at which it was due.
    #[inline]
    pub(super) fn push(&mut self, deadline: Nanos, tick: u64, kind: TaskKind, context: &TimerContext) -> Nanos {
        if self.tick.0 != tick {
            let begin = if tick == IMMEDIATE { 0 } else { context.resolution.start_of(tick) };
            self.tick = (tick, begin);
        }
        let due = deadline.max(self.tick.1);
        self.runs.push(Run { deadline, due, kind });
        due
    }

    /// Returns the name of the tasks if all of them have the same one.
    #[cold]
    pub(super) fn only_task(&self) -> Option<&'static str> {
        let name = self.runs.first()?.kind.name();
        self.runs.iter().all(|run| run.kind.name() == name).then_some(name)
    }

    /// Splits the lateness of the runs until the end of the timeline.
    #[inline]
    pub(super) fn split(&self, timeline: &Timeline<LateCause>, context: &TimerContext, slow: &mut SlowTasks) {
        if self.runs.is_empty() {
            return;
        }
        let long_ago = timeline.end().saturating_sub(MIN_LATENESS);
        let mut late = 0;
        let mut ticks = 0_u64;
        // The runs of one tick are counted together.
        let moments = self.runs.chunk_by(|run, next| run.due == next.due).map(|runs| {
            let due = runs[0].due;
            let count = runs.len();
            late += if due <= long_ago { count } else { 0 };
            let deadlines = runs.iter().fold(0, |sum: u64, run| sum.wrapping_add(run.deadline));
            ticks = ticks.wrapping_add(due.wrapping_mul(count as u64).wrapping_sub(deadlines));
            (due, count as u64)
        });
        let mut sums = timeline.split_all(moments);
        sums.add_nanos(LateCause::Tick, ticks);
        context.counters.lateness.add(&sums);
        slow.waited(self.runs.iter().map(|run| run.due), context);
        if late > 0 {
            self.explain(late, long_ago, timeline, context);
        }
    }

    /// Counts the `late` runs that were due by `long_ago` by causes, and offers the worst ones.
    #[cold]
    fn explain(&self, late: usize, long_ago: Nanos, timeline: &Timeline<LateCause>, context: &TimerContext) {
        let counters = &context.counters;
        // Eight of 16 late runs are recorded, and two of 64.
        let each = (late * late / 128).clamp(1, MAX_PER_SAMPLE);
        let mut left = late;
        let mut next = late;
        let mut worst = [None::<&Run>; MAX_KINDS];
        let mut last = None::<&Run>;
        for run in self.runs.iter().filter(|run| run.due <= long_ago) {
            if left == next {
                next = left.saturating_sub(each);
                counters.late_runs.record(&run.explain(timeline).0, (left - next) as u64);
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
            counters.offer(run.kind.name(), now - run.deadline, now, || run.explain(timeline));
        }
    }

    /// Records the lags at `now`.
    pub(super) fn record(&self, lag: &LagHistogram, now: Nanos) {
        self.runs.iter().for_each(|run| lag.record(now.saturating_sub(run.deadline)));
    }

    pub(super) fn clear(&mut self) {
        self.runs.clear();
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests;
