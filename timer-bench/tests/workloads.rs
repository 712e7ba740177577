//! Every built-in peer runs every workload at tiny sizes. Each process prints rows, with a figure
//! or a reason for each unit.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test ends where something is wrong")]

use std::process::Command;
use std::thread;
use timer_bench::peers;
use timer_bench::row::Row;

const TINY: &[(&str, &str, &[&str])] = &[
    ("W1", "n=1000 threads=1,2", &["ns/schedule", "cpu-ns/schedule", "ms-drain", "ns/schedule-again"]),
    (
        "W2",
        "n=2000 threads=1,2 standing=0,100",
        &["ns/pair", "cpu-ns/pair", "cpu-ns/pair-floor", "of-the-floor", "ms-drain", "MiB-peak"],
    ),
    ("W3", "n=1000 lead-ms=200", &["ms-late", "cpu-s"]),
    ("W4", "ms=20", &["us-p50", "us-p99", "us-p99.9", "us-max", "early"]),
    ("W5", "ms=10", &["switches/s", "cpu-ms/s"]),
    ("W6", "ms=10 n=1000", &["switches/s", "cpu-ms/s"]),
    ("W8", "n=1000 ms=50", &["ns/cancel", "cpu-ns/cancel", "ms-pending"]),
    ("W9", "n=2000 threads=1,2 live=10,1000", &["ns/reset", "cpu-ns/reset", "cpu-ns/reset-floor", "of-the-floor"]),
    ("W10", "ms=20 lead-ms=50", &["ns-p50", "ns-p99", "ns-p99.9", "ns-max"]),
    ("W11", "n=100 lead-ms=200", &["ns/schedule", "ns/cancel", "cpu-ns/expiry"]),
    ("W12", "n=300000", &["ns/insert", "ns/next_expiry", "ns/remove", "ns/expire"]),
    ("W13", "n=2000 cpus=1", &["ns/pair", "cpu-ns/pair", "cpu-ns/pair-all"]),
    ("W14", "n=2500", &["ns/cancel", "cpu-ns/cancel"]),
    (
        "W15",
        "ms=30 threads=3 cpus=1 pause-us=1000 stop-ms=2000",
        &["ns/pair", "ns-p50", "us-max", "cpu-us-max", "MiB-peak"],
    ),
    ("W16", "ms=10 threads=2", &["ns/operation", "cpu-ns/operation"]),
    ("W17", "n=1000 lead-ms=300", &["ms-late", "cpu-s"]),
    (
        "W18",
        "n=1000 ms=50",
        &["cpu-ns/insert", "cpu-ns/insert+remove", "cpu-ns/reset", "cpu-ns/expired", "wake-ups/s", "switches/s"],
    ),
    ("W20", "n=20 requests=2 turns=1 count=0", &["cpu-ns/request", "cpu-ns/request-floor", "cpu-ns/request-timer"]),
    ("W19", "n=4000 threads=2 ms=50", &["ns/item", "cpu-ns/item", "switches/item"]),
];

const COUNTING: &[(&str, &str, &[&str])] = &[
    ("W7", "n=1000", &["B-heap", "B-rss", "B-handle"]),
    ("W8", "n=1000 ms=50", &["B-left", "ms-back"]),
    ("W17", "n=1000", &["B-heap"]),
    ("W18", "n=2000", &["B-heap", "B-left", "B-left-empty"]),
];

#[cfg(feature = "held")]
const HELD: &[(&str, &str, &[&str])] = &[
    ("W21", "case=1 n=2000", &["us-held-max", "us-call-max", "cpu-us-call-max"]),
    ("W21", "case=2 n=2000", &["us-held-max", "us-call-max", "cpu-us-call-max"]),
    ("W21", "case=3 n=2000", &["us-held-max", "us-call-max", "ms-late"]),
    ("W21", "case=4 standing=100 ms=50", &["us-held-max", "us-call-max", "turns/s"]),
    ("W21", "case=5 n=2000", &["us-piece-median", "us-piece-max"]),
];

fn check(program: &str, peer: &str, workload: &str, settings: &str, units: &[&str]) {
    let mut command = Command::new(program);
    let output = command.args([peer, workload, "--quick"]).args(settings.split(' ')).output().unwrap();
    let what = format!("{peer} {workload}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{what}");
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Row> = text.lines().map(|line| Row::parse(line).unwrap_or_else(|| panic!("{what}{line}"))).collect();
    assert!(!rows.is_empty() && rows.iter().all(|row| row.peer == peer && row.workload == workload), "{what}");
    if rows.iter().any(|row| row.value.is_err()) {
        return;
    }
    for unit in units {
        assert!(rows.iter().any(|row| row.unit == *unit), "{what}no {unit}");
    }
}

#[test]
fn every_peer_runs_every_workload_or_gives_a_reason() {
    let all = |peer: &str| {
        for (workload, settings, units) in TINY.iter().filter(|(workload, ..)| peers::does(peer, workload)) {
            check(env!("CARGO_BIN_EXE_workload"), peer, workload, settings, units);
        }
        for (workload, settings, units) in COUNTING.iter().filter(|(workload, ..)| peers::does(peer, workload)) {
            check(env!("CARGO_BIN_EXE_workload-mem"), peer, workload, settings, units);
        }
    };
    thread::scope(|scope| {
        for peer in peers::ALL {
            scope.spawn(|| all(peer.name));
        }
    });
}

#[cfg(feature = "held")]
#[test]
fn the_holds_of_locks_are_recorded() {
    for (workload, settings, units) in HELD {
        check(env!("CARGO_BIN_EXE_workload-held"), "timer", workload, settings, units);
    }
}

#[test]
fn ours_has_all_figures_of_three_workloads() {
    for peer in ["timer", "timer-hashed"] {
        for (workload, settings) in [("W1", "n=1000"), ("W9", "n=2000"), ("W12", "n=1000")] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_workload"));
            let output = command.args([peer, workload, settings]).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success() && !text.is_empty() && !text.contains("n/a"), "{peer} {workload}: {text}");
        }
    }
}

#[test]
fn a_storm_of_ours_loses_nothing() {
    let pauses = ["timer", "timer-hashed"].map(|peer| (peer, "pause-us=1000"));
    for (peer, settings) in pauses.into_iter().chain([("timer", "nice=1"), ("timer", "window-ms=50")]) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_workload"));
        // A holder of nice 19 delays due timeouts for half a second.
        let span = if settings == "nice=1" { "ms=1500" } else { "ms=100" };
        let all = ["W15", span, "threads=2", "cpus=1", settings];
        let output = command.arg(peer).args(all).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let value = |unit: &str| text.lines().filter_map(Row::parse).find(|row| row.unit == unit).map(|row| row.value);
        assert!(matches!(value("ns-p99"), Some(Ok(_))), "{text}");
        assert!(matches!(value("us-lag-p99"), Some(Ok(_))), "{text}");
        if settings != "nice=1" {
            assert!(matches!(value("ms-stop"), Some(Ok(_))), "{text}");
            let points = text.lines().filter(|line| line.ends_with("us-lag-max-over-time")).count();
            assert_eq!(points, if settings == "window-ms=50" { 2 } else { 0 }, "{text}");
            assert_eq!([value("unaccounted"), value("early")], [Some(Ok(0.0)), Some(Ok(0.0))], "{text}");
        }
    }
}

#[test]
fn instructions_are_counted_or_skipped() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_workload"));
    let output = command.args(["floor", "instructions", "n=300"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Row> = text.lines().filter_map(Row::parse).collect();
    if rows.iter().any(|row| row.value.as_ref().is_err_and(|why| why.starts_with("skipped"))) {
        return;
    }
    // Two locks are taken and released, each time by one locked instruction.
    let pair = |unit: &str| rows.iter().find(|row| row.params == "op=pair" && row.unit == unit).map(|row| &row.value);
    assert!(matches!(pair("locked-instructions"), Some(Ok(locked)) if (3.9..4.5).contains(locked)), "{text}");
    assert!(matches!(pair("instructions"), Some(Ok(all)) if *all > 50.0), "{text}");
}

#[test]
fn a_wrong_workload_is_refused_with_the_usage() {
    let output = Command::new(env!("CARGO_BIN_EXE_workload")).args(["timer", "W99"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("`W99`") && text.contains("timer-hashed") && text.contains("W17"));
}
