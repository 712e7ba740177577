//! Quantiles of many samples by sorting.

/// Returns the smallest sample that at least the share `q` of all samples does not exceed, or 0
/// without samples. `sorted` is in ascending order.
pub(super) fn quantile<T: Copy + Default>(sorted: &[T], q: f64) -> T {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn a_quantile_is_the_sample_of_its_rank() {
        let sorted: Vec<u32> = (1..=1_000).collect();
        assert_eq!([0.0, 0.5, 0.99, 0.999, 1.0].map(|q| quantile(&sorted, q)), [1, 500, 990, 999, 1_000]);
        assert_eq!(quantile(&[7], 0.5), 7);
        assert_eq!(quantile::<u32>(&[], 0.5), 0);
    }
}
