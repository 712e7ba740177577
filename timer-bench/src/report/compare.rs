//! Comparison of a run with an earlier one, which tells slower and faster figures of ours from
//! noise.
//!
//! A difference is beyond the noise if every round of one run is worse than every round of the
//! other and the medians differ by more than 5 % and by more than the grain of the unit. The change
//! of the other timers shows the change of the machine.

use super::results::{Results, Series};
use super::statistics::Summary;
use super::unit::{grain, ratio};
use crate::peers::OURS;
use crate::row::figure;
use crate::settings::Size;

/// The least relative difference that counts, whatever the rounds say.
const LEAST: f64 = 0.05;

/// Checks that a run of this size can be compared with `baseline`.
///
/// # Errors
///
/// Fails if one run is quick and the other is not.
pub fn comparable(baseline: &Results, size: Size) -> Result<(), String> {
    match (baseline.size(), size) {
        (Size::Full, Size::Quick) => {
            Err("the baseline was a full run, this is a quick one: nothing to compare".to_owned())
        }
        (Size::Quick, Size::Full) => {
            Err("the baseline was a quick run, this is a full one: nothing to compare".to_owned())
        }
        _ => Ok(()),
    }
}

/// The change of one figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// The difference is within the noise.
    Same,
    /// The figure is better by this factor, which is below 1.
    Faster(f64),
    /// The figure is worse by this factor, which is above 1 or infinite.
    Slower(f64),
}

/// Returns the change from `old` to `new`.
pub fn change(old: Summary, new: Summary, unit: &str) -> Change {
    let difference = new.median - old.median;
    if difference.abs() <= grain(unit) || difference.abs() <= LEAST * old.median.abs() {
        return Change::Same;
    }
    let factor = if old.median > 0.0 { new.median / old.median } else { f64::INFINITY };
    if new.min > old.max {
        Change::Slower(factor)
    } else if new.max < old.min {
        Change::Faster(factor)
    } else {
        Change::Same
    }
}

/// Returns the comparison as text.
pub fn report(name: &str, baseline: &Results, results: &Results) -> String {
    let (mut slower, mut faster, mut others, mut compared) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for series in results.series.iter().filter(|series| !series.is_over_time()) {
        let Series { peer, workload, params, unit, .. } = series;
        let old = baseline.find(peer, workload, params, unit).and_then(Series::summary);
        let Some((old, new)) = old.zip(series.summary()) else {
            continue;
        };
        if !peer.starts_with(OURS) {
            others.extend(ratio(new.median, old.median, unit));
            continue;
        }
        compared += 1;
        let line = |factor: f64| {
            let percent =
                if factor.is_finite() { format!(" ({:+.0} %)", (factor - 1.0) * 100.0) } else { String::new() };
            let (old, new) = (figure(old.median), figure(new.median));
            format!("  {workload:<4} {peer} {params}: {old} -> {new} {unit}{percent}\n")
        };
        match change(old, new, unit) {
            Change::Same => {}
            Change::Slower(factor) => slower.push(line(factor)),
            Change::Faster(factor) => faster.push(line(factor)),
        }
    }
    let mut text = format!("\nagainst {name} ({}): {compared} figures of ours\n", baseline.machine.date);
    if baseline.machine.cpu != results.machine.cpu {
        text += &format!("another machine: {} then\n", baseline.machine.cpu);
    }
    if let Some(Summary { median, .. }) = Summary::of(&others) {
        text += &format!("the figures of the other timers are {median:.2} times as large, by the median\n");
    }
    for (title, lines) in [("slower, beyond the noise", slower), ("faster, beyond the noise", faster)] {
        text += &format!("{title}: {}\n{}", lines.len(), lines.concat());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Change, change, comparable, report};
    use crate::report::results::tests::results;
    use crate::report::statistics::Summary;
    use crate::settings::Size;

    fn compared(old: &[f64], new: &[f64], unit: &str) -> Change {
        change(Summary::of(old).unwrap(), Summary::of(new).unwrap(), unit)
    }

    #[test]
    fn overlapping_rounds_are_noise() {
        assert_eq!(compared(&[50.0, 60.0], &[59.0, 80.0], "ns/a"), Change::Same);
        assert_eq!(compared(&[50.0, 60.0], &[75.0, 90.0], "ns/a"), Change::Slower(1.5));
        assert_eq!(compared(&[50.0, 60.0], &[40.0, 48.0], "ns/a"), Change::Faster(0.8));
    }

    #[test]
    fn a_few_percent_or_less_than_the_grain_is_noise() {
        assert_eq!(compared(&[100.0], &[104.0], "ns/a"), Change::Same);
        assert_eq!(compared(&[0.05], &[1.0], "ms-drain"), Change::Same);
        assert_eq!(compared(&[0.0], &[30.0], "ms-drain"), Change::Slower(f64::INFINITY));
    }

    #[test]
    fn the_report_lists_ours_and_sums_up_the_others() {
        let old = results("timer W1 P=1 50 ns/a\ntimer W2 P=1 90 ns/b\ntokio W1 P=1 100 ns/a");
        let new = results("timer W1 P=1 75 ns/a\ntimer W2 P=1 60 ns/b\ntokio W1 P=1 110 ns/a\ntimer W3 - 1 ms-late");
        let text = report("before", &old, &new);
        assert!(text.contains("against before") && text.contains("2 figures of ours"));
        assert!(text.contains("slower, beyond the noise: 1\n  W1   timer P=1: 50.00 -> 75.00 ns/a (+50 %)\n"));
        assert!(text.contains("faster, beyond the noise: 1\n  W2   timer P=1: 90.00 -> 60.00 ns/b (-33 %)\n"));
        assert!(text.contains("the figures of the other timers are 1.10 times as large"));
    }

    #[test]
    fn quick_and_full_runs_are_not_compared() {
        let full = results("");
        assert!(comparable(&full, Size::Full).is_ok());
        assert!(comparable(&full, Size::Quick).unwrap_err().contains("full"));
    }
}
