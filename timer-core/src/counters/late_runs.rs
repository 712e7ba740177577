//! A histogram for each cause of lateness.

use super::counter::Counter;
use super::lateness::{LateCause, Lateness};
use crate::deadline::Nanos;
use crate::sync::OnceLock;
use std::time::Duration;

/// The shortest part of a cause that is counted, in nanoseconds. It is half of the first bound.
const LEAST: Nanos = 1_000_000;

const CAUSES: usize = LateCause::ALL.len();

const BOUNDS: usize = LateRuns::BOUNDS.len();

/// The runs that were late by 1 ms or more beyond their ticks, in one histogram for each
/// [`LateCause`].
///
/// A run is counted under each cause that has a part of 1 ms or more of its lateness, by the length
/// of that part. In a batch of many late runs, a few stand for the others. A timer that is on time
/// has no such runs. The parts of all runs, however short, are exactly in
/// [`TimerStats::lateness`](crate::TimerStats::lateness).
///
/// # Examples
///
/// ```
/// use timer_core::{LateCause, LateRuns, Timer};
///
/// let late = Timer::new().stats().late_runs;
/// for cause in LateCause::ALL {
///     println!("{cause} made {} runs late, by {:?} in all", late.count(cause), late.sum(cause));
///     for (bound, count) in LateRuns::BOUNDS.iter().zip(late.buckets(cause)) {
///         println!("  less than {bound:?}: {count}");
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LateRuns {
    buckets: [[u64; BOUNDS + 1]; CAUSES],
    sums: [Nanos; CAUSES],
}

impl LateRuns {
    /// The upper bounds of the buckets, which are exclusive. They double from 2 ms to 65.536 s.
    pub const BOUNDS: [Duration; 16] = {
        let mut bounds = [Duration::from_millis(2); 16];
        let mut nth = 1;
        while nth < bounds.len() {
            bounds[nth] = Duration::from_millis(2 << nth);
            nth += 1;
        }
        bounds
    };

    /// Returns the number of runs in each bucket. The last bucket is above all
    /// [`BOUNDS`](Self::BOUNDS).
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_core::{LateCause, LateRuns};
    /// assert_eq!(LateRuns::default().buckets(LateCause::Tick), &[0; 17]);
    /// ```
    pub fn buckets(&self, cause: LateCause) -> &[u64; LateRuns::BOUNDS.len() + 1] {
        &self.buckets[cause as usize]
    }

    /// Returns the number of runs.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_core::{LateCause, LateRuns};
    /// assert_eq!(LateRuns::default().count(LateCause::Tick), 0);
    /// ```
    pub fn count(&self, cause: LateCause) -> u64 {
        self.buckets(cause).iter().sum()
    }

    /// Returns the sum of the parts of these runs.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_core::{LateCause, LateRuns};
    /// assert!(LateRuns::default().sum(LateCause::Tick).is_zero());
    /// ```
    pub fn sum(&self, cause: LateCause) -> Duration {
        Duration::from_nanos(self.sums[cause as usize])
    }

    /// Returns the runs that were counted after `earlier`, which are older histograms of the same
    /// timer.
    ///
    /// # Examples
    ///
    /// The runs that the system made late in the last minute:
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::{LateCause, Timer};
    ///
    /// let (timer, mut driver) = Timer::builder().build_driven()?;
    /// let minute_ago = timer.stats().late_runs;
    /// timer.new_timeout(Duration::from_millis(1), |_| {})?;
    /// let begin = std::time::Instant::now();
    /// while begin.elapsed() < Duration::from_millis(5) {}
    /// driver.turn();
    /// let minute = timer.stats().late_runs.since(&minute_ago);
    /// assert_eq!(minute.count(LateCause::System), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "difference")]
    #[must_use]
    pub fn since(&self, earlier: &LateRuns) -> LateRuns {
        let mut later = *self;
        let counts = later.buckets.as_flattened_mut().iter_mut().zip(earlier.buckets.as_flattened());
        counts.chain(later.sums.iter_mut().zip(&earlier.sums)).for_each(|(now, then)| *now = now.saturating_sub(*then));
        later
    }

    /// Returns a bound that the parts of the fraction `q` of these runs stay below. It is one of
    /// [`BOUNDS`](Self::BOUNDS), or [`Duration::MAX`] if some of these parts reach the last one.
    /// Returns zero if there is no run. A `q` below 0 counts as 0, and a `q` that is above 1 or not
    /// a number counts as 1.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_core::{LateCause, LateRuns};
    /// assert!(LateRuns::default().quantile(LateCause::Tick, 0.99).is_zero());
    /// ```
    #[doc(alias = "percentile")]
    pub fn quantile(&self, cause: LateCause, q: f64) -> Duration {
        let q = if q.is_nan() { 1.0 } else { q.clamp(0.0, 1.0) };
        let count = self.count(cause);
        let rank = ((q * count as f64).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        let bounds = Self::BOUNDS.into_iter().chain([Duration::MAX]);
        let mut buckets = bounds.zip(self.buckets(cause));
        let bucket = buckets.find(|(_, count)| {
            seen += **count;
            seen >= rank
        });
        bucket.map_or(Duration::ZERO, |(bound, _)| bound)
    }
}

/// The histograms of a timer. They are allocated when the first run is late.
#[derive(Default)]
pub(crate) struct LateRunCounters {
    /// Written by the turn's thread.
    turn: OnceLock<Box<[Histogram; CAUSES]>>,
    /// The waits in the queue of an executor. Any thread writes.
    queued: OnceLock<Box<Histogram>>,
}

#[derive(Default)]
struct Histogram {
    buckets: [Counter; BOUNDS + 1],
    sum: Counter,
}

/// Returns the bucket of a part, or `None` if it is too short.
fn bucket_of(part: Nanos) -> Option<usize> {
    (part >= LEAST).then(|| BOUNDS.min((part / LEAST).ilog2() as usize))
}

impl LateRunCounters {
    /// Counts `count` runs, each of which was late by `lateness`. Called by the turn's thread.
    #[cold]
    pub(crate) fn record(&self, lateness: &Lateness, count: u64) {
        for cause in LateCause::ALL {
            let part = lateness.part_nanos(cause);
            if let Some(bucket) = bucket_of(part) {
                let histogram = &self.turn.get_or_init(Box::default)[cause as usize];
                histogram.buckets[bucket].add(count);
                histogram.sum.add(part.wrapping_mul(count));
            }
        }
    }

    /// Counts the wait of one run in the queue of an executor.
    pub(crate) fn record_queued(&self, nanos: Nanos) {
        if let Some(bucket) = bucket_of(nanos) {
            let histogram = self.queued.get_or_init(Box::default);
            histogram.buckets[bucket].add_contended(1);
            histogram.sum.add_contended(nanos);
        }
    }

    pub(crate) fn get(&self) -> LateRuns {
        let mut late = LateRuns::default();
        let turn = self.turn.get().into_iter().flat_map(|turn| LateCause::ALL.into_iter().zip(turn.iter()));
        let queued = self.queued.get().map(|queued| (LateCause::Executor, &**queued));
        for (cause, histogram) in turn.chain(queued) {
            let buckets = late.buckets[cause as usize].iter_mut().zip(&histogram.buckets);
            buckets.for_each(|(count, counter)| *count += counter.get());
            let sum = &mut late.sums[cause as usize];
            *sum = sum.wrapping_add(histogram.sum.get());
        }
        late
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        if millis == u64::MAX { Duration::MAX } else { Duration::from_millis(millis) }
    }

    #[test]
    fn a_part_is_counted_below_the_next_bound() {
        let counters = LateRunCounters::default();
        let parts = [999_999, 1_000_000, 1_999_999, 2_000_000, 65_535_999_999, 65_536_000_000, u64::MAX / 4];
        for part in parts {
            let mut lateness = Lateness::default();
            lateness.add_nanos(LateCause::Turn, part);
            counters.record(&lateness, 3);
        }
        let late = counters.get();
        let counted: Vec<_> =
            late.buckets(LateCause::Turn).iter().enumerate().filter(|(_, count)| **count > 0).collect();
        assert_eq!(counted, [(0, &6), (1, &3), (15, &3), (16, &6)]);
        assert_eq!((late.count(LateCause::Turn), late.count(LateCause::Tick)), (18, 0));
        assert_eq!(late.sum(LateCause::Turn), Duration::from_nanos(3 * parts[1..].iter().sum::<u64>()));
        let quantile = |q| late.quantile(LateCause::Turn, q);
        assert_eq!([0.0, 0.3, 0.4, f64::NAN].map(quantile), [2, 2, 4, u64::MAX].map(millis));
        assert_eq!(late.quantile(LateCause::Tick, 0.5), Duration::ZERO);
        counters.record_queued(3_000_000);
        let later = counters.get().since(&late);
        assert_eq!((later.count(LateCause::Executor), later.sum(LateCause::Executor)), (1, millis(3)));
        assert_eq!((later.count(LateCause::Turn), later.sum(LateCause::Turn)), (0, Duration::ZERO));
    }
}
