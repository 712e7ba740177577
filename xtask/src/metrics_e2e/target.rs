//! The program that is scraped: `sessions`, until it is dropped.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use crate::cargo::{Cargo, Failure, target_dir};

/// About 12 s of replay: enough for some scrapes. It goes on serving for longer than Prometheus can take to ask once more.
const ARGS: &[&str] = &["--metrics", "127.0.0.1:0", "--speed", "4000", "--executor", "rayon", "--linger", "300"];

pub(super) struct Target {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// Kept open: it has more to tell.
    _stderr: BufReader<ChildStderr>,
    /// Where it serves.
    pub(super) addr: String,
}

impl Target {
    /// Builds and starts it.
    pub(super) fn start() -> Result<Self, Failure> {
        Cargo::new("build --release -p examples --bin sessions").run()?;
        let program = target_dir().join("release").join(format!("sessions{}", std::env::consts::EXE_SUFFIX));
        eprintln!("$ sessions {}", ARGS.join(" "));
        let failed = |error| Failure::new(format!("cannot run `{}`: {error}", program.display()));
        let mut child =
            Command::new(&program).args(ARGS).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(Failure::new("sessions has no output"));
        };
        let (stdout, mut stderr) = (BufReader::new(stdout), BufReader::new(stderr));
        let mut line = String::new();
        let read = stderr.read_line(&mut line);
        let mut target = Self { child, stdout, _stderr: stderr, addr: String::new() };
        match line.trim_end().strip_prefix("metrics: http://").and_then(|rest| rest.strip_suffix("/metrics")) {
            Some(addr) if read.is_ok() => addr.clone_into(&mut target.addr),
            _ => {
                return Err(Failure::new(format!("sessions does not tell where it serves, but `{}`", line.trim_end())));
            }
        }
        Ok(target)
    }

    /// Waits until it has replayed, and returns what it printed.
    pub(super) fn summary(&mut self) -> Result<String, Failure> {
        let mut text = String::new();
        for line in self.stdout.by_ref().lines() {
            let line = line.map_err(|error| Failure::new(format!("cannot read from sessions: {error}")))?;
            text += &format!("{line}\n");
            if line.starts_with("sessions: ") {
                return Ok(text);
            }
        }
        Err(Failure::new(format!("sessions ended without a number of sessions:\n{text}")))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // It may have ended, and is not needed any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
