//! Samples of the number of pending timeouts.
//!
//! There are at most some hundreds of samples, however long the log is. They are in the order of
//! time, and the last one is at the end. A value is only computed if it is recorded.

/// The greatest number of samples, apart from the first and the last.
const MOST: u64 = 480;

/// A value over the seconds of a log.
#[derive(Debug, Clone)]
pub struct Samples {
    step: u64,
    points: Vec<(u64, u64)>,
}

impl Samples {
    /// Creates an empty series for a log of `span` seconds.
    #[must_use]
    pub fn new(span: u64) -> Self {
        Self { step: span.div_ceil(MOST).max(1), points: Vec::new() }
    }

    /// Records a value at `second`, unless the last sample is recent.
    pub fn at(&mut self, second: u64, value: impl FnOnce() -> u64) {
        if self.points.last().is_none_or(|(last, _)| second >= last.saturating_add(self.step)) {
            self.points.push((second, value()));
        }
    }

    /// Records the last value.
    pub fn end(&mut self, second: u64, value: u64) {
        self.points.retain(|(earlier, _)| *earlier < second);
        self.points.push((second, value));
    }

    /// Returns all samples as (second, value).
    #[must_use]
    pub fn points(&self) -> &[(u64, u64)] {
        &self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_gives_a_bounded_number_of_samples() {
        let mut samples = Samples::new(1_000_000);
        (0..=1_000_000).for_each(|second| samples.at(second, || second));
        samples.end(1_000_000, 0);
        let points = samples.points();
        assert!((400..=482).contains(&points.len()), "{}", points.len());
        assert_eq!((points[0], points.last()), ((0, 0), Some(&(1_000_000, 0))));
        assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn a_value_is_computed_only_if_it_is_recorded() {
        let mut samples = Samples::new(960);
        for second in [0, 1, 2, 2, 3, 9] {
            samples.at(second, || second);
        }
        assert_eq!(samples.points(), [(0, 0), (2, 2), (9, 9)]);
        samples.at(10, || unreachable!("too early"));
    }
}
