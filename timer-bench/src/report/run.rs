//! Starts the processes one at a time and reads the rows that they print.

use super::plan::{ProgramKind, Step};
use crate::row::Row;
use crate::settings::Size;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The programs that run workloads.
pub struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// Returns the programs that were built together with this one.
    ///
    /// # Errors
    ///
    /// Fails if one is missing.
    pub fn beside_this_one() -> Result<Self, String> {
        let this = std::env::current_exe().map_err(|error| format!("this program is not found: {error}"))?;
        let folder = this.parent().unwrap_or(Path::new(".")).to_owned();
        let programs = Self { folder };
        // The program with mimalloc needs the feature of the peers.
        let mimalloc = cfg!(feature = "peers").then_some(ProgramKind::Mimalloc);
        for kind in [ProgramKind::Timing, ProgramKind::Counting, ProgramKind::Held].into_iter().chain(mimalloc) {
            let program = programs.path(kind);
            if !program.is_file() {
                return Err(format!("{} is missing; `cargo xtask bench` builds it", program.display()));
            }
        }
        Ok(programs)
    }

    fn path(&self, kind: ProgramKind) -> PathBuf {
        let name = match kind {
            ProgramKind::Timing => "workload",
            ProgramKind::Mimalloc => "workload-mimalloc",
            ProgramKind::Counting => "workload-mem",
            ProgramKind::Held => "workload-held",
        };
        self.folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
    }

    /// Runs one step once. A process that fails contributes the rows printed before, and a row with
    /// the reason.
    pub fn run(&self, step: &Step, peer: &str, size: Size) -> Vec<Row> {
        let mut command = Command::new(self.path(step.program));
        command.args([peer, step.workload]).args(step.settings.split_whitespace());
        command.args((size == Size::Quick).then_some("--quick")).stdin(Stdio::null()).stdout(Stdio::piped());
        let (printed, failure) = match command.spawn() {
            Ok(child) => output(child, step.limit),
            Err(error) => (String::new(), Some(format!("cannot be started: {error}"))),
        };
        let mut rows: Vec<Row> = printed.lines().filter_map(Row::parse).collect();
        rows.extend(failure.map(|failure| Row {
            peer: peer.to_owned(),
            workload: step.workload.to_owned(),
            params: step.settings.replace(' ', ",") + if step.settings.is_empty() { "-" } else { "" },
            value: Err(failure),
            unit: "-".to_owned(),
        }));
        rows
    }
}

/// Returns the output of the child and the reason if it failed.
fn output(mut child: Child, limit: Duration) -> (String, Option<String>) {
    let pipe = child.stdout.take();
    let reader = thread::spawn(move || {
        let mut text = String::new();
        // Output that cannot be read is missing from the rows, and the exit code gives the reason.
        let _: Option<std::io::Result<usize>> = pipe.map(|mut pipe| pipe.read_to_string(&mut text));
        text
    });
    let begin = Instant::now();
    let failure = loop {
        match child.try_wait() {
            Ok(Some(status)) => break (!status.success()).then(|| format!("failed ({status})")),
            Err(error) => break Some(format!("lost: {error}")),
            Ok(None) if begin.elapsed() > limit => {
                let ended = child.kill().and_then(|()| child.wait());
                break Some(format!("did not stop within {limit:?}, {}", ended.map_or("lost", |_| "ended")));
            }
            Ok(None) => thread::sleep(Duration::from_millis(5)),
        }
    };
    (reader.join().unwrap_or_default(), failure)
}

#[cfg(all(test, unix))]
mod tests {
    use super::output;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    #[allow(clippy::unwrap_used, reason = "a test panics on an unexpected error")]
    fn shell(line: &str, limit: Duration) -> (String, Option<String>) {
        output(Command::new("sh").args(["-c", line]).stdout(Stdio::piped()).spawn().unwrap(), limit)
    }

    #[test]
    fn a_process_that_is_ended_keeps_its_output() {
        let (printed, failure) = shell("echo before; exec sleep 600", Duration::from_millis(300));
        assert_eq!(printed, "before\n");
        assert!(failure.is_some_and(|failure| failure.contains("did not stop within 300ms")));
    }

    #[test]
    fn a_failed_process_gives_a_reason() {
        let limit = Duration::from_secs(60);
        assert_eq!(shell("echo all", limit), ("all\n".to_owned(), None));
        assert!(shell("exit 3", limit).1.is_some_and(|failure| failure.contains("3")));
    }
}
