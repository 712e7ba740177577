//! The workloads `W1` to `W21`, which are the same for every timer, and the count of instructions.
//! The head of each file or folder describes the work and its figures.
//!
//! A workload runs all cases that its settings select in one process, and prints a line for each
//! figure. Most cases have a new timer. Lower is better for all figures.

mod batch;
mod caller;
mod cancel;
mod churn;
mod elsewhere;
mod fire;
mod floor_comparison;
#[cfg(feature = "held")]
mod held;
mod histogram;
#[cfg(feature = "peers")]
mod http;
mod idle;
mod instructions;
mod kept;
mod lag;
mod memory;
mod out;
mod quantiles;
#[cfg(feature = "peers")]
mod queues;
mod reset;
mod scale;
mod schedule;
mod shared_queues;
mod storm;
mod tail;
#[cfg(feature = "peers")]
mod tasks;
mod wheels;

use crate::peers::shared_queues::SharedQueue;
use crate::peers::storming::{Expiring, Storming};
use crate::peers::{self, Peer};
use crate::settings::{self, Settings};
#[cfg(feature = "peers")]
use http::HttpTimeouts;
use out::Out;
use std::process::ExitCode;

/// The reason why a workload did not finish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The peer cannot do it, for this reason.
    Unavailable(String),
    /// The timer does not come to rest. The figures so far are printed, and the process has to be
    /// ended.
    Endless,
    /// There is no such workload in this program.
    Unknown,
}

/// A function that returns the number of bytes on the heap.
pub type HeapSize = fn() -> usize;

/// The running program. The programs differ in their allocators, and one in its locks.
#[derive(Debug, Clone, Copy)]
pub enum Program {
    /// The system's allocator.
    Timing,
    /// mimalloc, for the workloads in which the allocator matters.
    Mimalloc,
    /// An allocator that counts. Counting takes time, so it serves only the workloads that measure
    /// memory.
    Counting(HeapSize),
    /// A timer that records how long the locks of its shards are held.
    Held,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Self::Timing => "workload",
            Self::Mimalloc => "workload-mimalloc",
            Self::Counting(_) => "workload-mem",
            Self::Held => "workload-held",
        }
    }

    /// Returns `true` if this program runs the workload.
    pub(crate) fn runs(self, workload: &str) -> bool {
        match self {
            Self::Timing => true,
            Self::Mimalloc => ["W8", "W14", "W21"].contains(&workload),
            Self::Counting(_) => ["W7", "W8", "W17", "W18"].contains(&workload),
            Self::Held => workload == "W21",
        }
    }
}

/// The peers that a workload is for, by the trait that they need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Plain,
    Storms,
    Tasks,
    Queues,
    SharedQueues,
    Http,
    Counts,
}

/// All workloads with their descriptions.
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
    ("W13", "cancelled elsewhere: one thread schedules, another cancels"),
    ("W14", "cancel many: all in random order, in batches of 1,000"),
    ("W15", "storm: more threads than CPUs, at full speed, beyond the stop"),
    ("W16", "async: tasks that put a limit on what they wait for"),
    ("W17", "sleepers: a million tasks asleep"),
    ("W18", "delay queues of one task"),
    ("W19", "delay queues of several threads"),
    ("W20", "http: the timer's share of a server's CPU time, with 10,000 keep-alive connections"),
    ("W21", "held: how long the lock of a shard is held under the heaviest loads"),
    ("instructions", "instructions of an operation, and those of them that lock the memory bus, under callgrind"),
];

/// Returns the family of a workload, or `None` if there is no such workload.
pub(crate) fn family(workload: &str) -> Option<Family> {
    let name = workload.split(':').next()?;
    ALL.iter().any(|(known, _)| *known == name).then_some(match name {
        "W15" => Family::Storms,
        "W16" | "W17" => Family::Tasks,
        "W18" => Family::Queues,
        "W19" => Family::SharedQueues,
        "W20" => Family::Http,
        "instructions" => Family::Counts,
        _ => Family::Plain,
    })
}

/// Runs one workload on the peer `P`.
pub(crate) fn plain<P: Peer>(workload: &str, settings: &Settings, program: Program) -> Result<(), Stop> {
    let out = Out::new(P::NAME, workload);
    match (workload, program) {
        ("W7", Program::Counting(heap)) => memory::pending::<P>(settings, heap, &out),
        ("W8", Program::Counting(heap)) => memory::cancelled::<P>(settings, heap, &out),
        ("W8", Program::Mimalloc) => cancel::run::<P>(settings, ",alloc=mimalloc", &out),
        ("W14", Program::Mimalloc) => batch::run::<P>(settings, "mimalloc", &out),
        #[cfg(feature = "held")]
        ("W21", Program::Held | Program::Mimalloc) if P::NAME == peers::OURS => held::run(settings, &out),
        ("W21", _) => Err(Stop::Unavailable("ours only, by workload-held".to_owned())),
        ("W7", _) => Err(Stop::Unavailable("needs the counting allocator of workload-mem".to_owned())),
        ("W1", _) => schedule::run::<P>(settings, &out),
        ("W2", _) => churn::run::<P>(settings, &out),
        ("W3", _) => fire::run::<P>(settings, &out),
        ("W4", _) => lag::run::<P>(settings, &out),
        ("W5", _) => idle::one::<P>(settings, &out),
        ("W6", _) => idle::standing::<P>(settings, &out),
        ("W8", _) => cancel::run::<P>(settings, "", &out),
        ("W9", _) => reset::run::<P>(settings, &out),
        ("W10", _) => tail::run::<P>(settings, &out),
        ("W11", _) => scale::run::<P>(settings, &out),
        ("W12", _) => wheels::run(P::NAME, settings, &out),
        ("W13", _) => elsewhere::run::<P>(settings, &out),
        ("W14", _) => batch::run::<P>(settings, "system", &out),
        _ => Err(Stop::Unknown),
    }
}

/// Runs storms on the peer `P`.
pub(crate) fn storms<P: Storming>(workload: &str, settings: &Settings, program: Program) -> Result<(), Stop> {
    match (workload, program) {
        ("W15", Program::Timing) => storm::run::<P>(settings, &Out::new(P::NAME, workload)),
        _ => Err(Stop::Unknown),
    }
}

/// Counts the instructions of the peer `P`.
pub(crate) fn counts<P: Expiring>(workload: &str, settings: &Settings, program: Program) -> Result<(), Stop> {
    match (workload.split_once(':'), program) {
        (None, Program::Timing) => instructions::run::<P>(settings, &Out::new(P::NAME, workload)),
        (Some((_, operation)), Program::Timing) => instructions::operation::<P>(operation, settings),
        _ => Err(Stop::Unknown),
    }
}

/// Runs the workloads of tasks on the peer `P`.
#[cfg(feature = "peers")]
pub(crate) fn tasks<P: peers::tasks::Tasks>(workload: &str, settings: &Settings, program: Program) -> Result<(), Stop> {
    let out = Out::new(P::NAME, workload);
    match (workload, program) {
        ("W16", Program::Timing) => tasks::limits::run::<P>(settings, &out),
        ("W17", Program::Timing) => tasks::sleepers::run::<P>(settings, &out),
        ("W17", Program::Counting(heap)) => tasks::sleepers::memory::<P>(settings, heap, &out),
        _ => Err(Stop::Unknown),
    }
}

/// Runs the workloads of delay queues on the queue `Q`.
#[cfg(feature = "peers")]
pub(crate) fn queues<Q: peers::queues::Queue>(
    workload: &str,
    settings: &Settings,
    program: Program,
) -> Result<(), Stop> {
    let out = Out::new(Q::NAME, workload);
    match program {
        Program::Timing => queues::run::<Q>(settings, &out),
        Program::Counting(heap) => queues::memory::<Q>(settings, heap, &out),
        Program::Mimalloc | Program::Held => Err(Stop::Unknown),
    }
}

/// Runs a part of the workload of the HTTP server.
#[cfg(feature = "peers")]
fn http(
    peer: &'static str,
    timeouts: HttpTimeouts,
    workload: &str,
    settings: &Settings,
    program: Program,
) -> Result<(), Stop> {
    let (name, part) = workload.split_once(':').unwrap_or((workload, ""));
    match program {
        Program::Timing => http::run(part, timeouts, settings, &Out::new(peer, name)),
        _ => Err(Stop::Unknown),
    }
}

/// Runs the HTTP server with our timer.
#[cfg(feature = "peers")]
pub(crate) fn http_of_ours(workload: &str, settings: &Settings, program: Program) -> Result<(), Stop> {
    http(peers::OURS, HttpTimeouts::Ours, workload, settings, program)
}

/// Runs the HTTP server with tokio's timer.
#[cfg(feature = "peers")]
pub(crate) fn http_of_tokio(workload: &str, settings: &Settings, program: Program) -> Result<(), Stop> {
    http("tokio", HttpTimeouts::Tokio, workload, settings, program)
}

/// Runs the HTTP server with a timer that does nothing.
#[cfg(feature = "peers")]
pub(crate) fn http_of_floor(workload: &str, settings: &Settings, program: Program) -> Result<(), Stop> {
    http(peers::FLOOR, HttpTimeouts::None, workload, settings, program)
}

/// Runs the workload of shared delay queues on the queue `Q`.
pub(crate) fn shared_queues<Q: SharedQueue>(workload: &str, settings: &Settings, program: Program) -> Result<(), Stop> {
    match program {
        Program::Timing => shared_queues::run::<Q>(settings, &Out::new(Q::NAME, workload)),
        _ => Err(Stop::Unknown),
    }
}

/// Runs one workload, as the words on the command line say.
pub fn main(program: Program) -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match start(&words, program) {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            // The error comes last, because the usage fills a screen.
            eprintln!("{}\n{what}", usage(program));
            ExitCode::from(2)
        }
    }
}

fn start(words: &[String], program: Program) -> Result<(), String> {
    let [peer, workload, rest @ ..] = words else {
        return Err("which timer, and which workload?".to_owned());
    };
    let settings = Settings::parse(rest.iter().map(String::as_str))?;
    match peers::run(peer, workload, &settings, program) {
        None => Err(format!("no timer `{peer}` was built in")),
        Some(Err(Stop::Unknown)) => Err(format!("no workload `{workload}` in this program")),
        Some(Err(Stop::Unavailable(why))) => {
            println!("{peer} {workload} - n/a - {why}");
            Ok(())
        }
        // Threads that do not end are ended with the process.
        Some(Ok(()) | Err(Stop::Endless)) => Ok(()),
    }
}

fn usage(program: Program) -> String {
    let mut text = format!("{} PEER WORKLOAD [--quick] [NAME=NUMBER[,NUMBER..]]...\n", program.name());
    let peers: Vec<_> = peers::ALL.iter().map(|peer| (peer.name, peer.what)).collect();
    let workloads: Vec<_> = ALL.iter().copied().filter(|(name, _)| program.runs(name)).collect();
    for (title, entries) in [("peers", &*peers), ("workloads", &*workloads), ("settings", settings::NAMES)] {
        text += &format!("\n{title}:\n");
        for (name, what) in entries {
            text += &format!("  {name:<14} {what}\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{ALL, Program, start, usage};

    #[test]
    fn errors_on_the_command_line_are_reported() {
        let error = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            start(&words, Program::Timing).unwrap_err()
        };
        assert!(error("timer").contains("which workload"));
        assert!(error("tiemr W1").contains("`tiemr`"));
        assert!(error("timer W99").contains("`W99`"));
        assert!(error("timer W1 m=3").contains("`m`"));
        assert!(ALL.iter().all(|(name, _)| usage(Program::Timing).contains(name)));
    }

    #[test]
    fn the_usage_of_a_program_lists_the_workloads_that_it_runs() {
        for program in [Program::Mimalloc, Program::Counting(|| 0), Program::Held] {
            let (runs, refuses): (Vec<&str>, Vec<&str>) =
                ALL.iter().map(|(name, _)| *name).partition(|name| program.runs(name));
            let usage = usage(program);
            assert!(runs.iter().all(|name| usage.contains(&format!("  {name:<14} "))));
            for name in refuses {
                assert!(!usage.contains(&format!("  {name:<14} ")));
                let words = ["timer".to_owned(), name.to_owned()];
                assert!(start(&words, program).is_err(), "{} runs {name}", program.name());
            }
        }
    }
}
