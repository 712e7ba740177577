//! What `sessions` reports at its end: the figures of its summary, as numbers.

use crate::cargo::Failure;

#[derive(Debug, PartialEq)]
pub(super) struct Summary {
    pub(super) scheduled: f64,
    pub(super) pending: f64,
    pub(super) expired: f64,
    pub(super) cancelled: f64,
    pub(super) rejected: f64,
    /// The 99th percentile of the lag, in seconds.
    pub(super) p99: f64,
}

impl Summary {
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        Self::find(text).ok_or_else(|| Failure::new(format!("the summary lacks counts or lag:\n{text}")))
    }

    fn find(text: &str) -> Option<Self> {
        let line = |begin: &str| text.lines().find_map(|line| line.strip_prefix(begin));
        let (counts, lag) = (line("counts ")?, line("lag ")?);
        let words: Vec<&str> = counts.split_whitespace().map(|word| word.trim_end_matches([',', ';'])).collect();
        let count = |name: &str| {
            let at = words.iter().position(|word| *word == name)?;
            words.get(at.checked_sub(1)?)?.replace(',', "").parse().ok()
        };
        Some(Self {
            scheduled: count("scheduled")?,
            pending: count("pending")?,
            expired: count("expired")?,
            cancelled: count("cancelled")?,
            rejected: count("rejected")?,
            p99: seconds(lag.split_once("p99 ")?.1.split(',').next()?)?,
        })
    }
}

/// `620 µs` is 0.00062.
fn seconds(time: &str) -> Option<f64> {
    let (value, unit) = time.split_once(' ')?;
    let one = match unit {
        "ns" => 1e9,
        "µs" => 1e6,
        "ms" => 1e3,
        "s" => 1.0,
        _ => return None,
    };
    Some(value.parse::<f64>().ok()? / one)
}

#[cfg(test)]
mod tests {
    use super::Summary;

    #[test]
    fn the_figures_are_found_in_the_summary() {
        let text = "timer     2,989 opened\nlag       p50 561 µs, p99 6.95 ms, max 17.4 ms, from a deadline until\n\
                    counts    3,060 scheduled = 1 pending + 3,058 expired + 1 cancelled; 7 rejected, 0 panics, 9 turns\n";
        let summary = Summary::parse(text).unwrap();
        assert_eq!((summary.scheduled, summary.pending, summary.expired), (3060.0, 1.0, 3058.0));
        assert_eq!((summary.cancelled, summary.rejected), (1.0, 7.0));
        assert!((summary.p99 - 0.00695).abs() < 1e-12);
        assert!(Summary::parse(&text.replace("counts", "count")).is_err());
        assert!(Summary::parse(&text.replace(" ms", " h")).is_err());
    }
}
