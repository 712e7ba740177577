//! The line format `PEER WORKLOAD PARAMS VALUE UNIT`, which `workload` prints and `bench-report`
//! reads.

use std::fmt;

/// One figure, or the reason why there is none.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The name of the timer.
    pub peer: String,
    /// A name from [`WORKLOADS`](crate::registry::WORKLOADS).
    pub workload: String,
    /// `name=value` pairs joined by commas, or `-`.
    pub params: String,
    /// The figure, or the reason why there is none.
    pub value: Result<f64, String>,
    /// The unit with the counted thing, such as `ns/schedule`, or `-` if the peer cannot do the
    /// workload at all.
    pub unit: String,
}

impl Row {
    /// Parses a line. Returns `None` if it is not a row.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.trim().splitn(6, ' ');
        let mut word = || words.next().map(str::to_owned);
        let peer = word()?;
        let workload = word()?;
        let params = word()?;
        let value = word()?;
        let unit = word()?;
        let value = match value.as_str() {
            "n/a" => Err(word().unwrap_or_default()),
            number => Ok(number.parse().ok().filter(|number: &f64| number.is_finite())?),
        };
        Some(Self { peer, workload, params, value, unit })
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { peer, workload, params, value, unit } = self;
        match value {
            Ok(value) => write!(f, "{peer} {workload} {params} {} {unit}", figure(*value)),
            Err(reason) => write!(f, "{peer} {workload} {params} n/a {unit} {reason}"),
        }
    }
}

/// Formats a figure with a readable number of digits.
pub fn figure(value: f64) -> String {
    let digits = match value.abs() {
        size if size == 0.0 || size >= 1_000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 1.0 => 2,
        _ => 4,
    };
    format!("{value:.digits$}")
}

/// Formats round counts as `1k`, `100k` or `1M`, and others in full.
pub fn short(count: usize) -> String {
    match count {
        count if count > 0 && count.is_multiple_of(1_000_000) => format!("{}M", count / 1_000_000),
        count if count > 0 && count.is_multiple_of(1_000) => format!("{}k", count / 1_000),
        count => count.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Row, figure, short};

    fn row(value: Result<f64, String>) -> Row {
        let [peer, workload, params, unit] = ["timer", "W1", "n=1M,P=2", "ns/schedule"].map(str::to_owned);
        Row { peer, workload, params, value, unit }
    }

    #[test]
    fn printed_rows_are_parsed_back() {
        for row in [row(Ok(57.25)), row(Ok(0.0)), row(Err("has no reset of its own".to_owned()))] {
            assert_eq!(Row::parse(&row.to_string()), Some(row));
        }
        assert_eq!(row(Ok(57.25)).to_string(), "timer W1 n=1M,P=2 57.25 ns/schedule");
    }

    #[test]
    fn other_lines_are_not_rows() {
        for line in ["", "thread panicked", "a b c d e", "a W1 - NaN ns", "a W1 - inf ns"] {
            assert_eq!(Row::parse(line), None, "{line}");
        }
    }

    #[test]
    fn figures_have_significant_digits_only() {
        let figures = [0.0, 0.01234, 1.0, 57.321, 123.45, 12_345.6].map(figure);
        assert_eq!(figures, ["0", "0.0123", "1.00", "57.32", "123.5", "12346"]);
    }

    #[test]
    fn round_counts_are_short() {
        assert_eq!(
            [0, 999, 1_000, 1_500, 200_000, 1_000_000, 100_000_000].map(short),
            ["0", "999", "1k", "1500", "200k", "1M", "100M"]
        );
    }
}
