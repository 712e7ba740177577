//! Running one process of a plan.

use super::host::CpuTime;
use super::plan::Step;
use crate::row::Row;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Runs a step on a peer. Returns the rows that it prints, or one row with the reason why there are
/// none, and the CPU time of the machine during the step. `folder` contains the programs.
pub(super) fn run(folder: &Path, step: &Step, peer: &str, is_quick: bool) -> (Vec<Row>, CpuTime) {
    let before = CpuTime::now();
    let rows = rows_or_reason(folder, step, peer, is_quick);
    (rows, CpuTime::now().since(before))
}

fn rows_or_reason(folder: &Path, step: &Step, peer: &str, is_quick: bool) -> Vec<Row> {
    let workload = step.workload.to_owned();
    let params = "-".to_owned();
    let unit = "-".to_owned();
    match rows(folder, step, peer, is_quick) {
        Ok(rows) if !rows.is_empty() => rows,
        Ok(_) => {
            vec![Row { peer: peer.to_owned(), workload, params, unit, value: Err("it printed nothing".to_owned()) }]
        }
        Err(why) => vec![Row { peer: peer.to_owned(), workload, params, unit, value: Err(why) }],
    }
}

fn rows(folder: &Path, step: &Step, peer: &str, is_quick: bool) -> Result<Vec<Row>, String> {
    let text = |error: std::io::Error| error.to_string();
    // A file takes the output of a process that is killed, too.
    let path = std::env::temp_dir().join(format!("timer-bench-{}.rows", std::process::id()));
    let mut command = Command::new(folder.join(step.program));
    command.args([peer, step.workload]).args(step.settings.split_whitespace()).args(is_quick.then_some("--quick"));
    // A new group, so that the processes that it starts are killed, too.
    command.stdin(Stdio::null()).stdout(File::create(&path).map_err(text)?).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().map_err(|error| format!("{}: {error}", step.program))?;
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(text)? {
            break Some(status);
        }
        if begin.elapsed() > step.limit() {
            if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
                // It may have ended just now.
                let _ended = kill_process_group(group, Signal::KILL);
            }
            let _status = child.wait().map_err(text)?;
            break None;
        }
        thread::sleep(Duration::from_millis(5));
    };
    let mut rows: Vec<Row> = fs::read_to_string(&path).map_err(text)?.lines().filter_map(Row::parse).collect();
    fs::remove_file(&path).map_err(text)?;
    let why = match status {
        Some(status) if status.success() => return Ok(rows),
        Some(status) => format!("it failed ({status})"),
        None => format!("did not end within {:?}", step.limit()),
    };
    let peer = peer.to_owned();
    let workload = step.workload.to_owned();
    rows.push(Row { peer, workload, params: "-".to_owned(), value: Err(why), unit: "-".to_owned() });
    Ok(rows)
}
