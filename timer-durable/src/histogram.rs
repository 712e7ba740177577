//! Durations by their sizes.

use std::time::Duration;

/// The upper bounds of the buckets of a [`Histogram`], from 100 us to 1 min. A last bucket has no
/// bound.
pub const BOUNDS: [Duration; 18] = [
    Duration::from_micros(100),
    Duration::from_micros(200),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_millis(2),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(20),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_secs(60),
];

/// Counts of durations by [`BOUNDS`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Histogram {
    /// The number of durations per bucket; the last one counts those beyond the last bound.
    pub counts: [u64; BOUNDS.len() + 1],
    /// The sum of all durations.
    pub sum: Duration,
    /// The longest duration.
    pub max: Duration,
}

impl Histogram {
    /// Returns the number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(crate) fn record(&mut self, duration: Duration) {
        self.counts[BOUNDS.partition_point(|bound| *bound < duration)] += 1;
        self.sum = self.sum.saturating_add(duration);
        self.max = self.max.max(duration);
    }
}
