//! The tool `promtool`, which comes with Prometheus, where it is installed.

use std::io::Write;
use std::process::{Command, Stdio};

/// Checks a scrape in the older format. The tool refuses the label `le` at a gauge, so it gets that
/// family without a type.
pub(crate) fn check_metrics(plain: &str) {
    let plain = plain.replace("due_within_seconds gauge\n", "due_within_seconds untyped\n");
    promtool(&["check", "metrics"], &plain);
}

/// Runs `promtool` with `input` and returns its output. Without the tool, prints a line and returns
/// `None`. Panics with the output of the tool if the tool fails.
pub(crate) fn promtool(arguments: &[&str], input: &str) -> Option<String> {
    let mut command = Command::new("promtool");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        eprintln!("skipped: promtool is not installed (it comes with Prometheus)");
        return None;
    };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "promtool {arguments:?}:\n{said}");
    Some(said)
}
