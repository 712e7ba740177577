//! Lags as native histograms of Prometheus, whose buckets are powers of two divided geometrically.

use prometheus_client::encoding::{NativeHistogram, NativeHistogramBuckets};
use timer_core::LagSnapshot;

/// Each power of two has 2^3 buckets, so a bound is 9 % above the one before.
const SCHEMA: i32 = 3;

/// The greatest lag in the bucket of zero, 0.93 ns. A power of two is a bound in every schema.
const ZERO: f64 = 1.0 / (1_u64 << 30) as f64;

/// The buckets that have lags.
#[derive(Debug, Default)]
pub(crate) struct NativeLag {
    zeros: u64,
    /// Runs of successive buckets. Each has its distance from the end of the run before (from the
    /// bucket that ends at 1 s for the first run), and its length.
    spans: Vec<(i32, u32)>,
    /// The count of each bucket, less the count of the bucket before.
    deltas: Vec<i64>,
}

impl NativeLag {
    pub(crate) fn of(lag: &LagSnapshot) -> Self {
        let mut native = Self::default();
        let mut end = 0;
        let mut counts = Vec::<u64>::new();
        for (value, count) in lag.values() {
            let seconds = value.as_secs_f64();
            if seconds <= ZERO {
                native.zeros += count;
                continue;
            }
            let index = (seconds.log2() * f64::from(1 << SCHEMA)).ceil() as i32;
            match (native.spans.last_mut(), counts.last_mut()) {
                (Some(_), Some(last)) if index < end => {
                    *last += count;
                    continue;
                }
                (Some((_, length)), _) if index == end => *length += 1,
                _ => native.spans.push((index - end, 1)),
            }
            end = index + 1;
            counts.push(count);
        }
        let before = std::iter::once(0).chain(counts.iter().copied());
        native.deltas = counts.iter().zip(before).map(|(count, before)| count.wrapping_sub(before) as i64).collect();
        native
    }

    pub(crate) fn fields(&self) -> NativeHistogram<'_> {
        NativeHistogram {
            schema: SCHEMA,
            zero_threshold: ZERO,
            zero_count: self.zeros,
            negative: NativeHistogramBuckets { spans: &[], deltas: &[] },
            positive: NativeHistogramBuckets { spans: &self.spans, deltas: &self.deltas },
            created: None,
        }
    }
}
