//! Tables for the terminal. Each workload has a block of lines per unit, with a line per peer and a
//! group of columns per case.

use super::goals;
use super::machine::Machine;
use super::results::{Results, Series};
use super::statistics::Summary;
use super::unit::grain;
use crate::row::figure;

/// The greatest number of cases side by side.
const CASES_PER_BLOCK: usize = 3;

/// Returns the description of the machine.
pub fn header(machine: &Machine) -> String {
    let Machine { cpu, cores, memory_gib, kernel, rustc, commit, versions, date, busy } = machine;
    let versions: Vec<String> = versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let mut text = format!("{date}, {cpu}, {cores} cores, {memory_gib} GiB, {kernel}, {rustc}\n");
    text += &format!("{}; commit {commit}\n", versions.join(", "));
    if *busy > 0.3 {
        text += &format!("{busy} CPUs were busy just before the run. Do not trust the figures.\n");
    }
    text
}

/// Returns all tables of one workload, or an empty text if it was not run.
pub fn workload(results: &Results, name: &str, what: &str) -> String {
    let mut text = String::new();
    if results.of(name).next().is_none() {
        return text;
    }
    text += &format!("\n{name} {what}\n");
    let peers = distinct(results.of(name).map(|series| series.peer.as_str()));
    for unit in distinct(results.of(name).map(|series| series.unit.as_str())) {
        let of_unit = results.of(name).filter(|series| series.unit == unit);
        let cases =
            distinct(of_unit.clone().filter(|series| !series.samples.is_empty()).map(|one| one.params.as_str()));
        let blocks = cases.len().div_ceil(CASES_PER_BLOCK).max(1);
        for cases in cases.chunks(cases.len().div_ceil(blocks).max(1)) {
            text += &aligned(&block(results, name, unit, cases, &peers));
        }
    }
    for series in results.of(name).filter(|series| series.unavailable.is_some()) {
        let Series { peer, params, unit, unavailable, .. } = series;
        let what: Vec<&str> = [params.as_str(), unit].into_iter().filter(|word| *word != "-").collect();
        let colon = if what.is_empty() { "" } else { ": " };
        text += &format!("n/a  {peer}: {}{colon}{}\n", what.join(" "), unavailable.as_deref().unwrap_or_default());
    }
    text + &goals::lines(results, name)
}

/// Returns the lines of one unit, which are a heading and a line for each peer with a figure in one
/// of the cases. If all medians are below the grain of the unit, there is one line in all.
fn block(results: &Results, name: &str, unit: &str, cases: &[&str], peers: &[&str]) -> Vec<Vec<String>> {
    let (common, own) = common(cases);
    let title = format!("{unit} {common}").trim_end().to_owned();
    let found = |peer: &str| cases.iter().map(|case| results.find(peer, name, case, unit)).collect::<Vec<_>>();
    let medians = peers.iter().flat_map(|peer| found(peer)).flatten().filter_map(Series::summary);
    if medians.clone().next().is_some() && medians.clone().all(|summary| summary.median.abs() < grain(unit)) {
        let most = medians.map(|summary| summary.median).fold(0.0, f64::max);
        return vec![vec![format!("{title} {}: next to nothing for all, at most {}", own.join(" "), figure(most))]];
    }
    let mut heading = vec![title];
    for case in own {
        heading.extend([case, "min..max".to_owned(), "ratio".to_owned()]);
    }
    let mut lines = vec![heading];
    for peer in peers {
        let found = found(peer);
        if found.iter().any(Option::is_some) {
            let mut line = vec![(*peer).to_owned()];
            found.iter().for_each(|series| line.extend(cells(results, *series)));
            lines.push(line);
        }
    }
    lines
}

/// Returns the parameters that all cases share, and the remaining ones of each case.
fn common(cases: &[&str]) -> (String, Vec<String>) {
    let shared = |param: &&str| cases.iter().all(|case| case.split(',').any(|other| other == *param));
    let [first, _, ..] = cases else {
        return (String::new(), cases.iter().map(|case| (*case).to_owned()).collect());
    };
    let rest = |case: &&str| case.split(',').filter(|param| !shared(param)).collect::<Vec<_>>().join(",");
    (first.split(',').filter(shared).collect::<Vec<_>>().join(","), cases.iter().map(rest).collect())
}

/// Returns median, spread and ratio.
fn cells(results: &Results, series: Option<&Series>) -> [String; 3] {
    let Some((series, Summary { median, min, max, .. })) = series.and_then(|series| Some((series, series.summary()?)))
    else {
        return ["n/a".to_owned(), String::new(), String::new()];
    };
    let spread = if series.samples.len() > 1 { format!("{}..{}", figure(min), figure(max)) } else { String::new() };
    let ratio = results.ratio(series).map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
    [figure(median), spread, ratio]
}

/// Pads columns to their widest cell. The first column is left-aligned, the others are
/// right-aligned.
fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column| lines.iter().filter_map(|line: &Vec<String>| line.get(column)).map(String::len).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for line in lines {
        let mut padded = String::new();
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            padded += &if column == 0 { format!("  {cell:<width$}") } else { format!("  {cell:>width$}") };
        }
        text += padded.trim_end();
        text.push('\n');
    }
    text
}

/// Returns each item once, in the order of the first occurrence.
pub(super) fn distinct<'a>(all: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut distinct = Vec::new();
    for one in all {
        if !distinct.contains(&one) {
            distinct.push(one);
        }
    }
    distinct
}

#[cfg(test)]
mod tests {
    use super::workload;
    use crate::report::results::tests::results;

    #[test]
    fn a_table_has_medians_spread_and_ratios() {
        let results = results(
            "timer W1 P=1 50 ns/a\ntimer W1 P=2 25 ns/a\ntokio W1 P=1 200 ns/a\ntokio W1 P=1 100 ns/a\n\
             tokio W1 P=2 n/a ns/a broken\ntokio W1 P=2 n/a ns/a broken\nheap W1 - n/a - cannot",
        );
        let expected = "\nW1 what it is\n\
            \x20 ns/a     P=1      min..max  ratio    P=2  min..max  ratio\n\
            \x20 timer  50.00                 1.00  25.00             1.00\n\
            \x20 tokio  150.0  100.0..200.0   3.00    n/a\n\
            n/a  tokio: P=2 ns/a: broken\n\
            n/a  heap: cannot\n";
        assert_eq!(workload(&results, "W1", "what it is"), expected);
    }

    #[test]
    fn many_cases_are_split_into_equal_blocks() {
        let lines: Vec<String> = (0..4).map(|case| format!("timer W2 P={case} 1 ns/a")).collect();
        let table = workload(&results(&lines.join("\n")), "W2", "");
        let headings: Vec<_> = table.lines().filter(|line| line.contains("min..max")).collect();
        assert_eq!(headings.len(), 2);
        assert!(headings.iter().all(|heading| heading.matches("P=").count() == 2));
    }

    #[test]
    fn shared_parameters_occur_once() {
        let table = workload(&results("timer W2 n=3,P=1 10 ns/a\ntimer W2 n=3,P=2 10 ns/a"), "W2", "");
        let words: Vec<_> =
            table.lines().find(|line| line.contains("ns/a")).into_iter().flat_map(str::split_whitespace).collect();
        assert_eq!(words, ["ns/a", "n=3", "P=1", "min..max", "ratio", "P=2", "min..max", "ratio"]);
    }

    #[test]
    fn negligible_figures_are_one_line() {
        let table = workload(&results("timer W2 n=3 0 ms-drain\ntokio W2 n=3 1.5 ms-drain"), "W2", "");
        assert_eq!(table.lines().count(), 3);
        assert!(table.contains("next to nothing for all, at most 1.50"));
    }

    #[test]
    fn a_workload_that_was_not_run_has_no_table() {
        assert_eq!(workload(&results("timer W1 - 1 ns/a"), "W2", "x"), "");
    }
}
