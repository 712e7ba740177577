//! The bounds that a run of ours must keep. Their figures have no counterpart in other timers, or
//! are zero.

use super::results::{Results, Series};
use super::summary::markdown;
use crate::peer::OURS;
use crate::row::figure;

/// A figure of ours and its bound.
struct Bound {
    title: &'static str,
    workload: &'static str,
    params: &'static str,
    unit: &'static str,
    at_most: Limit,
}

enum Limit {
    Value(f64),
    /// Twice the same figure with these parameters.
    TwiceThatOf(&'static str),
}

const fn bound(
    workload: &'static str,
    params: &'static str,
    unit: &'static str,
    title: &'static str,
    at_most: f64,
) -> Bound {
    Bound { title, workload, params, unit, at_most: Limit::Value(at_most) }
}

const fn beside_neighbor(params: &'static str, unit: &'static str, title: &'static str) -> Bound {
    Bound { title, workload: "durable-neighbor", params, unit, at_most: Limit::TwiceThatOf("neighbor=none") }
}

const BOUNDS: &[Bound] = &[
    bound("lateness", "", "early", "timeouts that ran early", 0.0),
    bound("overload", "threads=64", "ms-lag-max", "64 threads that cancel nothing, worst lag, ms", 100.0),
    bound("overload", "threads=64", "ms-lag-max-after", "the same from 1 s after a stall of 1 s, ms", 100.0),
    bound("idle", "n=1", "switches/s", "idle, wake-ups per second", 0.0),
    bound("idle", "n=1M", "switches/s", "a million pending, nothing due, wake-ups per second", 0.0),
    bound("idle", "n=1M", "cpu-ms/s", "the same, CPU ms per second", 0.1),
    bound("instructions", "op=expiry", "instructions", "instructions of an expiry", 700.0),
    bound("held", "case=1", "us-held-max", "longest hold of a lock, a late round, us", 1_000.0),
    bound("held", "case=2", "us-held-max", "longest hold of a lock, a cascade of 3 million, us", 1_000.0),
    bound("durable-sqlite", "", "early", "SQLite, timeouts that ran early", 0.0),
    bound("durable-postgres", "", "early", "PostgreSQL, timeouts that ran early", 0.0),
    beside_neighbor("neighbor=hangs", "us-p50", "SQLite, lag beside a topic that hangs, p50, us"),
    beside_neighbor("neighbor=hangs", "us-p99", "the same, p99, us"),
    beside_neighbor("neighbor=paused", "us-p50", "SQLite, lag beside 20,000 of a paused topic, p50, us"),
    beside_neighbor("neighbor=paused", "us-p99", "the same, p99, us"),
];

/// Returns the bounds in Markdown. Each bound that has a figure gets a row, which says whether it
/// was kept.
pub(super) fn table(results: &Results) -> String {
    let mut rows = vec![["bound", "timer", "at most", "kept"].map(str::to_owned)];
    for Bound { title, workload, params, unit, at_most } in BOUNDS {
        let worst = |params: &'static str| {
            let ours = results.of(workload, params, unit).filter(|one| one.peer == OURS);
            ours.filter_map(Series::summary).map(|summary| summary.median).max_by(f64::total_cmp)
        };
        let at_most = match at_most {
            Limit::Value(value) => Some(*value),
            Limit::TwiceThatOf(params) => worst(params).map(|value| 2.0 * value),
        };
        let Some((value, at_most)) = worst(params).zip(at_most) else { continue };
        let kept = if value <= at_most { "yes" } else { "NO" };
        rows.push([(*title).to_owned(), figure(value), figure(at_most), kept.to_owned()]);
    }
    markdown(&rows)
}

#[cfg(test)]
mod tests {
    use super::table;
    use crate::report::results::tests::results;

    #[test]
    fn a_bound_says_whether_it_was_kept() {
        let results = results(
            "timer lateness tick=1ms 0 early\ntimer lateness tick=10us 3 early\ntokio lateness tick=1ms 9 early\n\
             timer idle n=1M 0 switches/s\ntokio held case=1 5 us-held-max\n\
             timer durable-neighbor neighbor=none 800 us-p50\ntimer durable-neighbor neighbor=hangs 1601 us-p50\n\
             timer durable-neighbor neighbor=paused 1600 us-p50\ntimer durable-neighbor neighbor=paused 1 us-p99",
        );
        let words: Vec<String> =
            table(&results).lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(words[2], "| timeouts that ran early | 3.00 | 0 | NO |");
        assert_eq!(words[3], "| a million pending, nothing due, wake-ups per second | 0 | 0 | yes |");
        assert_eq!(words[4], "| SQLite, lag beside a topic that hangs, p50, us | 1601 | 1600 | NO |");
        assert_eq!(words[5], "| SQLite, lag beside 20,000 of a paused topic, p50, us | 1600 | 1600 | yes |");
        assert_eq!(words.len(), 6, "a bound without a figure of ours is left out");
    }
}
