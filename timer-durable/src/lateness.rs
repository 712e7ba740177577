//! The lateness of attempts, split by its causes, and the worst attempts of the last minute.

use crate::TimeoutId;
use crate::store::Micros;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const CAUSES: usize = DurableLateCause::ALL.len();

/// A cause for which an attempt begins late.
///
/// # Examples
///
/// ```
/// use timer_durable::{DurableLateCause, DurableTimer, MemoryStore};
///
/// let (timer, _driver) = DurableTimer::builder().build_manual(MemoryStore::new())?;
/// let lateness = timer.stats().lateness;
/// for cause in DurableLateCause::ALL {
///     println!("{cause}: {:?}", lateness.part(cause));
/// }
/// # Ok::<(), timer_durable::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
#[doc(alias = "LateCause")]
pub enum DurableLateCause {
    /// No process could begin it. The timer was not open, another node owned the timeout and then
    /// died or stopped, or the lease of this node was over.
    Lease,
    /// The run was put back, because there was no handler for its topic, or because an attempt that
    /// had begun was not started before its timer stopped or lost its lease.
    PutBack,
    /// The topic was [paused](crate::DurableTimer::pause).
    Paused,
    /// The [rate](crate::DurableTimerBuilder::rate) of the topic, or the
    /// [rate of overdue timeouts](crate::DurableTimerBuilder::overdue_rate).
    Rate,
    /// Too many attempts were in flight, by the [limit](crate::DurableTimerBuilder::max_running) of
    /// the timer or the topic. Overdue timeouts and those that waited for their topic use at most
    /// half of the places of a timer.
    Places,
    /// The store was at work or had failed. A commit took long, a transaction of the user ran, or
    /// another transaction kept the timeout locked. The step that begins an attempt takes one
    /// commit.
    Store,
    /// The keeper was not woken in time, was busy with its own work, or the store's clock was set
    /// forward. On a shared store, this includes the time until the keeper learns of a timeout that
    /// another program has written.
    System,
    /// The attempt had begun and waited for a thread of the executor, or the executor accepted no
    /// tasks or held up the keeper.
    Executor,
}

impl DurableLateCause {
    /// All causes, about in the order in which they come up.
    pub const ALL: [Self; 8] =
        [Self::Lease, Self::PutBack, Self::Paused, Self::Rate, Self::Places, Self::Store, Self::System, Self::Executor];

    /// Returns the name of the cause in metrics, such as `"store"`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lease => "lease",
            Self::PutBack => "put_back",
            Self::Paused => "paused",
            Self::Rate => "rate",
            Self::Places => "places",
            Self::Store => "store",
            Self::System => "system",
            Self::Executor => "executor",
        }
    }
}

impl fmt::Display for DurableLateCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The time by which an attempt began late, or many attempts together, as one part for each
/// [`DurableLateCause`]. The parts add up to the time from the due time to the start of the
/// handler.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(from = "serde_form::Parts", into = "serde_form::Parts")
)]
#[doc(alias = "Lateness")]
pub struct DurableLateness {
    /// Nanoseconds.
    parts: [u64; CAUSES],
}

impl DurableLateness {
    /// Returns the part that `cause` has.
    #[must_use]
    pub fn part(&self, cause: DurableLateCause) -> Duration {
        Duration::from_nanos(self.parts[cause as usize])
    }

    /// Returns the sum of all parts.
    #[must_use]
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.parts.iter().fold(0, |sum, part| sum.saturating_add(*part)))
    }

    /// Returns the cause with the largest part, or `None` if nothing was late.
    #[must_use]
    pub fn main_cause(&self) -> Option<DurableLateCause> {
        let largest = DurableLateCause::ALL.into_iter().max_by_key(|cause| self.part(*cause));
        largest.filter(|cause| !self.part(*cause).is_zero())
    }

    pub(crate) fn add(&mut self, cause: DurableLateCause, time: Duration) {
        let part = &mut self.parts[cause as usize];
        *part = part.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Adds a length of time on the store's clock.
    pub(crate) fn add_micros(&mut self, cause: DurableLateCause, time: Micros) {
        self.add(cause, Duration::from_micros(u64::try_from(time).unwrap_or(0)));
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        *self = self.combine(other, u64::saturating_add);
    }

    /// Moves the part of a cause to another one.
    pub(crate) fn reassign(&mut self, from: DurableLateCause, to: DurableLateCause) {
        let part = std::mem::take(&mut self.parts[from as usize]);
        self.parts[to as usize] = self.parts[to as usize].saturating_add(part);
    }

    /// Changes the largest part so that all of them add up to `total`.
    pub(crate) fn fit(&mut self, total: Duration) {
        let cause = self.main_cause().unwrap_or(DurableLateCause::System);
        self.parts[cause as usize] = 0;
        self.add(cause, total.saturating_sub(self.total()));
    }

    /// Returns the lateness that was added after `earlier`, an older copy of the same totals, see
    /// [`Histogram::since`](crate::Histogram::since).
    #[doc(alias = "difference")]
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        self.combine(earlier, u64::saturating_sub)
    }

    /// Returns `numerator / denominator` of each part.
    pub(crate) fn share(&self, numerator: u64, denominator: u64) -> Self {
        let share = |part: u64| u128::from(part) * u128::from(numerator) / u128::from(denominator.max(1));
        // Nearly all parts are zero, and divisions are slow.
        Self {
            parts: self.parts.map(|part| if part == 0 { 0 } else { u64::try_from(share(part)).unwrap_or(u64::MAX) }),
        }
    }

    fn combine(&self, other: &Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        Self { parts: std::array::from_fn(|cause| combine(self.parts[cause], other.parts[cause])) }
    }
}

impl fmt::Debug for DurableLateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(DurableLateCause::ALL.map(|cause| (cause.as_str(), self.part(cause)))).finish()
    }
}

/// The form of a lateness in serde, in which later versions may have more causes.
#[cfg(feature = "serde")]
mod serde_form {
    use super::{DurableLateCause, DurableLateness};
    use std::collections::HashMap;
    use std::time::Duration;

    pub(super) type Parts = HashMap<DurableLateCause, Duration>;

    impl From<DurableLateness> for Parts {
        fn from(lateness: DurableLateness) -> Self {
            DurableLateCause::ALL.into_iter().map(|cause| (cause, lateness.part(cause))).collect()
        }
    }

    impl From<Parts> for DurableLateness {
        fn from(parts: Parts) -> Self {
            let mut lateness = Self::default();
            parts.into_iter().for_each(|(cause, part)| lateness.add(cause, part));
            lateness
        }
    }
}

/// An attempt that began late, as returned by [`DurableTimer::worst`](crate::DurableTimer::worst).
#[derive(Clone, Debug)]
#[non_exhaustive]
#[doc(alias = "LateRun")]
pub struct DurableLateRun {
    /// The id of the timeout.
    pub id: TimeoutId,
    /// The topic.
    pub topic: String,
    /// The key, unless [`hide_keys`](crate::DurableTimerBuilder::hide_keys) leaves keys out.
    pub key: Option<String>,
    /// The number of the attempt.
    pub attempt: u32,
    /// The time by which it was late.
    pub lateness: DurableLateness,
    /// The instant at which its handler started, or at which it was found too late to begin.
    pub at: Instant,
}

/// The length of one window.
const WINDOW: Duration = Duration::from_secs(10);

/// The number of windows that are kept.
const WINDOWS: u32 = 6;

/// The number of attempts that are kept of each window, and that a reader gets.
const KEPT: usize = 10;

/// An attempt that is late by less than this is not kept.
const MIN_LATENESS: Duration = Duration::from_millis(1);

/// For each window, the worst attempts, with the begin of the window.
#[derive(Debug, Default)]
pub(crate) struct WorstRuns(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// The newest window comes last.
    runs: Vec<(Instant, DurableLateRun)>,
    /// The least lateness of the newest window once it is full. Nearly all attempts of a crowd are
    /// below it.
    floor: Duration,
}

impl WorstRuns {
    /// Keeps an attempt that was late at `at` if it is among the worst.
    pub(crate) fn offer(&self, lateness: &DurableLateness, at: Instant, run: impl FnOnce() -> DurableLateRun) {
        if lateness.total() < MIN_LATENESS {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Kept { runs, floor } = &mut *kept;
        let last = runs.last().map(|(begin, _)| *begin).filter(|begin| at.saturating_duration_since(*begin) < WINDOW);
        if last.is_some() && lateness.total() <= *floor {
            return;
        }
        let window = last.unwrap_or_else(|| {
            runs.retain(|(begin, _)| is_recent(*begin, at));
            at
        });
        let of_window = || runs.iter().enumerate().filter(|(_, (begin, _))| *begin == window);
        let least = of_window().min_by_key(|(_, (_, kept))| kept.lateness.total()).map(|(place, _)| place);
        match least.filter(|_| of_window().count() >= KEPT) {
            None => runs.push((window, run())),
            Some(place) => runs[place] = (window, run()),
        }
        let of_window = runs.iter().filter(|(begin, _)| *begin == window).map(|(_, kept)| kept.lateness.total());
        *floor = of_window.clone().min().filter(|_| of_window.count() >= KEPT).unwrap_or(Duration::ZERO);
    }

    /// Returns the worst attempts of the last 50 to 60 seconds before `now`, the worst first.
    pub(crate) fn get(&self, now: Instant) -> Vec<DurableLateRun> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = kept.runs.iter().filter(|(begin, _)| is_recent(*begin, now));
        let mut recent: Vec<DurableLateRun> = recent.map(|(_, run)| run.clone()).collect();
        drop(kept);
        recent.sort_by_key(|run| std::cmp::Reverse(run.lateness.total()));
        recent.truncate(KEPT);
        recent
    }
}

fn is_recent(begin: Instant, now: Instant) -> bool {
    now.saturating_duration_since(begin) < WINDOW * WINDOWS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ten_worst_attempts_are_kept_for_a_minute() {
        let (worst, begin) = (WorstRuns::default(), Instant::now());
        let offer = |seconds: u64, after: Duration| {
            let mut lateness = DurableLateness::default();
            lateness.add(DurableLateCause::Store, Duration::from_secs(seconds));
            let (id, topic, at) = (TimeoutId::from_u128(0), String::new(), begin + after);
            worst.offer(&lateness, at, || DurableLateRun { id, topic, key: None, attempt: 1, lateness, at });
        };
        let listed = |after: Duration| {
            let listed = worst.get(begin + after).into_iter().map(|run| run.lateness.total().as_secs());
            listed.collect::<Vec<_>>()
        };
        (0..15).for_each(|seconds| offer(seconds, Duration::ZERO));
        assert_eq!(listed(WINDOW), (5..15).rev().collect::<Vec<_>>());
        offer(7, WINDOW);
        offer(20, 5 * WINDOW);
        assert_eq!(listed(WINDOWS * WINDOW - Duration::from_nanos(1))[..3], [20, 14, 13]);
        assert_eq!(listed(WINDOWS * WINDOW), [20, 7]);
        offer(1, WINDOWS * WINDOW);
        assert_eq!(listed(WINDOWS * WINDOW), [20, 7, 1]);
        assert!(listed(20 * WINDOW).is_empty());
        assert_eq!(worst.0.lock().unwrap().runs.len(), 3, "older ones are gone");
    }
}
