//! Histograms of lags that are read without stopping their writers.

use super::histogram::{BUCKETS, LagSnapshot, bucket_of};
use crate::sync::{AtomicU64, OnceLock, Ordering};

/// A histogram for its writers. Either the turn's thread calls [`record`](Self::record), or any
/// thread calls [`record_contended`](Self::record_contended). One histogram never gets both calls.
#[derive(Default)]
pub(crate) struct LagHistogram {
    /// Allocated with the first value, so that an unused timer needs no memory for it.
    buckets: OnceLock<Box<[AtomicU64]>>,
    sum: AtomicU64,
    max: AtomicU64,
}

impl LagHistogram {
    /// Records a lag of `nanos` nanoseconds.
    #[inline]
    pub(crate) fn record(&self, nanos: u64) {
        let buckets = self.buckets.get_or_init(|| (0..BUCKETS).map(|_| AtomicU64::new(0)).collect());
        let bucket = &buckets[bucket_of(nanos)];
        // ORDERING: Relaxed, because there is one writer, and a reader takes each figure as it is
        // at the moment.
        bucket.store(bucket.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.sum.store(self.sum.load(Ordering::Relaxed).saturating_add(nanos), Ordering::Relaxed);
        if nanos > self.max.load(Ordering::Relaxed) {
            // ORDERING: Relaxed, as above.
            self.max.store(nanos, Ordering::Relaxed);
        }
    }

    /// Records a lag of `nanos` nanoseconds from any thread.
    pub(crate) fn record_contended(&self, nanos: u64) {
        let buckets = self.buckets.get_or_init(|| (0..BUCKETS).map(|_| AtomicU64::new(0)).collect());
        // ORDERING: Relaxed, as in `record`; read-modify-writes, because there are several writers.
        buckets[bucket_of(nanos)].fetch_add(1, Ordering::Relaxed);
        let _ = self.sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |sum| Some(sum.saturating_add(nanos)));
        // ORDERING: Relaxed, as above.
        self.max.fetch_max(nanos, Ordering::Relaxed);
    }

    /// Returns a copy of the figures.
    pub(crate) fn snapshot(&self) -> LagSnapshot {
        let buckets = self.buckets.get().map(|buckets| &**buckets).unwrap_or_default();
        // ORDERING: Relaxed, as in `record`. A value that is being recorded may be in one figure
        // and not yet in another.
        let counts: Vec<u64> = buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect();
        // ORDERING: Relaxed, as above.
        LagSnapshot::from_counts(counts, self.sum.load(Ordering::Relaxed), self.max.load(Ordering::Relaxed))
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn all_writers_record_the_same() {
        let of_one = LagHistogram::default();
        let of_many = LagHistogram::default();
        let mut expected = of_one.snapshot();
        for nanos in [20, 5_000, 7, u64::MAX] {
            of_one.record(nanos);
            of_many.record_contended(nanos);
            expected.record(Duration::from_nanos(nanos));
            assert_eq!((of_one.snapshot(), of_many.snapshot()), (expected.clone(), expected.clone()));
        }
    }
}
