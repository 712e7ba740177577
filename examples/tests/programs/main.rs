//! The small programs as their users see them, each with small sizes and with wrong arguments.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test panics on an unexpected error")]

mod event_loop;
mod heartbeat;
mod http_server;
mod key_store;
#[cfg(feature = "redis")]
mod lock_watchdog;
mod metrics_export;
mod migrating_from_netty;
mod order_close;
mod payments;
#[cfg(feature = "redis")]
mod redis_stand_in;
mod rpc_timeouts;

use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The longest time that a program with small sizes may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

fn run(program: &str, args: &[&str]) -> Output {
    run_command(Command::new(program).args(args))
}

/// Runs a program and kills it if it does not end. Its output must fit into a pipe.
fn run_command(command: &mut Command) -> Output {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > LIMIT {
            child.kill().unwrap();
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

/// Runs a program that has to succeed and returns its standard output.
fn success(program: &str, args: &[&str]) -> String {
    let output = run(program, args);
    let out = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{program} {args:?}\n{out}{error}");
    assert!(out.contains("    ok  ") && !out.contains("FAILED"), "{out}");
    out.into_owned()
}

/// Checks that the program prints its help and refuses each of these arguments with the allowed
/// ones.
fn command_line(program: &str, refusals: &[(&[&str], &str)]) {
    let name = program.rsplit(['/', '\\']).next().unwrap();
    for flag in ["--help", "-h"] {
        let output = run(program, &[flag]);
        assert_eq!(output.status.code(), Some(0));
        assert!(String::from_utf8_lossy(&output.stdout).contains(&format!("Usage: {name}")), "{name} {flag}");
    }
    let unknown: (&[&str], &str) = (&["--fast"], "unknown option '--fast'; allowed: --");
    for (args, part) in refusals.iter().chain([&unknown]) {
        let output = run(program, args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name} {args:?}: {error}");
        assert!(output.stdout.is_empty(), "{name} {args:?}: nothing is half done");
        assert!(error.starts_with(&format!("{name}: ")) && error.contains(part), "{args:?}: {error}");
        assert!(error.contains("allowed: ") && error.contains(&format!("\nUsage: {name}")), "{error}");
        assert!(error.contains("--help"), "{error}");
    }
}

/// Returns the number at the beginning of the line that contains `words`.
fn number(output: &str, words: &str) -> u64 {
    let line = output.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("no '{words}' in {output}"));
    line.split_whitespace().next().unwrap().parse().unwrap_or_else(|_| panic!("no number in '{line}'"))
}
