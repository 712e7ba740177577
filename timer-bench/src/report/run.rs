//! Starts the processes, one at a time, and reads the rows that they print.

use super::plan::Step;
use crate::row::Row;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The longest that one process may take, before it is ended and its figures are not available.
const LIMIT: Duration = Duration::from_secs(300);

/// The programs that do the work.
pub struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// Those that were built with this one.
    ///
    /// # Errors
    ///
    /// If there are none.
    pub fn beside_this_one() -> Result<Self, String> {
        let this = std::env::current_exe().map_err(|error| format!("where am I? {error}"))?;
        let folder = this.parent().unwrap_or(Path::new(".")).to_owned();
        let programs = Self { folder };
        for counting in [false, true] {
            let program = programs.path(counting);
            if !program.is_file() {
                return Err(format!("{} is missing; `cargo xtask bench` builds it", program.display()));
            }
        }
        Ok(programs)
    }

    fn path(&self, counting: bool) -> PathBuf {
        let name = if counting { "workload-mem" } else { "workload" };
        self.folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
    }

    /// Does one step once. A process that fails gives what it printed before, and a row that says how it failed.
    pub fn run(&self, step: &Step, peer: &str, quick: bool) -> Vec<Row> {
        let mut command = Command::new(self.path(step.counting));
        command.args([peer, step.workload]).args(step.settings.split_whitespace());
        command.args(quick.then_some("--quick")).stdin(Stdio::null()).stdout(Stdio::piped());
        let (printed, failure) = match command.spawn() {
            Ok(child) => output(child),
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

/// What the child printed, and how it failed if it did.
fn output(mut child: Child) -> (String, Option<String>) {
    let pipe = child.stdout.take();
    let reader = thread::spawn(move || {
        let mut text = String::new();
        // What cannot be read is missing in the rows, and the exit code says the rest.
        let _: Option<std::io::Result<usize>> = pipe.map(|mut pipe| pipe.read_to_string(&mut text));
        text
    });
    let begin = Instant::now();
    let failure = loop {
        match child.try_wait() {
            Ok(Some(status)) => break (!status.success()).then(|| format!("failed ({status})")),
            Err(error) => break Some(format!("lost: {error}")),
            Ok(None) if begin.elapsed() > LIMIT => {
                let ended = child.kill().and_then(|()| child.wait());
                break Some(format!("took longer than {LIMIT:?}, {}", ended.map_or("lost", |_| "ended")));
            }
            Ok(None) => thread::sleep(Duration::from_millis(5)),
        }
    };
    (reader.join().unwrap_or_default(), failure)
}
