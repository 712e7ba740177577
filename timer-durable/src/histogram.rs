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

    /// Returns the durations that were recorded after `earlier`, an older copy of the same
    /// histogram. The longest of them is exact if it is the longest of all, and otherwise the bound
    /// of its bucket.
    ///
    /// # Examples
    ///
    /// The lag of the last minute:
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_durable::{Due, DurableTimer, MemoryStore, Topic};
    ///
    /// const CLOSE: Topic<String> = Topic::new("order.close");
    ///
    /// let builder = DurableTimer::builder().topic(CLOSE, |_: &Due<String>| Ok(()));
    /// let (timer, mut driver) = builder.build_manual(MemoryStore::new())?;
    /// let minute_ago = timer.stats().topics["order.close"].clone();
    /// timer.new_timeout(CLOSE, Duration::from_secs(30), "17")?;
    /// driver.advance(Duration::from_secs(60));
    /// let now = &timer.stats().topics["order.close"];
    /// let lag = now.lag.since(&minute_ago.lag);
    /// let lateness = now.lateness.since(&minute_ago.lateness);
    /// println!("{} began, 99 % within {:?}, late by {lateness:?}", lag.count(), lag.quantile(0.99));
    /// # assert_eq!(lag.count(), 1);
    /// # Ok::<(), timer_durable::Error>(())
    /// ```
    #[doc(alias = "difference")]
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let counts = std::array::from_fn(|bucket| self.counts[bucket].saturating_sub(earlier.counts[bucket]));
        let mut since = Self { counts, sum: self.sum.saturating_sub(earlier.sum), max: self.max };
        if self.max == earlier.max {
            since.max = since.quantile(1.0);
        }
        since
    }

    /// Returns a duration that the fraction `q` of all durations does not exceed. It is the upper
    /// bound of a bucket or the longest duration. `quantile(0.99)` is the 99th percentile. A `q`
    /// below 0 counts as 0, and a `q` that is above 1 or not a number counts as 1. Returns zero if
    /// there is no duration.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_durable::{DurableTimer, MemoryStore};
    ///
    /// let (timer, _driver) = DurableTimer::builder().build_manual(MemoryStore::new())?;
    /// println!("99 % of the commits took at most {:?}", timer.stats().commit_time.quantile(0.99));
    /// # Ok::<(), timer_durable::Error>(())
    /// ```
    #[doc(alias = "percentile")]
    #[must_use]
    pub fn quantile(&self, q: f64) -> Duration {
        let q = if q.is_nan() { 1.0 } else { q.clamp(0.0, 1.0) };
        let rank = ((q * self.count() as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return BOUNDS.get(bucket).map_or(self.max, |bound| self.max.min(*bound));
            }
        }
        Duration::ZERO
    }

    pub(crate) fn record(&mut self, duration: Duration) {
        self.counts[BOUNDS.partition_point(|bound| *bound < duration)] += 1;
        self.sum = self.sum.saturating_add(duration);
        self.max = self.max.max(duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_has_the_durations_since_then() {
        let millis = Duration::from_millis;
        let mut histogram = Histogram::default();
        (0..100).for_each(|_| histogram.record(millis(7)));
        histogram.record(millis(90_000));
        let earlier = histogram.clone();
        assert_eq!(earlier.since(&earlier), Histogram::default());
        (0..99).for_each(|_| histogram.record(millis(3)));
        histogram.record(millis(15));
        let since = histogram.since(&earlier);
        assert_eq!((since.count(), since.sum, since.max), (100, millis(99 * 3 + 15), millis(20)));
        histogram.record(millis(95_000));
        assert_eq!(histogram.since(&earlier).max, millis(95_000));
        assert_eq!(histogram.since(&Histogram::default()), histogram);
    }

    #[test]
    fn a_quantile_is_a_bound_or_the_longest_duration() {
        let millis = Duration::from_millis;
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), Duration::ZERO);
        (1..=100).for_each(|ms| histogram.record(millis(ms)));
        let quantiles = [0.0, 0.5, 0.99, 1.0, f64::NAN, 7.0].map(|q| histogram.quantile(q));
        assert_eq!(quantiles, [1, 50, 100, 100, 100, 100].map(millis));
        histogram.record(millis(70_000));
        assert_eq!(histogram.quantile(1.0), millis(70_000));
    }
}
