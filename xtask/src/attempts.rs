//! The steps `test` and `test-servers`, which repeat tests that fail.
//!
//! If the machine stands still for a second, the leases and the connections of the running tests
//! end, and the tests fail. `cargo xtask ci` runs a few failed tests a second time, and `ci --long`
//! does not.

use xshell::Shell;

use crate::cargo::{cargo, cargo_line};
use crate::crates::{metadata, test_programs};
use crate::run::{Result, report, run_reading};

/// The greatest number of failed tests that have a second attempt. A fault of the code often fails
/// more.
const MAX_REPEATED: usize = 8;

/// The test programs that mostly wait for servers, leases and processes. They run beside the
/// others.
const WAITING: [&str; 3] = ["--test ledger", "--test ledger_postgres", "--test postgres"];

/// Compiles and lints all programs, which the steps with tests then run.
///
/// `--examples` makes cargo enable the features that dev-dependencies ask for. There are no
/// examples, but the programs then share the crates of their tests.
pub(crate) fn lint(sh: &Shell) -> Result {
    let tests = test_programs(&metadata(sh)?).into_iter().collect::<Vec<_>>().join(" ");
    cargo(sh, &["build {linted} --bins --examples", &format!("test --no-run {{linted}} --lib {tests}")])
}

/// Runs the tests, but not the programs that [`servers`] runs.
pub(crate) fn test(sh: &Shell) -> Result {
    tests(sh, &others(sh)?, |_| ())
}

/// Runs what [`test()`] does, and again the tests that fail.
pub(crate) fn test_twice(sh: &Shell) -> Result {
    twice(sh, &others(sh)?)
}

/// Runs the tests that mostly wait.
pub(crate) fn servers(sh: &Shell) -> Result {
    tests(sh, &WAITING.join(" "), |_| ())
}

/// Runs the tests that mostly wait, and again those that fail.
pub(crate) fn servers_twice(sh: &Shell) -> Result {
    twice(sh, &WAITING.join(" "))
}

/// Returns the options for all programs but [`WAITING`].
fn others(sh: &Shell) -> Result<String> {
    let programs = test_programs(&metadata(sh)?);
    let others = programs.iter().map(String::as_str).filter(|program| !WAITING.contains(program));
    Ok(["--lib"].into_iter().chain(others).collect::<Vec<_>>().join(" "))
}

/// Runs the tests of some programs, and again those that fail.
fn twice(sh: &Shell, programs: &str) -> Result {
    let mut seen = Seen::default();
    let mut result = tests(sh, programs, |line| seen.note(line));
    if result.is_err() && seen.may_repeat() {
        let names = seen.failed.join(", ");
        report(&format!("\n== a second attempt for {names}\n"));
        result = cargo(sh, &[&format!("test {{linted}} {programs} -- --exact {}", seen.failed.join(" "))]);
        if result.is_ok() {
            report(&format!("== passed at the second attempt: {names}\n"));
        }
    }
    result
}

/// Runs twice as many tests at a time as there are CPUs, because many of them wait for leases,
/// servers or the clock.
fn tests(sh: &Shell, programs: &str, on_line: impl FnMut(&str)) -> Result {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    sh.set_var("RUST_TEST_THREADS", (2 * cpus).to_string());
    run_reading(cargo_line(sh, &format!("test --no-fail-fast {{linted}} {programs}"))?, on_line)
}

/// The output of the test programs, as far as it decides about a second attempt.
#[derive(Default)]
struct Seen {
    failed: Vec<String>,
    begun: usize,
    ended: usize,
}

impl Seen {
    fn note(&mut self, line: &str) {
        let failed = line.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... FAILED"));
        self.failed.extend(failed.map(|name| name.strip_suffix(" - should panic").unwrap_or(name).to_owned()));
        let is_begin = line.starts_with("running ") && (line.ends_with(" tests") || line.ends_with(" test"));
        self.begun += usize::from(is_begin);
        self.ended += usize::from(line.starts_with("test result: "));
    }

    /// Returns `true` if a few tests have failed, and no program has ended without a result.
    fn may_repeat(&self) -> bool {
        (1..=MAX_REPEATED).contains(&self.failed.len()) && self.begun == self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::{Seen, WAITING};
    use crate::crates::{metadata, test_programs};

    fn seen(lines: &[&str]) -> Seen {
        let mut seen = Seen::default();
        lines.iter().for_each(|line| seen.note(line));
        seen
    }

    #[test]
    fn a_few_failed_tests_have_a_second_attempt() {
        let result = "test result: FAILED. 1 passed; 2 failed; 0 ignored";
        let lines =
            ["running 3 tests", "test a::b ... FAILED", "test c - should panic ... FAILED", "test d ... ok", result];
        let few = seen(&lines);
        assert_eq!(few.failed, ["a::b", "c"]);
        assert!(few.may_repeat());
        assert!(!seen(&["running 1 test", "test d ... ok", "test result: ok. 1 passed"]).may_repeat());
        assert!(!seen(&[&lines[..], &["test a ... FAILED"; 7]].concat()).may_repeat(), "too many");
    }

    #[test]
    fn each_waiting_program_exists() {
        let programs = test_programs(&metadata(&crate::run::shell().unwrap()).unwrap());
        assert!(WAITING.iter().all(|program| programs.contains(*program)), "{programs:?}");
    }

    #[test]
    fn a_program_that_aborts_has_no_second_attempt() {
        let lines = ["running 1 test", "test a ... FAILED", "test result: FAILED. 0 passed", "running 2 tests"];
        assert!(!seen(&lines).may_repeat());
    }
}
