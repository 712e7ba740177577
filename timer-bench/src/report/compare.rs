//! Comparison of a run with an earlier one, which tells slower and faster figures of ours from
//! noise.
//!
//! The medians of the rounds are compared. A difference counts if it is more than 5 % and more than
//! the grain of the unit. It is beyond the noise if the ranges of the rounds do not overlap, and
//! within the noise if they do. One round has no range, so a figure with one round is not judged,
//! unless its unit hardly varies. The change of the other timers shows the change of the machine.

use super::results::{Results, Series};
use super::statistics::Summary;
use super::unit::{grain, is_steady, ratio};
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

/// The change of one figure, with the factor between the medians. It is below 1 if the figure is
/// better, and infinite if it was 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// The difference is too small to count.
    Same,
    /// The ranges of the rounds overlap.
    WithinNoise(f64),
    /// One of the runs has a single round, so its spread is not known.
    SingleRound(f64),
    /// The figure is better, beyond the noise.
    Faster(f64),
    /// The figure is worse, beyond the noise.
    Slower(f64),
}

/// Returns the change from `old` to `new`.
pub fn change(old: Summary, new: Summary, unit: &str) -> Change {
    let difference = new.median - old.median;
    if difference.abs() <= grain(unit) || difference.abs() <= LEAST * old.median.abs() {
        return Change::Same;
    }
    let factor = if old.median > 0.0 { new.median / old.median } else { f64::INFINITY };
    if old.rounds.min(new.rounds) == 1 && !is_steady(unit) {
        Change::SingleRound(factor)
    } else if new.min > old.max {
        Change::Slower(factor)
    } else if new.max < old.min {
        Change::Faster(factor)
    } else {
        Change::WithinNoise(factor)
    }
}

/// Returns the comparison as text.
pub fn report(name: &str, baseline: &Results, results: &Results) -> String {
    let (mut slower, mut faster, mut noise, mut single) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut others, mut compared) = (Vec::new(), 0);
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
            format!("  {workload:<4} {peer} {params}: {} -> {} {unit}{percent}\n", shown(old), shown(new))
        };
        match change(old, new, unit) {
            Change::Same => {}
            Change::Slower(factor) => slower.push(line(factor)),
            Change::Faster(factor) => faster.push(line(factor)),
            Change::WithinNoise(factor) => noise.push(line(factor)),
            Change::SingleRound(factor) => single.push(line(factor)),
        }
    }
    let mut text =
        format!("\nagainst {name} ({}): {compared} figures of ours, by their medians\n", baseline.machine.date);
    if baseline.machine.cpu != results.machine.cpu {
        text += &format!("another machine: {} then\n", baseline.machine.cpu);
    }
    if let Some(Summary { median, .. }) = Summary::of(&others) {
        text += &format!("the figures of the other timers are {median:.2} times as large, by the median\n");
    }
    for (title, lines) in [
        ("slower, beyond the noise", slower),
        ("faster, beyond the noise", faster),
        ("within noise, because the ranges of the rounds overlap", noise),
        ("not judged, because there is a single round", single),
    ] {
        text += &format!("{title}: {}\n{}", lines.len(), lines.concat());
    }
    text
}

/// Returns the median and, if there are several rounds, their range.
fn shown(summary: Summary) -> String {
    let Summary { median, min, max, rounds } = summary;
    let range = if rounds > 1 { format!(" ({}..{})", figure(min), figure(max)) } else { String::new() };
    figure(median) + &range
}

#[cfg(test)]
mod tests {
    use super::{Change, change, comparable, report};
    use crate::report::results::tests::results;
    use crate::report::statistics::Summary;
    use crate::row::Row;
    use crate::settings::Size;

    fn compared(old: &[f64], new: &[f64], unit: &str) -> Change {
        change(Summary::of(old).unwrap(), Summary::of(new).unwrap(), unit)
    }

    #[test]
    fn overlapping_rounds_are_noise() {
        assert_eq!(compared(&[50.0, 50.0, 80.0], &[50.0, 75.0, 90.0], "ns/a"), Change::WithinNoise(1.5));
        assert_eq!(compared(&[50.0, 60.0], &[75.0, 90.0], "ns/a"), Change::Slower(1.5));
        assert_eq!(compared(&[50.0, 60.0], &[40.0, 48.0], "ns/a"), Change::Faster(0.8));
    }

    #[test]
    fn a_few_percent_or_less_than_the_grain_is_noise() {
        assert_eq!(compared(&[100.0], &[104.0], "ns/a"), Change::Same);
        assert_eq!(compared(&[0.05], &[1.0], "ms-drain"), Change::Same);
        assert_eq!(compared(&[0.0, 0.0], &[30.0, 30.0], "ms-drain"), Change::Slower(f64::INFINITY));
    }

    #[test]
    fn a_single_round_is_judged_only_if_the_unit_hardly_varies() {
        assert_eq!(compared(&[50.0], &[75.0, 75.0], "ns/a"), Change::SingleRound(1.5));
        assert_eq!(compared(&[50.0, 50.0], &[75.0], "ns/a"), Change::SingleRound(1.5));
        assert_eq!(compared(&[50.0], &[75.0], "B-heap"), Change::Slower(1.5));
    }

    #[test]
    fn the_report_lists_ours_and_sums_up_the_others() {
        let twice = |lines: &str| results(&format!("{lines}\n{lines}"));
        let mut old = twice("timer W1 P=1 50 ns/a\ntimer W2 P=1 90 ns/b\ntokio W1 P=1 100 ns/a\ntimer W4 - 40 ns/c");
        let mut new = twice("timer W1 P=1 75 ns/a\ntimer W2 P=1 60 ns/b\ntokio W1 P=1 110 ns/a\ntimer W3 - 1 ms-late");
        old.add(vec![Row::parse("timer W5 - 20 ns/d").unwrap()]);
        new.add(
            ["timer W4 - 30 ns/c", "timer W4 - 50 ns/c", "timer W4 - 60 ns/c", "timer W5 - 10 ns/d"]
                .map(|line| Row::parse(line).unwrap())
                .to_vec(),
        );
        let text = report("before", &old, &new);
        assert!(text.contains("against before") && text.contains("4 figures of ours"));
        let w1 = "  W1   timer P=1: 50.00 (50.00..50.00) -> 75.00 (75.00..75.00) ns/a (+50 %)\n";
        assert!(text.contains(&format!("slower, beyond the noise: 1\n{w1}")), "{text}");
        assert!(text.contains("faster, beyond the noise: 1\n  W2   timer P=1: 90.00"));
        assert!(
            text.contains("overlap: 1\n  W4   timer -: 40.00 (40.00..40.00) -> 50.00 (30.00..60.00) ns/c (+25 %)\n")
        );
        assert!(text.contains("single round: 1\n  W5   timer -: 20.00 -> 10.00 ns/d (-50 %)\n"));
        assert!(text.contains("the figures of the other timers are 1.10 times as large"));
    }

    #[test]
    fn quick_and_full_runs_are_not_compared() {
        let full = results("");
        assert!(comparable(&full, Size::Full).is_ok());
        assert!(comparable(&full, Size::Quick).unwrap_err().contains("full"));
    }
}
