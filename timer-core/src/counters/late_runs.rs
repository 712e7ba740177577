//! A histogram for each cause of lateness.

use super::counter::Counter;
use super::lateness::{CAUSES, LateCause, Lateness};
use crate::deadline::Nanos;
use crate::sync::OnceLock;
use std::time::Duration;

/// The shortest part of a cause that is counted, in nanoseconds. It is half of the first bound.
const LEAST: Nanos = 1_000_000;

const BOUNDS: usize = LateRuns::BOUNDS.len();

/// The runs that were late by 1 ms or more beyond their ticks, in one histogram for each
/// [`LateCause`].
///
/// A run is counted under each cause that has a part of 1 ms or more of its lateness, by the length
/// of that part. A timer that is on time has no such runs. The parts of all runs, however short,
/// are in [`TimerStats::lateness`](crate::TimerStats::lateness).
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
}

/// The histograms of a timer. Any thread writes. They are allocated when the first run is late.
#[derive(Default)]
pub(crate) struct LateRunCounters(OnceLock<Box<Histograms>>);

#[derive(Default)]
struct Histograms {
    buckets: [[Counter; BOUNDS + 1]; CAUSES],
    sums: [Counter; CAUSES],
}

impl LateRunCounters {
    /// Counts `count` runs, each of which was late by `lateness`.
    #[cold]
    pub(crate) fn record(&self, lateness: &Lateness, count: u64) {
        for cause in LateCause::ALL {
            self.record_part(cause, lateness.part_nanos(cause), count);
        }
    }

    /// Counts a cause of the lateness of `count` runs.
    pub(crate) fn record_part(&self, cause: LateCause, part: Nanos, count: u64) {
        if let Some(power) = (part / LEAST).checked_ilog2() {
            let histograms = self.0.get_or_init(Box::default);
            histograms.buckets[cause as usize][BOUNDS.min(power as usize)].add_contended(count);
            histograms.sums[cause as usize].add_contended(part.wrapping_mul(count));
        }
    }

    pub(crate) fn get(&self) -> LateRuns {
        self.0.get().map_or_else(LateRuns::default, |histograms| LateRuns {
            buckets: histograms.buckets.each_ref().map(|counts| counts.each_ref().map(Counter::get)),
            sums: histograms.sums.each_ref().map(Counter::get),
        })
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_counted_below_the_next_bound() {
        let counters = LateRunCounters::default();
        let parts = [999_999, 1_000_000, 1_999_999, 2_000_000, 65_535_999_999, 65_536_000_000, u64::MAX / 4];
        for part in parts {
            let mut lateness = Lateness::default();
            lateness.add(LateCause::Turn, part);
            counters.record(&lateness, 3);
        }
        let late = counters.get();
        let counted: Vec<_> =
            late.buckets(LateCause::Turn).iter().enumerate().filter(|(_, count)| **count > 0).collect();
        assert_eq!(counted, [(0, &6), (1, &3), (15, &3), (16, &6)]);
        assert_eq!((late.count(LateCause::Turn), late.count(LateCause::Tick)), (18, 0));
        assert_eq!(late.sum(LateCause::Turn), Duration::from_nanos(3 * parts[1..].iter().sum::<u64>()));
    }
}
