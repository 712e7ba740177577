//! The program `durable` runs the cases of a file, except for E7, at tiny sizes, and each prints
//! figures.

#![forbid(unsafe_code)]
#![cfg(feature = "durable")]
#![allow(clippy::unwrap_used, reason = "a test ends where something is wrong")]

use std::path::Path;
use std::process::Command;
use timer_bench::row::Row;

/// Runs one case and returns its rows.
fn run(file: &Path, peer: &str, case: &str, settings: &str) -> Vec<Row> {
    let store = format!("sqlite:{}", file.display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_durable"));
    command.args(["--store", &store, "--one", peer, case, "--quick", "ms=50", "floor-ms=5"]);
    let output = command.args(settings.split_whitespace()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| Row::parse(line).unwrap_or_else(|| panic!("{peer} {case}: {line}"))).collect()
}

#[test]
fn cases_of_a_file_have_figures() {
    let folder = std::env::temp_dir().join(format!("timer-bench-durable-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("timeouts.db");
    let positive = |rows: &[Row], unit: &str| {
        let row = rows.iter().find(|row| row.unit == unit);
        row.unwrap_or_else(|| panic!("{unit} in {rows:?}")).value.clone().unwrap() > 0.0
    };
    for peer in ["timer", "poller-100ms"] {
        assert!(positive(&run(&file, peer, "E1", "threads=2"), "schedules/s"));
        assert!(positive(&run(&file, peer, "E2", "threads=2"), "pairs/s"));
        // The span contains several turns of the poller.
        assert!(positive(&run(&file, peer, "E3", "n=4 ms=1000"), "lives/s"));
        let lags = run(&file, peer, "E4", "rate=100");
        assert!(positive(&lags, "us-p50") && !positive(&lags, "early") && !positive(&lags, "overdue"));
    }
    assert!(positive(&run(&file, "timer", "E6", "n=1000"), "rows/s"));
    assert_eq!(run(&file, "timer", "E5-before", ""), []);
    assert!(positive(&run(&file, "timer", "E5", ""), "ms-first-run"));
    std::fs::remove_dir_all(folder).unwrap();
}
