//! A log-linear histogram of times.
//!
//! Every power of two has 128 buckets, so a value is known to better than 1 % from 1 ns to 39
//! hours. A longer value counts in the last bucket.

use crate::sync::Arc;
use std::fmt;
use std::time::Duration;

const PART_BITS: u32 = if cfg!(all(test, timer_loom)) { 1 } else { 7 };
const PARTS: usize = 1 << PART_BITS;
/// Values of 2^47 ns (39 hours) and more share the last bucket.
const TOP_BIT: u32 = if cfg!(all(test, timer_loom)) { 4 } else { 47 };
pub(super) const BUCKETS: usize = (TOP_BIT - PART_BITS + 1) as usize * PARTS + 1;

pub(super) fn bucket_of(nanos: u64) -> usize {
    if nanos >> TOP_BIT != 0 {
        return BUCKETS - 1;
    }
    if nanos < PARTS as u64 {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - PART_BITS;
    (shift as usize + 1) * PARTS + ((nanos >> shift) as usize & (PARTS - 1))
}

fn nanos_of(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the largest value of a bucket.
fn upper_edge(bucket: usize) -> u64 {
    if bucket < PARTS {
        return bucket as u64;
    }
    if bucket >= BUCKETS - 1 {
        return u64::MAX;
    }
    let shift = (bucket / PARTS - 1) as u32;
    (((bucket % PARTS + PARTS) as u64 + 1) << shift) - 1
}

/// A histogram of lags at the time of the call of [`Timer::stats`](crate::Timer::stats).
///
/// Values are known to better than 1 % up to 39 hours. Quantiles round up, never down.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::Timer;
///
/// let (timer, mut driver) = Timer::builder().build_manual()?;
/// timer.new_timeout(Duration::from_millis(5), |_| {})?;
/// driver.advance(Duration::from_millis(5));
/// let lag = timer.stats().timeout_lag;
/// assert_eq!((lag.count(), lag.max()), (1, Duration::ZERO));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct LagSnapshot {
    /// The counts of the buckets up to the last one that has a value. Copies share them, so that a
    /// copy of many histograms takes little time.
    counts: Arc<Vec<u64>>,
    count: u64,
    sum: u64,
    max: u64,
}

impl LagSnapshot {
    /// Creates a histogram from the [`values`](Self::values) and the [`sum`](Self::sum) of another
    /// one, such as one that was sent to this process.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_core::LagSnapshot;
    ///
    /// let lag = timer_core::Timer::new().stats().timeout_lag;
    /// assert_eq!(LagSnapshot::from_values(lag.values(), lag.sum()), lag);
    /// ```
    pub fn from_values(values: impl IntoIterator<Item = (Duration, u64)>, sum: Duration) -> LagSnapshot {
        let mut lag = LagSnapshot::default();
        for (value, count) in values {
            lag.record_many(nanos_of(value), count);
        }
        lag.sum = nanos_of(sum);
        lag
    }

    /// Returns a histogram with these counts of its buckets.
    pub(super) fn from_counts(mut counts: Vec<u64>, sum: u64, max: u64) -> Self {
        counts.truncate(counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1));
        Self { count: counts.iter().sum(), counts: Arc::new(counts), sum, max }
    }

    /// Adds a value.
    pub fn record(&mut self, lag: Duration) {
        self.record_many(nanos_of(lag), 1);
    }

    fn record_many(&mut self, nanos: u64, times: u64) {
        let counts = Arc::make_mut(&mut self.counts);
        let bucket = bucket_of(nanos);
        if counts.len() <= bucket {
            counts.reserve_exact(bucket + 1 - counts.len());
            counts.resize(bucket + 1, 0);
        }
        counts[bucket] += times;
        self.count += times;
        self.sum = self.sum.saturating_add(nanos.saturating_mul(times));
        self.max = self.max.max(nanos);
    }

    /// Returns the sum of two histograms.
    pub(crate) fn merged(mut self, other: &LagSnapshot) -> LagSnapshot {
        let counts = Arc::make_mut(&mut self.counts);
        counts.resize(counts.len().max(other.counts.len()), 0);
        counts.iter_mut().zip(&*other.counts).for_each(|(count, more)| *count += more);
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
        self
    }

    /// Returns the values that were recorded after `earlier`, an older snapshot of the same
    /// histogram. [`max`](Self::max) of the result may be too high by 1 %.
    ///
    /// # Examples
    ///
    /// The 99th percentile of the last minute:
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// let minute_ago = timer.stats().timeout_lag;
    /// timer.new_timeout(Duration::from_secs(5), |_| {})?;
    /// driver.advance(Duration::from_secs(60));
    /// let minute = timer.stats().timeout_lag.since(&minute_ago);
    /// assert_eq!((minute.count(), minute.quantile(0.99)), (1, Duration::ZERO));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "difference")]
    #[must_use]
    pub fn since(&self, earlier: &LagSnapshot) -> LagSnapshot {
        let before = earlier.counts.iter().chain(std::iter::repeat(&0));
        let counts: Vec<u64> =
            self.counts.iter().zip(before).map(|(now, before)| now.saturating_sub(*before)).collect();
        let Some(highest) = counts.iter().rposition(|count| *count > 0) else { return LagSnapshot::default() };
        Self::from_counts(counts, self.sum.saturating_sub(earlier.sum), upper_edge(highest).min(self.max))
    }

    /// Returns the number of values.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(timer_core::LagSnapshot::default().count(), 0);
    /// ```
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the longest value exactly, or zero if there is none.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(timer_core::LagSnapshot::default().max().is_zero());
    /// ```
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// Returns the sum of all values.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(timer_core::LagSnapshot::default().sum().is_zero());
    /// ```
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum)
    }

    /// Returns the mean, or zero if there is no value.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(timer_core::LagSnapshot::default().mean().is_zero());
    /// ```
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.sum.checked_div(self.count).unwrap_or(0))
    }

    /// Returns the lag that the fraction `q` of all values does not exceed. `quantile(0.99)` is the
    /// 99th percentile. A `q` below 0 counts as 0, and a `q` that is above 1 or not a number counts
    /// as 1. Returns zero if there is no value.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(timer_core::LagSnapshot::default().quantile(0.5).is_zero());
    /// ```
    #[doc(alias = "percentile")]
    pub fn quantile(&self, q: f64) -> Duration {
        let q = if q.is_nan() { 1.0 } else { q.clamp(0.0, 1.0) };
        let rank = ((q * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Duration::from_nanos(upper_edge(bucket).min(self.max));
            }
        }
        self.max()
    }

    /// Returns the number of values that do not exceed `lag`, for a cumulative histogram. Values
    /// within 1 % of `lag` may count on either side.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// assert_eq!(timer_core::LagSnapshot::default().count_up_to(Duration::from_secs(1)), 0);
    /// ```
    pub fn count_up_to(&self, lag: Duration) -> u64 {
        self.counts.iter().take(bucket_of(nanos_of(lag)) + 1).sum()
    }

    /// Returns the number of values in each bucket of a histogram with these upper bounds, which
    /// must be ascending. A last bucket is above all bounds. A value counts as in
    /// [`count_up_to`](Self::count_up_to), and the numbers add up to [`count`](Self::count).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let lag = Timer::new().stats().timeout_lag;
    /// let bounds = [1, 10, 100].map(Duration::from_millis);
    /// assert_eq!(lag.counts(bounds), [0, 0, 0, 0]);
    /// ```
    pub fn counts(&self, bounds: impl IntoIterator<Item = Duration>) -> Vec<u64> {
        let mut below = 0;
        let mut counts = Vec::new();
        for bound in bounds {
            // After a bound that covers all values, the other buckets are empty.
            let up_to = if below == self.count { below } else { self.count_up_to(bound).clamp(below, self.count) };
            counts.push(up_to - below);
            below = up_to;
        }
        counts.push(self.count - below);
        counts
    }

    /// Returns the values in ascending order, each with the number of its occurrences. Values that
    /// differ by less than 1 % may be counted as one, which is the greatest that they can be. Use
    /// this for a histogram with other buckets.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// timer.new_timeout(Duration::from_millis(5), |_| {})?;
    /// driver.advance(Duration::from_millis(5));
    /// assert!(timer.stats().timeout_lag.values().eq([(Duration::ZERO, 1)]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "buckets")]
    pub fn values(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(bucket, count)| (Duration::from_nanos(upper_edge(bucket).min(self.max)), *count))
    }
}

impl fmt::Debug for LagSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LagSnapshot")
            .field("count", &self.count())
            .field("mean", &self.mean())
            .field("p50", &self.quantile(0.5))
            .field("p99", &self.quantile(0.99))
            .field("max", &self.max())
            .finish()
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_known_to_one_percent() {
        for bit in 0..TOP_BIT {
            for nanos in [1u64 << bit, (1 << bit) + 1, (1 << bit) + (1 << bit) / 3, (2 << bit) - 1] {
                let bucket = bucket_of(nanos);
                let edge = upper_edge(bucket);
                assert!(edge >= nanos, "{nanos} above the edge {edge}");
                assert!(bucket == 0 || upper_edge(bucket - 1) < nanos, "{nanos} in the bucket before");
                assert!((edge - nanos) as f64 <= nanos as f64 * 0.01, "{nanos} known as {edge}");
            }
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    /// Returns a histogram of values in nanoseconds.
    fn of(values: impl IntoIterator<Item = u64>) -> LagSnapshot {
        let mut lag = LagSnapshot::default();
        for nanos in values {
            lag.record(Duration::from_nanos(nanos));
        }
        lag
    }

    #[test]
    fn quantiles_of_known_values() {
        let lag = of((1..=1_000).map(|micros| micros * 1_000));
        assert_eq!(lag.count(), 1_000);
        assert_eq!(lag.max(), Duration::from_millis(1));
        assert_eq!(lag.mean(), Duration::from_nanos(500_500));
        for (q, micros) in
            [(0.0, 1.0), (0.5, 500.0), (0.99, 990.0), (1.0, 1_000.0), (f64::NAN, 1_000.0), (7.0, 1_000.0)]
        {
            let known = lag.quantile(q).as_secs_f64() * 1e6;
            assert!(known >= micros && known <= micros * 1.01, "q {q}: {known} for {micros}");
        }
        let half = lag.count_up_to(Duration::from_micros(500));
        assert!((500..=505).contains(&half), "{half}");
        assert_eq!(lag.count_up_to(Duration::MAX), 1_000);
        assert_eq!(lag.counts([Duration::from_micros(500), Duration::from_millis(1)]), [half, 1_000 - half, 0]);
        assert_eq!(lag.values().map(|(_, count)| count).sum::<u64>(), 1_000);
        assert!(lag.values().is_sorted_by(|one, other| one.0 < other.0));
        assert_eq!(lag.values().last().map(|(value, _)| value), Some(lag.max()));
        assert_eq!(LagSnapshot::from_values(lag.values(), lag.sum()), lag);
    }

    // The rank is rounded up, so the median of three values is the second one.
    #[test]
    fn the_median_of_three_is_the_second() {
        let lag = of([10, 20]).merged(&of([30]));
        assert_eq!((lag.quantile(0.5), lag.quantile(0.67)), (Duration::from_nanos(20), Duration::from_nanos(30)));
        assert_eq!(lag, of([30, 20, 10]));
        assert_eq!(LagSnapshot::default().merged(&lag), lag.clone().merged(&LagSnapshot::default()));
    }

    #[test]
    fn a_difference_has_the_later_values() {
        let mut lag = of([10, 5_000]);
        let earlier = lag.clone();
        assert_eq!((earlier.since(&of([])), earlier.since(&earlier)), (earlier.clone(), of([])));
        for nanos in [20, 1_000, 30] {
            lag.record(Duration::from_nanos(nanos));
        }
        let later = lag.since(&earlier);
        assert_eq!(
            (later.count(), later.sum(), later.quantile(0.5)),
            (3, Duration::from_nanos(1_050), Duration::from_nanos(30))
        );
        assert!((1_000..=1_010).contains(&later.max().as_nanos()), "{later:?}");
    }

    #[test]
    fn a_lag_beyond_the_range_is_counted() {
        let lag = of([u64::MAX, u64::MAX]);
        assert_eq!((lag.count(), lag.max(), lag.quantile(0.5)), (2, Duration::from_nanos(u64::MAX), lag.max()));
    }
}
