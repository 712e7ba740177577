//! The program `sessions` as its users see it: arguments, standard output, standard error and exit
//! code.
#![allow(clippy::unwrap_used, reason = "a test panics on an unexpected error")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

fn sessions(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sessions")).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn last_line(output: &Output) -> &str {
    text(&output.stdout).lines().next_back().unwrap_or("")
}

fn file(name: &str, content: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, content).unwrap();
    path
}

/// Checks that the program refuses with exit code 2 and empty standard output, and returns the
/// reason.
fn refusal(args: &[&str]) -> String {
    let output = sessions(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    assert_eq!(text(&output.stdout), "", "{args:?}: nothing is half done");
    text(&output.stderr).to_owned()
}

#[test]
fn the_log_has_2989_sessions_on_virtual_time() {
    for wheel in ["hashed", "hierarchical"] {
        let output = sessions(&["--virtual", "--wheel", wheel]);
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(last_line(&output), "sessions: 2989");
        assert!(text(&output.stdout).contains("30,969 requests of 2,365 hosts in 12 h 52 min"));
    }
}

#[test]
fn the_log_has_2989_sessions_on_the_real_clock() {
    let output = sessions(&["--speed", "100000", "--executor=rayon"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(last_line(&output), "sessions: 2989");
}

#[test]
fn a_pipe_gets_neither_progress_bar_nor_escape_codes() {
    let output = sessions(&["--speed", "100000"]);
    assert_eq!(text(&output.stderr), "");
    assert!(!output.stdout.contains(&0x1b) && !output.stdout.contains(&b'\r'));
}

#[test]
fn a_given_file_and_idle_time_are_used() {
    let log = file("given.csv", b"time,host,status,bytes\n0,a,200,1\n59,a,200,1\n119,a,200,1\n");
    let output = sessions(&[log.to_str().unwrap(), "--virtual", "--idle", "60"]);
    assert_eq!(last_line(&output), "sessions: 2");
    let output = sessions(&["--idle=61", "--virtual", log.to_str().unwrap()]);
    assert_eq!(last_line(&output), "sessions: 1");
}

#[test]
fn help_is_printed_on_standard_output() {
    for flag in ["--help", "-h"] {
        let output = sessions(&[flag]);
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output.stdout).contains("Usage: sessions [FILE] [OPTIONS]"));
        assert!(text(&output.stdout).contains("--speed N"));
        assert_eq!(text(&output.stderr), "");
    }
}

#[test]
fn a_refusal_names_the_allowed_values() {
    for (args, part) in [
        (&["--fast"][..], "unknown option '--fast'; allowed: --idle, --wheel"),
        (&["--idle", "soon"], "--idle: 'soon' given; allowed: a whole number in 1..=31536000"),
        (&["--speed", "0"], "--speed: '0' given; allowed: a whole number in 1..=1000000"),
        (&["--speed", "1000001"], "--speed: '1000001' given"),
        (&["--tick", "0"], "--tick: '0' given"),
        (&["--wheel", "ferris"], "--wheel: 'ferris' given; allowed: hashed, hierarchical"),
        (&["--executor"], "--executor needs a value; allowed: immediate, rayon, threadpool"),
        (&["--virtual", "--speed", "2"], "--speed and --virtual both given"),
        (&["one", "two"], "FILE given twice; allowed: once"),
    ] {
        let error = refusal(args);
        assert!(error.starts_with("sessions: ") && error.contains(part), "{args:?}: {error}");
        assert!(error.contains("--help"), "{error}");
    }
}

#[test]
fn a_bad_log_is_reported_with_file_line_and_reason() {
    let head = "time,host,status,bytes\n";
    for (name, content, part) in [
        ("empty.csv", String::new(), "line 1: the file is empty"),
        ("header.csv", head.to_owned(), "line 2: the file ends after its header"),
        ("columns.csv", format!("{head}1,a,200,5\n2,a\n"), "line 3: 2 columns given"),
        ("status.csv", format!("{head}1,a,up,5\n"), "line 2: status 'up' given; allowed: a whole"),
        ("back.csv", format!("{head}5,a,200,5\n4,a,200,5\n"), "line 3: time 4 goes backwards"),
    ] {
        let path = file(name, content.as_bytes());
        let error = refusal(&[path.to_str().unwrap(), "--virtual"]);
        let first = error.lines().next().unwrap();
        assert!(first.contains(name) && first.contains(part), "{error}");
    }
}

#[test]
fn an_unreadable_file_is_reported() {
    let error = refusal(&["no/such/log.csv"]);
    assert!(error.contains("no/such/log.csv: "), "{error}");
    assert!(error.contains("allowed: a readable CSV file"), "{error}");
    let folder = env!("CARGO_TARGET_TMPDIR");
    assert!(refusal(&[folder]).contains("allowed: a readable CSV file"));
}

/// The kernel kills the program if it takes more than a gigabyte of address space.
#[cfg(target_os = "linux")]
#[test]
fn an_endless_line_is_an_error_in_little_memory() {
    let long = file("long.csv", b"time,host,status,bytes\n1,");
    // The file has a hole of a gigabyte of zeros, which takes no space.
    fs::OpenOptions::new().append(true).open(&long).unwrap().set_len(1 << 30).unwrap();
    for (path, line) in [("/dev/zero", 1), (long.to_str().unwrap(), 2)] {
        let program = format!("ulimit -v 1000000; exec {} {path}", env!("CARGO_BIN_EXE_sessions"));
        let output = Command::new("sh").args(["-c", &program]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{path}");
        let error = format!("sessions: {path}: line {line}: longer than 1 MB; allowed: 1000000 bytes\n");
        assert!(text(&output.stderr).starts_with(&error));
    }
}

#[test]
fn a_report_is_one_page_with_all_parts() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("report.html");
    fs::write(&path, "the page of an earlier run, which may well be longer than this one".repeat(10_000)).unwrap();
    let output = sessions(&["--virtual", "--report", path.to_str().unwrap()]);
    assert_eq!(last_line(&output), "sessions: 2989");
    assert_eq!(text(&output.stderr), format!("report: {}\n", path.display()));
    let page = fs::read_to_string(&path).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    for (name, value) in [("sessions", "2,989"), ("requests", "30,969")] {
        assert!(
            page.contains(&format!("<dt>{name}</dt><dd><span data-figure=\"{name}\">{value}</span></dd>")),
            "{name}"
        );
    }
    assert!(page.matches("<svg").count() >= 5 && page.len() < 300_000);
}

#[test]
fn an_unwritable_report_is_refused_before_the_replay() {
    let error = refusal(&["--report", "no/such/page.html"]);
    assert!(error.contains("--report: no/such/page.html: "), "{error}");
    assert!(error.contains("allowed: a file that can be written"), "{error}");
}

#[test]
fn the_quickstart_ends_with_nothing_pending() {
    let output = Command::new(env!("CARGO_BIN_EXE_quickstart")).output().unwrap();
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("0 pending"), "{}", text(&output.stdout));
}

#[test]
fn the_quickstart_refuses_arguments() {
    for args in [&["--bogus"][..], &["now"], &["--bogus=1"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_quickstart")).args(args).output().unwrap();
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), ""), "{args:?}");
        assert!(text(&output.stderr).contains("Usage: quickstart [OPTIONS]"), "{}", text(&output.stderr));
    }
    let help = Command::new(env!("CARGO_BIN_EXE_quickstart")).arg("--help").output().unwrap();
    assert!(help.status.success() && text(&help.stdout).contains("Usage: quickstart"));
}
