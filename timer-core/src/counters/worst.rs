//! The worst runs of the last minute.

use super::lateness::{LateRun, Lateness};
use crate::clock;
use crate::deadline::Nanos;
use crate::sync::Mutex;

/// The length of one window, 10 seconds.
const WINDOW: Nanos = 10_000_000_000;

/// The number of windows that are kept.
const WINDOWS: u64 = 6;

/// The number of runs that are kept of each window, and that a reader gets.
const KEPT: usize = 10;

/// A run that is later than its tick by less than this is not kept, 1 ms.
pub(crate) const MIN_LATENESS: Nanos = 1_000_000;

/// For each window, the worst runs, each with the number of its window. A task is kept once, so
/// that a crowd of equal tasks does not hide the others. The newest window comes last.
#[derive(Default)]
pub(crate) struct WorstRuns(Mutex<Vec<(u64, LateRun)>>);

impl WorstRuns {
    /// Keeps a run of `task`, which was late by `late` at `now`, if it is among the worst. Only
    /// then calls `split`, which returns the parts of its lateness and the task that it waited for.
    /// Does nothing if the list is locked, because the worker does not wait for a reader.
    #[cold]
    pub(crate) fn offer(
        &self,
        task: &'static str,
        late: Nanos,
        now: Nanos,
        split: impl FnOnce() -> (Lateness, Option<&'static str>),
    ) {
        let Some(mut runs) = self.0.try_lock() else { return };
        let window = now / WINDOW;
        if runs.last().is_none_or(|(last, _)| *last != window) {
            runs.retain(|(of, _)| of + WINDOWS > window);
        }
        let of_window = || runs.iter().enumerate().filter(|(_, (of, _))| *of == window);
        let same = of_window().find(|(_, (_, kept))| kept.task == task);
        let least = || of_window().min_by_key(|(_, (_, kept))| kept.lateness.nanos());
        let is_full = of_window().count() >= KEPT;
        let place = same.or_else(|| least().filter(|_| is_full));
        if place.is_some_and(|(_, (_, kept))| kept.lateness.nanos() >= late) {
            return;
        }
        let place = place.map(|(at, _)| at);
        let (lateness, behind) = split();
        let run = (window, LateRun { task, behind, lateness, at: clock::instant(now) });
        match place {
            Some(at) => runs[at] = run,
            None => runs.push(run),
        }
    }

    /// Returns the worst runs of the last 50 to 60 seconds before `now`, the worst first.
    pub(crate) fn get(&self, now: Nanos) -> Vec<LateRun> {
        let window = now / WINDOW;
        let is_recent = |(of, _): &&(u64, LateRun)| of + WINDOWS > window;
        let mut runs: Vec<LateRun> = self.0.lock().iter().filter(is_recent).map(|(_, run)| *run).collect();
        runs.sort_by_key(|run| std::cmp::Reverse(run.lateness.total()));
        let mut named = Vec::new();
        runs.retain(|run| {
            !named.contains(&run.task) && {
                named.push(run.task);
                true
            }
        });
        runs.truncate(KEPT);
        runs
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;
    use crate::counters::LateCause;

    #[test]
    fn the_worst_run_of_each_task_is_kept_for_a_minute() {
        const NAMES: [&str; 12] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"];
        let (worst, begin) = (WorstRuns::default(), 1_000 * WINDOW);
        let offer = |task, nanos, now| {
            let mut lateness = Lateness::default();
            lateness.add(LateCause::System, nanos);
            worst.offer(task, nanos, now, || (lateness, None));
        };
        let listed = |now| worst.get(now).iter().map(|run| (run.task, run.lateness.nanos())).collect::<Vec<_>>();
        NAMES.iter().enumerate().for_each(|(nth, task)| offer(*task, nth as u64 + 1, begin));
        offer("11", 5, begin);
        let expected: Vec<_> = (2..12).rev().map(|nth| (NAMES[nth], nth as u64 + 1)).collect();
        assert_eq!(listed(begin), expected);
        offer("11", 7, begin + 5 * WINDOW);
        assert_eq!(listed(begin + WINDOWS * WINDOW - 1)[0], ("11", 12));
        assert_eq!(listed(begin + WINDOWS * WINDOW), [("11", 7)]);
        assert!(listed(begin + 11 * WINDOW).is_empty());
    }
}
