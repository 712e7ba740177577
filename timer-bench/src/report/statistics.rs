//! Summaries of the samples of all rounds.

/// The median and the extremes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// The median.
    pub median: f64,
    /// The least sample.
    pub min: f64,
    /// The greatest sample.
    pub max: f64,
    /// The number of samples.
    pub rounds: usize,
}

impl Summary {
    /// Returns the summary of `samples`, or `None` if there are none.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
        Some(Self { median, min, max, rounds: sorted.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::Summary;

    #[test]
    fn the_median_is_the_middle_or_between_two() {
        let summary = Summary::of(&[9.0, 1.0, 2.0]).unwrap();
        assert_eq!(summary, Summary { median: 2.0, min: 1.0, max: 9.0, rounds: 3 });
        assert_eq!(Summary::of(&[4.0, 1.0, 2.0, 9.0]).unwrap().median, 3.0);
        assert_eq!(Summary::of(&[7.0]), Some(Summary { median: 7.0, min: 7.0, max: 7.0, rounds: 1 }));
    }

    #[test]
    fn no_samples_have_no_median() {
        assert_eq!(Summary::of(&[]), None);
    }
}
