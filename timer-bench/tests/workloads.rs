//! Every built-in peer runs every workload at a tiny size, and prints figures or a reason. Of the
//! peers on the JVM, which start slowly, one runs one workload.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test ends where something is wrong")]

use std::process::Command;
use std::thread;
use timer_bench::registry::PEERS;
use timer_bench::row::Row;

/// The workloads with tiny settings and some of their units.
const TINY: &[(&str, &str, &[&str])] = &[
    ("schedule", "--n 1000", &["ns/call", "cpu-ns/call"]),
    ("pair", "--n 2000 --standing 100", &["ns/pair", "cpu-ns/pair"]),
    ("reset", "--n 2000 --live 10", &["ns/reset", "cpu-ns/reset"]),
    ("cancel", "--n 1000", &["ns/cancel", "cpu-ns/cancel"]),
    ("crowd", "--n 1000 --lead-ms 200", &["ms-late", "cpu-s"]),
    ("lateness", "--ms 20", &["us-p50", "us-p99", "us-max", "early"]),
    ("busy", "--ms 20 --lead-ms 50", &["ns-p50", "ns-p99", "ns-p99.9", "ns-max"]),
    ("overload", "--ms 400 --threads 2 --stall-ms 10", &["ns/pair", "us-p99.9", "ms-lag-over-time", "early"]),
    ("idle", "--ms 10 --n 1000", &["switches/s", "cpu-ms/s"]),
    ("memory", "--n 1000", &["B-heap", "B-handle", "B-left"]),
    ("futures", "--ms 10", &["ns/wait", "cpu-ns/wait"]),
    ("sleepers", "--n 1000 --lead-ms 300", &["ms-late", "cpu-s"]),
    ("queue", "--n 1000", &["cpu-ns/insert", "cpu-ns/reset", "cpu-ns/pair", "cpu-ns/expired"]),
    ("ttl", "--n 2000 --standing 1000 --case 15,27", &["cpu-ns/call", "us-p50", "us-max"]),
    ("growth", "--n 500,1000 --count 2000", &["cpu-ns/pair", "cpu-ns/cancel", "cpu-ns/earlier", "cpu-ns/expiry"]),
    ("held", "--n 2000", &["us-held-max", "us-call-max"]),
    ("growth-sqlite", "--n 100,1500 --ms 300", &["lives/s", "ms-page", "ms-page-far"]),
    (
        "durable-sqlite",
        "--ms 1000 --n 4 --threads 2 --rate 100 --delay-ms 10",
        &["schedules/s", "lives/s", "us-p99", "overdue", "us-late-p50"],
    ),
];

/// Runs a workload and returns its rows.
fn rows(peer: &str, workload: &str, settings: &str) -> Vec<Row> {
    let program = match workload {
        "memory" => env!("CARGO_BIN_EXE_workload-mem"),
        #[cfg(feature = "held")]
        "held" => env!("CARGO_BIN_EXE_workload-held"),
        _ => env!("CARGO_BIN_EXE_workload"),
    };
    let mut command = Command::new(program);
    let output = command.args([peer, workload]).args(settings.split(' ')).output().unwrap();
    let what = format!("{peer} {workload}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{what}");
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Row> = text.lines().map(|line| Row::parse(line).unwrap_or_else(|| panic!("{what}{line}"))).collect();
    assert!(!rows.is_empty() && rows.iter().all(|row| row.peer == peer && row.workload == workload), "{what}{text}");
    rows
}

#[test]
fn every_peer_runs_its_workloads_or_gives_a_reason() {
    thread::scope(|scope| {
        for peer in PEERS.iter().filter(|peer| !["jdk", "fork-join"].contains(&peer.name)) {
            scope.spawn(|| {
                let is_wanted =
                    |workload| peer.does(workload) && (!peer.name.starts_with("netty") || workload == "pair");
                for (workload, settings, units) in TINY.iter().filter(|(workload, ..)| is_wanted(workload)) {
                    let rows = rows(peer.name, workload, settings);
                    let is_complete = rows.iter().all(|row| row.value.is_ok());
                    let missing = units.iter().find(|unit| !rows.iter().any(|row| row.unit == **unit));
                    let is_floor = peer.name == "floor" && ["durable-sqlite", "growth"].contains(workload);
                    assert!(missing.is_none() || !is_complete || is_floor, "{} {workload}: no {missing:?}", peer.name);
                }
            });
        }
    });
}

#[test]
fn ours_has_all_figures() {
    for (workload, settings, _) in
        TINY.iter().filter(|(workload, ..)| ["schedule", "reset", "overload"].contains(workload))
    {
        for row in rows("timer", workload, settings) {
            assert!(row.value.is_ok() && (row.unit != "early" || row.value == Ok(0.0)), "{row}");
        }
    }
}

/// Counting in an unoptimized program takes 17 s of CPU.
#[test]
#[cfg_attr(debug_assertions, ignore = "an optimized test")]
fn a_pair_of_the_floor_locks_four_times() {
    let rows = rows("floor", "instructions", "--n 300");
    if rows.iter().any(|row| row.value.as_ref().is_err_and(|why| why.starts_with("skipped"))) {
        return;
    }
    let pair = |unit: &str| rows.iter().find(|row| row.params == "op=pair" && row.unit == unit).unwrap().value.clone();
    assert!((3.9..4.5).contains(&pair("locked-instructions").unwrap()) && pair("instructions").unwrap() > 50.0);
}

#[test]
fn a_wrong_workload_is_refused_with_the_usage() {
    for (words, named) in
        [("timer W99", "`W99`"), ("tiemr pair", "`tiemr`"), ("timer", "which workload"), ("timer pair --m 3", "--m")]
    {
        let output = Command::new(env!("CARGO_BIN_EXE_workload")).args(words.split(' ')).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && text.contains(named) && text.contains("timer-hashed"), "{text}");
    }
}
