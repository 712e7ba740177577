//! A copy of the sources, in which mutations are applied, built and tested.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use xshell::Shell;

use super::list::{Mutant, Program};
use crate::loom::{self, PREEMPTIONS};
use crate::run::{Failure, Result, copy_sources, flags_and, target_dir};

/// The time that a test program may take. A mutation that makes it take longer is caught.
const LIMIT: Duration = Duration::from_secs(300);

/// The copy, with its own target folder. Cargo names the programs of a workspace by their
/// paths in it, so in a shared folder the copy would overwrite those of the workspace.
pub(super) struct Scratch {
    tree: PathBuf,
    target: PathBuf,
    log: PathBuf,
}

/// The result of a test program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    Failed,
    /// The program took too long.
    Hung,
}

impl Scratch {
    /// Copies the sources.
    pub(super) fn new(sh: &Shell) -> Result<Self> {
        let folder = target_dir().join("mutants");
        let scratch = Self { tree: folder.join("tree"), target: folder.join("target"), log: folder.join("log") };
        copy_sources(sh, &scratch.tree, |_| true)?;
        Ok(scratch)
    }

    /// Calls `run` while the mutation is in the copy.
    pub(super) fn with<R>(&self, mutant: &Mutant, run: impl FnOnce() -> Result<R>) -> Result<R> {
        let path = self.tree.join(&mutant.file);
        let text = fs::read_to_string(&path)?;
        fs::write(&path, mutant.apply(&text)?)?;
        let result = run();
        // Written anew, so that cargo sees a later time.
        fs::write(&path, text)?;
        result
    }

    /// Runs the tests of a program with these exact names, or all of them.
    ///
    /// # Errors
    ///
    /// Fails if the program cannot be built, or if it does not contain the tests.
    pub(super) fn run(&self, program: &Program, names: &[&str]) -> Result<Outcome> {
        for executable in self.build(program)? {
            let mut command = Command::new(&executable.0);
            command.current_dir(&executable.1).args(names).stdin(Stdio::null());
            if !names.is_empty() {
                command.arg("--exact");
            }
            if *program == Program::Models {
                command.args(["--test-threads", "1"]).env(loom::BOUND, PREEMPTIONS.to_string());
            }
            command.env("RUST_BACKTRACE", "0").stdout(Stdio::piped()).stderr(File::create(&self.log)?);
            let (outcome, output) = run(command)?;
            if outcome != Outcome::Passed {
                fs::write(&self.log, output)?;
                return Ok(outcome);
            }
            if !names.is_empty() && !output.contains(&format!("{} passed", names.len())) {
                return Err(Failure::new(format!("`{program}` has not all of the tests {names:?}")));
            }
        }
        Ok(Outcome::Passed)
    }

    /// Returns the names of the tests that failed in the last run that did not pass.
    pub(super) fn failed_tests(&self) -> Result<Vec<String>> {
        let output = fs::read_to_string(&self.log)?;
        let failed = |line: &str| Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.to_owned());
        Ok(output.lines().filter_map(failed).collect())
    }

    /// Builds the test programs. Returns each with the folder in which it runs.
    fn build(&self, program: &Program) -> Result<Vec<(PathBuf, PathBuf)>> {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
        cargo.current_dir(&self.tree).args(["test", "--quiet", "--no-run", "--message-format", "json"]);
        match program {
            Program::Tests(words) => {
                cargo.args(words.split(' ')).arg("--target-dir").arg(&self.target);
            }
            Program::Models => {
                // The profile of `cargo xtask loom`, in a separate folder because of the cfg.
                cargo
                    .args(["--profile", "loom", "-p", "timer-core", "--lib", "--target-dir"])
                    .arg(self.target.join("loom"));
                cargo.env("RUSTFLAGS", flags_and("RUSTFLAGS", loom::CFG));
            }
        }
        let built = cargo.stdin(Stdio::null()).stderr(File::create(&self.log)?).output()?;
        if !built.status.success() {
            return Err(Failure::new(format!("`{program}` does not build:\n{}", errors(&built.stdout))));
        }
        Ok(executables(&built.stdout))
    }
}

/// Returns cargo's messages.
fn messages(output: &[u8]) -> impl Iterator<Item = serde_json::Value> + '_ {
    output.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

fn executables(output: &[u8]) -> Vec<(PathBuf, PathBuf)> {
    let found = |message: serde_json::Value| {
        let executable = message["executable"].as_str()?;
        let folder = PathBuf::from(message["manifest_path"].as_str()?).parent()?.to_owned();
        Some((PathBuf::from(executable), folder))
    };
    messages(output).filter(|message| message["profile"]["test"] == true).filter_map(found).collect()
}

fn errors(output: &[u8]) -> String {
    let text = |message: serde_json::Value| Some(message["message"]["rendered"].as_str()?.to_owned());
    messages(output).filter(|message| message["message"]["level"] == "error").filter_map(text).collect()
}

/// Runs a test program and returns its outcome and output. Ends it after [`LIMIT`].
fn run(mut command: Command) -> Result<(Outcome, String)> {
    let mut child = command.spawn()?;
    let (read, output) = channel();
    let mut pipe = child.stdout.take().ok_or_else(|| Failure::new("no pipe"))?;
    thread::spawn(move || {
        let mut text = String::new();
        let _ = pipe.read_to_string(&mut text);
        let _ = read.send(text);
    });
    // A program closes its output when it ends.
    let Ok(text) = output.recv_timeout(LIMIT) else {
        child.kill()?;
        child.wait()?;
        return Ok((Outcome::Hung, String::new()));
    };
    Ok((if child.wait()?.success() { Outcome::Passed } else { Outcome::Failed }, text))
}
