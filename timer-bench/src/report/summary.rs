//! The table of ours beside other timers, and the comparison with a kept run.

use super::results::{Results, Series, Summary};
use crate::peer::{FLOOR, OURS, STATIC};
use crate::row::figure;

/// A line of the table.
pub(super) struct Line {
    pub(super) title: &'static str,
    pub(super) workload: &'static str,
    pub(super) params: &'static str,
    pub(super) unit: &'static str,
    /// The plot that shows the line, if one does.
    pub(super) plot: &'static str,
    /// The peer that the line compares with, or an empty text for the best other timer.
    other: &'static str,
}

const fn line(workload: &'static str, params: &'static str, unit: &'static str, title: &'static str) -> Line {
    Line { title, workload, params, unit, plot: "", other: "" }
}

const fn shown(plot: &'static str, mut line: Line) -> Line {
    line.plot = plot;
    line
}

const fn beside(other: &'static str, mut line: Line) -> Line {
    line.other = other;
    line
}

pub(super) const LINES: &[Line] = &[
    shown("timers", line("schedule", "threads=1", "ns/call", "schedule, 1 thread, ns")),
    line("schedule", "threads=2", "ns/call", "schedule, 2 threads, ns"),
    line("schedule", "threads=1,mimalloc", "ns/call", "schedule, 1 thread, mimalloc, ns"),
    beside(STATIC, line("schedule", "threads=1,mimalloc", "cpu-ns/call", "the same, static, CPU ns")),
    shown("timers", line("pair", "threads=1", "ns/pair", "schedule and cancel, 1 thread, ns")),
    shown("timers", line("pair", "threads=2", "ns/pair", "schedule and cancel, 2 threads, ns")),
    line("pair", "threads=4", "ns/pair", "schedule and cancel, 4 threads, ns"),
    beside(STATIC, line("pair", "threads=1,mimalloc", "cpu-ns/pair", "schedule and cancel, static, CPU ns")),
    shown("timers", line("reset", "threads=1", "ns/reset", "reset, 1 thread, ns")),
    line("reset", "threads=2", "ns/reset", "reset, 2 threads, ns"),
    beside(STATIC, line("reset", "threads=1,mimalloc", "cpu-ns/reset", "reset, static, CPU ns")),
    shown("timers", line("cancel", "", "cpu-ns/cancel", "cancel a million in random order, CPU ns")),
    line("cancel", "mimalloc", "cpu-ns/cancel", "the same with mimalloc, CPU ns"),
    beside(STATIC, line("cancel", "mimalloc", "cpu-ns/cancel", "the same, static, CPU ns")),
    line("crowd", "", "ms-late", "a million due in 200 ms, the last is late by ms"),
    shown("timers", line("crowd", "", "cpu-s", "a million due in 200 ms, CPU s")),
    line("lateness", "tick=1ms", "us-p99", "lateness at a tick of 1 ms, p99, us"),
    line("lateness", "tick=1us", "us-p99", "lateness at the finest tick, p99, us"),
    shown("timers", line("busy", "", "ns-p99.9", "a call while 100,000 a second fire, p99.9, ns")),
    line("overload", "threads=8", "ns/pair", "8 threads at full speed on all CPUs, a pair, ns"),
    line("overload", "threads=8", "us-p99.9", "the same, a call, p99.9, us"),
    line("overload", "threads=8", "ms-lag-max", "the same, worst lag, ms"),
    shown("timers", line("memory", "", "B-heap", "memory of a pending timer, bytes")),
    line("futures", "workers=1,fresh", "ns/wait", "a wait with a limit, 1 worker, ns"),
    line("futures", "workers=2,fresh", "ns/wait", "a wait with a limit, 2 workers, ns"),
    line("futures", "workers=2,reset", "ns/wait", "the same with one sleep that is reset, ns"),
    line("sleepers", "", "ms-late", "a million sleepers, the last is late by ms"),
    line("queue", "", "cpu-ns/insert", "delay queue, insert a million, CPU ns"),
    line("queue", "", "cpu-ns/pair", "delay queue, insert and remove, CPU ns"),
    line("queue", "", "cpu-ns/reset", "delay queue, reset among a million, CPU ns"),
    line("queue", "", "cpu-ns/expired", "delay queue, an item that comes out, CPU ns"),
    line("ttl", "cluster=all", "cpu-ns/call", "cache, a call, median of 23 clusters, CPU ns"),
    line("ttl", "awaited=all", "cpu-ns/call", "the same, a task waits for expirations, CPU ns"),
    line("ttl", "awaited=27", "us-p99", "cache, lateness of an expiration, p99, us"),
    line("ttl", "", "B/entry", "cache, memory of an entry, bytes"),
    line("instructions", "op=pair", "instructions", "instructions of a schedule and cancel"),
    line("durable-sqlite", "callers=1", "schedules/s", "SQLite, 1 caller, schedules per second"),
    shown("durable", line("durable-sqlite", "callers=64", "schedules/s", "SQLite, 64 callers, schedules per second")),
    shown("durable", line("durable-sqlite", "", "lives/s", "SQLite, 512 in flight, lives per second")),
    shown("durable", line("durable-sqlite", "", "us-p99", "SQLite, lag at 1,000 a second, p99, us")),
    line("durable-postgres", "callers=1", "schedules/s", "PostgreSQL, 1 caller, schedules per second"),
    shown(
        "durable",
        line("durable-postgres", "callers=64", "schedules/s", "PostgreSQL, 64 callers, schedules per second"),
    ),
    line("durable-postgres", "delay=1000ms", "us-late-p50", "PostgreSQL, a delay of 1 s is late by, p50, us"),
    line("durable-postgres", "delay=5000ms", "us-late-p50", "PostgreSQL, a delay of 5 s is late by, p50, us"),
    shown("durable", line("durable-postgres", "", "lives/s", "PostgreSQL, 512 in flight, lives per second")),
    shown("durable", line("durable-postgres", "", "us-p99", "PostgreSQL, lag at 1,000 a second, p99, us")),
];

/// Returns the table in Markdown, a row for each line that has a figure of ours. The ratio says how
/// many times better ours is than the best other timer. The last column has the largest share of
/// the CPU time that the host took in a round of either.
pub(super) fn table(results: &Results) -> String {
    let mut rows = vec![["", "timer", "best other", "ratio", "stolen"].map(str::to_owned)];
    for line in LINES {
        let is_rate = ["schedules/s", "lives/s"].contains(&line.unit);
        let mut best: Option<(f64, &Series)> = None;
        let mut ours = None;
        for one in results.of(line.workload, line.params, line.unit) {
            let Some(Summary { median, .. }) = one.summary() else { continue };
            let is_better = best.is_none_or(|(other, _)| if is_rate { median > other } else { median < other });
            match one.peer.as_str() {
                OURS => ours = Some((median, one.stolen)),
                FLOOR => {}
                peer if peer == line.other => best = Some((median, one)),
                peer if line.other.is_empty() && !peer.starts_with(OURS) && is_better => best = Some((median, one)),
                _ => {}
            }
        }
        let Some((ours, mut stolen)) = ours else { continue };
        let mut other = String::new();
        let mut ratio = String::new();
        if let Some((median, series)) = best {
            other = format!("{} ({})", figure(median), series.peer);
            stolen = stolen.max(series.stolen);
            if ours.min(median) > 0.05 {
                ratio = format!("{:.2}", if is_rate { ours / median } else { median / ours });
            }
        }
        rows.push([line.title.to_owned(), figure(ours), other, ratio, format!("{stolen:.1} %")]);
    }
    markdown(&rows)
}

/// Returns a table in Markdown. The first row is its head.
pub(super) fn markdown<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..COLUMNS).map(width).collect();
    let mut text = String::new();
    for (at, row) in rows.iter().enumerate() {
        let cells: Vec<_> = row.iter().zip(&widths).map(|(cell, width)| format!(" {cell:<width$} ")).collect();
        text += &format!("|{}|\n", cells.join("|"));
        if at == 0 {
            text += &format!("|{}|\n", widths.iter().map(|width| "-".repeat(width + 2)).collect::<Vec<_>>().join("|"));
        }
    }
    text
}

/// The rows of the README, each with the work, the unit, and the title of its line of the table.
/// The second line is in parentheses.
const README: &[(&str, &str, [&str; 2])] = &[
    ("schedule and cancel, 1 thread", "ns", ["schedule and cancel, 1 thread, ns", ""]),
    ("schedule and cancel, 2 threads", "ns", ["schedule and cancel, 2 threads, ns", ""]),
    (
        "cancel a million in random order, CPU time (with mimalloc)",
        "ns",
        ["cancel a million in random order, CPU ns", "the same with mimalloc, CPU ns"],
    ),
    (
        "a million due within 200 ms, the last one late by",
        "ms",
        ["a million due in 200 ms, the last is late by ms", ""],
    ),
    ("heap per timeout", "bytes", ["memory of a pending timer, bytes", ""]),
];

/// Returns the rows of the README's table, the figures of `choosing.md`, and the lags of
/// `promises.md`.
pub(super) fn documents(results: &Results) -> String {
    let medians = |title: &str| -> Vec<(&str, f64)> {
        let line = LINES.iter().find(|line| line.title == title);
        let series = line.into_iter().flat_map(|line| results.of(line.workload, line.params, line.unit));
        series.filter_map(|one| Some((one.peer.as_str(), one.summary()?.median))).collect()
    };
    let of = |title: &str, peer: &str| {
        let found = medians(title).into_iter().find(|(name, _)| *name == peer);
        found.map(|(_, median)| rounded(median))
    };
    let mut text = String::new();
    for (work, unit, [first, second]) in README {
        let both = |peer| {
            let Some(one) = of(first, peer) else { return "?".to_owned() };
            format!("{one}{} {unit}", of(second, peer).map_or(String::new(), |other| format!(" ({other})")))
        };
        let others =
            medians(first).into_iter().filter(|(peer, _)| !peer.starts_with(OURS) && ![FLOOR, "tokio"].contains(peer));
        let best = others.min_by(|one, other| one.1.total_cmp(&other.1));
        let best = best.map_or("?".to_owned(), |(peer, median)| format!("{} {unit}, {peer}", rounded(median)));
        text += &format!("| {work} | {} | {} | {best} |\n", both(OURS), both("tokio"));
    }
    for title in ["schedule, 1 thread, ns", README[0].2[0], "a million due in 200 ms, CPU s"] {
        let [ours, hashed] = [OURS, "timer-hashed"].map(|peer| of(title, peer).unwrap_or("?".to_owned()));
        text += &format!("| {title} | {ours} | {hashed} |\n");
    }
    for (workload, peer, unit) in [
        ("durable-sqlite", OURS, "us-p50"),
        ("durable-sqlite", OURS, "us-p99"),
        ("durable-sqlite", FLOOR, "schedules/s"),
        ("durable-postgres", OURS, "us-p50"),
        ("durable-postgres", OURS, "us-p99"),
    ] {
        let found = results.of(workload, "", unit).find(|one| one.peer == peer).and_then(Series::summary);
        text += &format!("{workload} {peer}: {} {unit}\n", found.map_or("?".to_owned(), |one| rounded(one.median)));
    }
    text
}

/// Formats a figure with two or three digits.
fn rounded(value: f64) -> String {
    if value < 10.0 { format!("{:.*}", if value < 1.0 { 2 } else { 1 }, value) } else { format!("{value:.0}") }
}

/// Returns the figures of ours that differ from those of `kept` by more than 5 % and by more than
/// the rounds do.
pub(super) fn comparison(kept: &Results, results: &Results) -> String {
    let mut text = String::new();
    for new in results.0.iter().filter(|one| one.peer.starts_with(OURS) && !one.params.contains(",t=")) {
        let is_same = |one: &&_| {
            let Series { workload, peer, params, unit, .. } = one;
            (workload, peer, params, unit) == (&new.workload, &new.peer, &new.params, &new.unit)
        };
        let Some((before, after)) = kept.0.iter().find(is_same).and_then(|old| old.summary().zip(new.summary())) else {
            continue;
        };
        let is_apart = after.min > before.max || after.max < before.min;
        if is_apart && (after.median - before.median).abs() > 0.05 * before.median.abs() {
            let old = figure(before.median);
            let now = figure(after.median);
            text += &format!("{} {} {}: {old} -> {now} {}\n", new.workload, new.peer, new.params, new.unit);
        }
    }
    if text.is_empty() { "no figure of ours differs beyond the rounds and 5 %\n".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::{comparison, documents, table};
    use crate::report::results::tests::results;

    #[test]
    fn a_row_names_the_best_other_timer() {
        let mut results = results(
            "timer schedule n=1M,threads=1 50 ns/call\ntimer-hashed schedule n=1M,threads=1 10 ns/call\n\
             tokio schedule n=1M,threads=1 100 ns/call\nnetty schedule n=1M,threads=1 200 ns/call\n\
             timer pair threads=1,mimalloc 90 cpu-ns/pair\ntimer-static pair threads=1,mimalloc 99 cpu-ns/pair\n\
             floor schedule n=1M,threads=1 1 ns/call\ntokio reset n=1M,threads=1 1 ns/reset\n\
             timer durable-sqlite in-flight=512 300 lives/s\npoller durable-sqlite in-flight=512 100 lives/s",
        );
        results.0[2].stolen = 1.26;
        let words: Vec<String> =
            table(&results).lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(words[2], "| schedule, 1 thread, ns | 50.00 | 100.0 (tokio) | 2.00 | 1.3 % |");
        assert_eq!(words[3], "| schedule and cancel, static, CPU ns | 90.00 | 99.00 (timer-static) | 1.10 | 0.0 % |");
        assert_eq!(words[4], "| SQLite, 512 in flight, lives per second | 300.0 | 100.0 (poller) | 3.00 | 0.0 % |");
        assert_eq!(words.len(), 5, "a line without a figure of ours is left out");
    }

    #[cfg(all(feature = "durable", feature = "peers"))]
    #[test]
    fn every_line_has_another_timer() {
        use super::{FLOOR, LINES, OURS};
        use crate::registry::PEERS;
        use crate::report::plan::STEPS;

        for line in LINES.iter().filter(|line| line.other.is_empty()) {
            let is_other = |name: &str| !name.starts_with(OURS) && name != FLOOR;
            let mut steps = STEPS.iter().filter(|step| step.workload == line.workload);
            let others = |step: &crate::report::plan::Step| {
                PEERS.iter().any(|peer| is_other(peer.name) && step.includes(peer.name) && peer.does(step.workload))
            };
            assert!(steps.any(others), "{}", line.title);
        }
    }

    #[test]
    fn the_rows_of_the_readme_name_the_best_other_timer_but_tokio() {
        let results = results(
            "timer cancel n=1M 498 cpu-ns/cancel\ntimer cancel n=1M,mimalloc 258 cpu-ns/cancel\n\
             tokio cancel n=1M 376 cpu-ns/cancel\ntokio cancel n=1M,mimalloc 190 cpu-ns/cancel\n\
             pingora cancel n=1M 489 cpu-ns/cancel\ntimer crowd n=1M 0.131 cpu-s\ntimer-hashed crowd n=1M 0.12 cpu-s",
        );
        let text = documents(&results);
        let row = "| cancel a million in random order, CPU time (with mimalloc) | 498 (258) ns | 376 (190) ns \
             | 489 ns, pingora |";
        assert!(text.contains(row) && text.contains("| a million due in 200 ms, CPU s | 0.13 | 0.12 |"), "{text}");
    }

    #[test]
    fn overlapping_rounds_do_not_differ() {
        let kept = results("timer pair - 50 ns\ntimer pair - 60 ns\ntimer reset - 50 ns\ntokio pair - 1 ns");
        let new = results("timer pair - 58 ns\ntimer pair - 80 ns\ntimer reset - 40 ns\ntokio pair - 9 ns");
        assert_eq!(comparison(&kept, &new), "reset timer -: 50.00 -> 40.00 ns\n");
    }
}
