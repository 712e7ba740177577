//! The buckets of exported histograms.

use std::time::Duration;

const fn micros(n: u64) -> Duration {
    Duration::from_micros(n)
}

/// The upper bounds of the exported histograms: 1, 2.5 and 5 in each power of ten from 10 us to 10
/// s. Longer lags are in the bucket `+Inf`.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_metrics::LAG_BUCKETS;
///
/// assert_eq!(LAG_BUCKETS.first(), Some(&Duration::from_micros(10)));
/// assert_eq!(LAG_BUCKETS.last(), Some(&Duration::from_secs(10)));
/// ```
pub const LAG_BUCKETS: [Duration; 19] = [
    micros(10),
    micros(25),
    micros(50),
    micros(100),
    micros(250),
    micros(500),
    micros(1_000),
    micros(2_500),
    micros(5_000),
    micros(10_000),
    micros(25_000),
    micros(50_000),
    micros(100_000),
    micros(250_000),
    micros(500_000),
    micros(1_000_000),
    micros(2_500_000),
    micros(5_000_000),
    micros(10_000_000),
];

/// The bounds of `timer_due_within_seconds`: 1 s, 10 s, 1 min, 10 min, an hour and a day.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_metrics::DUE_BOUNDS;
///
/// assert_eq!(DUE_BOUNDS.map(|bound| bound.as_secs()), [1, 10, 60, 600, 3_600, 86_400]);
/// ```
pub const DUE_BOUNDS: [Duration; 6] = [
    Duration::from_secs(1),
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(600),
    Duration::from_secs(3_600),
    Duration::from_secs(86_400),
];

#[cfg(test)]
mod tests {
    use super::LAG_BUCKETS;
    use std::time::Duration;

    #[test]
    fn bounds_are_1_2_5_and_5_in_each_power_of_ten() {
        let decades = (1..=7).map(|power| 10_u64.pow(power));
        let micros = decades.flat_map(|decade| [decade, decade * 5 / 2, decade * 5]).take(LAG_BUCKETS.len());
        assert!(micros.map(Duration::from_micros).eq(LAG_BUCKETS));
    }
}
