//! The time that the thread of the turn takes for a timeout that expires.

use crate::deadline::Nanos;
use crate::sync::{AtomicU64, Ordering};

/// The least number of timeouts of a crowd.
const CROWD: usize = 64;

/// The number of timeouts over which the mean is taken.
const MEMORY: u64 = 1 << 16;

/// The mean time that a timeout took in recent crowds. As long as there was no crowd, the shortest
/// time of a lone one, which is longer because it bears the cost of a whole turn. One thread at a
/// time writes.
#[derive(Debug, Default)]
pub(crate) struct ExpiryTime {
    /// The bits of an `f64`, in nanoseconds.
    nanos: AtomicU64,
    /// The number of timeouts in crowds, at most [`MEMORY`].
    crowded: AtomicU64,
    /// The number of others before the first crowd.
    lone: AtomicU64,
}

impl ExpiryTime {
    /// Records that the thread of the turn worked for `nanos()` nanoseconds on `expired` timeouts.
    #[inline]
    pub(crate) fn record(&self, expired: usize, nanos: impl FnOnce() -> Nanos) {
        let (crowded, lone) = self.counts();
        let count = expired as u64;
        let is_crowd = expired >= CROWD;
        if count == 0 || crowded > 0 && !is_crowd {
            return;
        }
        let before = self.nanos();
        let each = nanos() as f64 / expired as f64;
        let now = match (crowded, is_crowd) {
            (0, false) if lone > 0 => before.min(each),
            (0, _) => each,
            // A round in which the thread did not run must not decide the mean.
            _ => before + (each.min(2.0 * before) - before) * (count as f64 / (count + crowded) as f64),
        };
        // ORDERING: Relaxed, because there is one writer, and a reader may see a figure of the
        // moment before.
        self.nanos.store(now.to_bits(), Ordering::Relaxed);
        let (counter, sum) =
            if is_crowd { (&self.crowded, (crowded + count).min(MEMORY)) } else { (&self.lone, lone + count) };
        // ORDERING: Relaxed, as above.
        counter.store(sum, Ordering::Relaxed);
    }

    /// Returns the numbers of timeouts in crowds and of others.
    #[inline]
    fn counts(&self) -> (u64, u64) {
        // ORDERING: Relaxed, as in `record`.
        (self.crowded.load(Ordering::Relaxed), self.lone.load(Ordering::Relaxed))
    }

    #[inline]
    fn nanos(&self) -> f64 {
        // ORDERING: Relaxed, as in `record`.
        f64::from_bits(self.nanos.load(Ordering::Relaxed))
    }

    /// Returns the time in nanoseconds, or 0 if neither a crowd nor as many lone timeouts have
    /// expired.
    pub(crate) fn get(&self) -> Nanos {
        let (crowded, lone) = self.counts();
        if crowded > 0 || lone >= CROWD as u64 { self.nanos().round() as Nanos } else { 0 }
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;

    #[test]
    fn crowds_replace_lone_timeouts() {
        let time = ExpiryTime::default();
        (0..CROWD as u64).for_each(|nth| {
            assert_eq!(time.get(), 0);
            time.record(1, || 3_000 - nth);
        });
        time.record(1, || 4_000);
        assert_eq!(time.get(), 3_001 - CROWD as u64);
        time.record(1_000, || 200_000);
        time.record(1, || 100);
        assert_eq!(time.get(), 200);
    }

    #[test]
    fn a_round_that_was_held_up_counts_at_most_twice() {
        let time = ExpiryTime::default();
        for nanos in [200_000, 100_000_000] {
            time.record(1_000, || nanos);
        }
        assert_eq!(time.get(), 300);
        (0..1_000).for_each(|_| time.record(1_000, || 400_000));
        assert_eq!(time.get(), 400);
    }
}
