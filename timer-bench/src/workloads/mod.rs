//! The work that is the same for every timer, `W1` to `W12`. Each is one file that says what it does and what it counts.
//!
//! A workload runs all its cases in one process, a new timer for each, and prints one line for each figure. Lower is better
//! for every one of them.

mod caller;
mod cancel;
mod churn;
mod fire;
mod idle;
mod lag;
mod memory;
mod out;
mod quantiles;
mod reset;
mod scale;
mod schedule;
mod tail;
mod wheels;

use crate::peers::{self, Peer};
use crate::settings::{self, Settings};
use out::Out;
use std::process::ExitCode;

/// Why a workload did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The peer cannot do it, and why.
    Unavailable(String),
    /// There is no such workload.
    Unknown,
}

/// Tells the bytes on the heap.
pub type HeapSize = fn() -> usize;

/// Every workload: name, and what it is.
pub const ALL: &[(&str, &str)] = &[
    ("W1", "schedule: far timers from several threads"),
    ("W2", "churn: schedule one, cancel the oldest, as request timeouts do"),
    ("W3", "fire: all due within 200 ms"),
    ("W4", "lag: how late tasks run, at 10,000 a second"),
    ("W5", "idle: one timer, an hour off"),
    ("W6", "standing load: many pending, none due"),
    ("W7", "memory of a pending timer"),
    ("W8", "cancel all, in random order"),
    ("W9", "reset: every packet pushes its connection's timeout back"),
    ("W10", "tail of a single call, while 100,000 a second fire"),
    ("W11", "scale: the cost of each operation by how many are pending"),
    ("W12", "the wheels alone, on one thread"),
];

/// Runs one workload on the peer `P`. `heap` tells the bytes on the heap, in a process that counts them: such a process
/// has the memory workloads, and only those.
pub(crate) fn run<P: Peer>(workload: &str, settings: &Settings, heap: Option<HeapSize>) -> Result<(), Stop> {
    let out = Out::new(P::NAME, workload);
    match (workload, heap) {
        ("W7", Some(heap)) => memory::pending::<P>(settings, heap, &out),
        ("W8", Some(heap)) => memory::cancelled::<P>(settings, heap, &out),
        ("W7", None) => Err(Stop::Unavailable("needs the counting allocator of workload-mem".to_owned())),
        ("W1", None) => schedule::run::<P>(settings, &out),
        ("W2", None) => churn::run::<P>(settings, &out),
        ("W3", None) => fire::run::<P>(settings, &out),
        ("W4", None) => lag::run::<P>(settings, &out),
        ("W5", None) => idle::one::<P>(settings, &out),
        ("W6", None) => idle::standing::<P>(settings, &out),
        ("W8", None) => cancel::run::<P>(settings, &out),
        ("W9", None) => reset::run::<P>(settings, &out),
        ("W10", None) => tail::run::<P>(settings, &out),
        ("W11", None) => scale::run::<P>(settings, &out),
        ("W12", None) => wheels::run(P::NAME, settings, &out),
        _ => Err(Stop::Unknown),
    }
}

/// The program `workload`, and with a `heap` that counts, `workload-mem`.
pub fn main(heap: Option<HeapSize>) -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match start(&words, heap) {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("{what}\n\n{}", usage());
            ExitCode::from(2)
        }
    }
}

fn start(words: &[String], heap: Option<HeapSize>) -> Result<(), String> {
    let [peer, workload, rest @ ..] = words else {
        return Err("which timer, and which workload?".to_owned());
    };
    let settings = Settings::parse(rest.iter().map(String::as_str))?;
    match peers::run(peer, workload, &settings, heap) {
        None => Err(format!("no timer `{peer}` was built in")),
        Some(Err(Stop::Unknown)) => Err(format!("no workload `{workload}` in this program")),
        Some(Err(Stop::Unavailable(why))) => {
            println!("{peer} {workload} - n/a - {why}");
            Ok(())
        }
        Some(Ok(())) => Ok(()),
    }
}

fn usage() -> String {
    let mut text = String::from("workload PEER WORKLOAD [--quick] [NAME=NUMBER[,NUMBER..]]...\n");
    let peers: Vec<_> = peers::ALL.iter().map(|peer| (peer.name, peer.what)).collect();
    for (title, entries) in [("peers", peers.as_slice()), ("workloads", ALL), ("settings", settings::NAMES)] {
        text += &format!("\n{title}:\n");
        for (name, what) in entries {
            text += &format!("  {name:<13} {what}\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{ALL, start, usage};

    #[test]
    fn what_is_wrong_on_the_command_line_is_said() {
        let error = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            start(&words, None).unwrap_err()
        };
        assert!(error("timer").contains("which workload"));
        assert!(error("tiemr W1").contains("`tiemr`"));
        assert!(error("timer W13").contains("`W13`"));
        assert!(error("timer W1 m=3").contains("`m`"));
        assert!(ALL.iter().all(|(name, _)| usage().contains(name)));
    }
}
