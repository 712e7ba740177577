//! A library that fakes the clock of the C library: `apt-get install faketime`.
#![cfg(not(any(loom, madsim, miri)))]

use std::process::Command;

/// Runs `faked_clock` with these options of faketime, and returns the CPU seconds that it used.
/// Returns `None` without faketime.
fn cpu(options: &[&str]) -> Option<f64> {
    let program = env!("CARGO_BIN_EXE_faked_clock");
    let output = Command::new("faketime").args(options).arg(program).output().ok()?;
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.trim().parse().unwrap_or_else(|_| panic!("{options:?}: {text}")))
}

#[test]
fn the_worker_sleeps_while_another_clock_runs_ahead() {
    for options in [&["-f", "+0 x10"][..], &["--exclude-monotonic", "-f", "+0 x10"]] {
        match cpu(options) {
            Some(used) => assert!(used < 0.1, "{options:?}: {used} s of CPU"),
            None => eprintln!("skipped, because this machine has no faketime"),
        }
    }
}
