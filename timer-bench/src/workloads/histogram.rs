//! A histogram of nanoseconds that can be read while it is written. It has 32 steps for each
//! doubling, so a quantile is exact to three percent. Its memory does not grow.

use std::sync::atomic::{AtomicU64, Ordering};

const BITS: u32 = 5;
const STEPS: usize = 1 << BITS;
/// The number of doublings, up to 2^40 ns or 18 minutes. Longer times count as that.
const DOUBLINGS: usize = 36;

pub(super) struct Histogram {
    buckets: Vec<AtomicU64>,
    max: AtomicU64,
}

impl Default for Histogram {
    /// Creates an empty histogram and touches its memory.
    fn default() -> Self {
        let buckets = std::iter::repeat_with(AtomicU64::default).take(DOUBLINGS * STEPS).collect();
        Self { buckets, max: AtomicU64::new(0) }
    }
}

impl Histogram {
    /// Adds a value from any thread.
    pub(super) fn add(&self, value: u64) {
        // ORDERING: Relaxed, because these are only counts.
        self.buckets[bucket(value)].fetch_add(1, Ordering::Relaxed);
        if value > self.max.load(Ordering::Relaxed) {
            self.max.fetch_max(value, Ordering::Relaxed);
        }
    }

    /// Adds a value from the only thread that ever does so, which is cheaper.
    #[inline]
    pub(super) fn add_alone(&self, value: u64) {
        let bucket = &self.buckets[bucket(value)];
        // ORDERING: Relaxed, because this thread is the only writer of the count and the maximum.
        bucket.store(bucket.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if value > self.max.load(Ordering::Relaxed) {
            self.max.store(value, Ordering::Relaxed);
        }
    }

    /// Returns the sum of several histograms at this moment.
    pub(super) fn sum<'a>(all: impl IntoIterator<Item = &'a Self>) -> Counts {
        let mut sum = Counts { buckets: vec![0; DOUBLINGS * STEPS], max: 0 };
        for one in all {
            for (sum, bucket) in sum.buckets.iter_mut().zip(&one.buckets) {
                // ORDERING: Relaxed, because these are only counts.
                *sum += bucket.load(Ordering::Relaxed);
            }
            sum.max = sum.max.max(one.max.load(Ordering::Relaxed));
        }
        sum
    }
}

/// The counts of histograms at one moment.
pub(super) struct Counts {
    buckets: Vec<u64>,
    max: u64,
}

impl Counts {
    /// Returns the least value that at least the share `q` of all values does not exceed, or up to
    /// three percent more. Returns 0 without values.
    pub(super) fn quantile(&self, q: f64) -> u64 {
        let all = self.count();
        let rank = ((q * all as f64).ceil() as u64).clamp(1, all.max(1));
        let mut below = 0;
        for (at, count) in self.buckets.iter().enumerate() {
            below += count;
            if below >= rank {
                return highest(at).min(self.max);
            }
        }
        self.max
    }

    /// Returns the greatest value.
    pub(super) fn max(&self) -> u64 {
        self.max
    }

    /// Returns the number of values.
    pub(super) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Adds a value that is still growing.
    pub(super) fn add(&mut self, value: u64) {
        self.buckets[bucket(value)] += 1;
        self.max = self.max.max(value);
    }
}

/// Returns the bucket of a value. In the first two doublings each step holds one value.
#[inline]
fn bucket(value: u64) -> usize {
    let doubling = (value | STEPS as u64).ilog2() - BITS;
    let at = doubling as usize * STEPS + (value >> doubling) as usize;
    at.min(DOUBLINGS * STEPS - 1)
}

/// Returns the greatest value of a bucket.
fn highest(bucket: usize) -> u64 {
    let doubling = (bucket / STEPS).saturating_sub(1);
    let lowest = (bucket - doubling * STEPS) as u64;
    ((lowest + 1) << doubling) - 1
}

#[cfg(test)]
mod tests {
    use super::{Histogram, bucket, highest};
    use crate::random::{SEED, SplitMix64};
    use crate::workloads::quantiles::quantile;

    #[test]
    fn a_bucket_holds_the_values_within_its_bounds() {
        for value in (0..5_000).chain((10..39).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1])) {
            let at = bucket(value);
            assert!(highest(at) >= value && (at == 0 || highest(at - 1) < value), "{value}");
            assert!((highest(at) - value) as f64 <= value as f64 / 32.0, "{value}");
        }
        assert_eq!(bucket(u64::MAX), bucket(1 << 41));
    }

    #[test]
    fn quantiles_are_exact_to_three_percent() {
        let (histogram, other) = (Histogram::default(), Histogram::default());
        let mut random = SplitMix64::new(SEED);
        let mut values: Vec<u64> = (0..20_000).map(|_| random.next_u64() >> (30 + random.below(30))).collect();
        values.iter().enumerate().for_each(|(at, value)| match at % 2 {
            0 => histogram.add(*value),
            _ => other.add_alone(*value),
        });
        values.sort_unstable();
        let counts = Histogram::sum([&histogram, &other]);
        for q in [0.001, 0.5, 0.99, 0.999, 1.0] {
            let (exact, found) = (quantile(&values, q), counts.quantile(q));
            assert!(found >= exact && (found - exact) as f64 <= exact as f64 / 32.0, "{q}: {found} for {exact}");
        }
        assert_eq!((counts.max(), counts.count()), (values[19_999], 20_000));
    }

    #[test]
    fn all_quantiles_of_an_empty_histogram_are_zero() {
        assert_eq!(Histogram::sum([&Histogram::default()]).quantile(0.99), 0);
        assert_eq!(Histogram::sum([]).max(), 0);
    }
}
