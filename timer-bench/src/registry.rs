//! The list of all peers and workloads, and the program `workload`, which runs one on the other.
//!
//! A new workload is a file in `workloads/` and three lines here: in [`WORKLOADS`], in the list of
//! the peers that take part, and in the function below it.

#[cfg(feature = "durable")]
use crate::durable::store;
use crate::out::{Heap, Run, Stop};
use crate::peer::{FLOOR, OURS, Peer, STATIC};
#[cfg(feature = "peers")]
use crate::peers::{async_io, moka, pingora};
use crate::peers::{btree, external, floor, ours};
#[cfg(feature = "tokio")]
use crate::peers::{caches, tokio};
use crate::settings::{self, Settings};
use crate::workloads as w;
use std::process::{Command, ExitCode};
use timer_core::WheelKind;

/// All workloads with their descriptions.
pub const WORKLOADS: &[(&str, &str)] = &[
    ("schedule", "schedule a million far timers"),
    ("pair", "schedule one and cancel the oldest, as request timeouts do"),
    ("reset", "move the timeouts of a thousand connections"),
    ("cancel", "cancel a million in random order"),
    ("crowd", "a million due within 200 ms"),
    ("lateness", "how late tasks run, at 10,000 a second"),
    ("busy", "single calls while 100,000 a second fire"),
    ("overload", "more threads than CPUs at full speed, over time"),
    ("idle", "nothing due: one pending, a million pending"),
    ("memory", "bytes of a pending timer"),
    ("futures", "tasks that put a limit on what they wait for"),
    ("sleepers", "a million tasks asleep, due within 200 ms"),
    ("queue", "a delay queue of one task"),
    ("ttl", "caches whose entries expire, by the mixes of 23 production clusters"),
    ("instructions", "instructions of an operation, and those of them that lock the memory bus"),
    ("timetable", "read how many of a million are due within which time"),
    ("held", "the longest hold of a shard's lock"),
    ("durable-sqlite", "durable timeouts in an SQLite file"),
    ("durable-postgres", "durable timeouts on a new PostgreSQL server"),
    ("durable-neighbor", "durable timeouts beside a topic that hangs, and beside a paused one"),
    ("growth", "single operations with a thousand to ten million pending"),
    ("growth-sqlite", "lives and pages with ten thousand to ten million rows in an SQLite file"),
    ("growth-postgres", "the same on a new PostgreSQL server"),
    ("durable-soak", "ten minutes of durable timeouts on PostgreSQL, which must keep their promises"),
];

/// The workloads that a function runs, and the function.
type Part = (&'static [&'static str], fn(&Run) -> Result<(), Stop>);

/// A peer.
pub struct Entry {
    /// The name of the peer.
    pub name: &'static str,
    /// A description of the peer.
    pub what: &'static str,
    how: How,
}

enum How {
    /// By functions.
    Here(&'static [Part]),
    /// By a program that takes part in these workloads.
    External(&'static [&'static str], fn() -> Result<Command, Stop>),
}

impl Entry {
    /// Returns `true` if the peer takes part in `workload`.
    pub fn does(&self, workload: &str) -> bool {
        let lists: Vec<&[&str]> = match &self.how {
            How::Here(parts) => parts.iter().map(|(workloads, _)| *workloads).collect(),
            How::External(workloads, _) => vec![workloads],
        };
        lists.concat().contains(&workload)
    }

    /// Runs a workload. `settings` has the words of the settings, for an external program.
    fn run(&self, run: &Run, settings: &[String]) -> Result<(), Stop> {
        let name = run.workload.split(':').next().unwrap_or_default();
        match &self.how {
            How::Here(parts) => match parts.iter().find(|(workloads, _)| workloads.contains(&name)) {
                Some((_, part)) => part(run),
                None => Err(Stop::because("takes no part")),
            },
            How::External(workloads, _) if !workloads.contains(&name) => Err(Stop::because("takes no part")),
            #[cfg(feature = "durable")]
            How::External(_, program) if DURABLE.contains(&name) => store::run_external(program()?, run, settings),
            How::External(_, program) => {
                let status = program()?.args([&run.peer, &run.workload]).args(settings).status();
                if status.map_err(Stop::because)?.success() { Ok(()) } else { Err(Stop::because("it failed")) }
            }
        }
    }
}

/// The workloads of callbacks, which need a [`Peer`].
const TIMERS: &[&str] = &[
    "schedule",
    "pair",
    "reset",
    "cancel",
    "crowd",
    "lateness",
    "busy",
    "overload",
    "idle",
    "memory",
    "growth",
    "instructions",
];

/// The workloads of tasks, which need [`Sleeps`](crate::peer::Sleeps).
#[cfg(feature = "tokio")]
const SLEEPS: &[&str] = &["futures", "sleepers"];

/// The workloads that need a [`Subject`](crate::durable::subject::Subject).
#[cfg(feature = "durable")]
const DURABLE: &[&str] = &["durable-sqlite", "durable-postgres"];

/// The workloads that a static program runs beside this one.
const STATIC_TIMERS: &[&str] = &["schedule", "pair", "reset", "cancel"];

#[cfg(target_feature = "crt-static")]
const IN_STATIC_PROGRAM: How = How::Here(&[(STATIC_TIMERS, timers::<ours::Hierarchical>)]);
#[cfg(not(target_feature = "crt-static"))]
const IN_STATIC_PROGRAM: How = How::External(STATIC_TIMERS, external::in_static_program);

/// The workloads of the peers on the JVM.
const JAVA: &[&str] = &["schedule", "pair", "cancel", "crowd", "lateness", "busy", "idle", "memory"];

/// All peers, ours first.
pub const PEERS: &[Entry] = &[
    Entry {
        name: OURS,
        what: "this workspace, hierarchical wheel",
        how: How::Here(&[
            (TIMERS, timers::<ours::Hierarchical>),
            #[cfg(feature = "tokio")]
            (SLEEPS, sleeps::<ours::OurSleeps>),
            #[cfg(feature = "tokio")]
            (&["queue"], w::queue::run::<timer_core::delay_queue::DelayQueue<u64>>),
            #[cfg(feature = "tokio")]
            (&["ttl"], w::ttl::run::<timer_core::delay_queue::DelayMap<u64, u64>>),
            (&["timetable"], |run| w::timetable::run(run, WheelKind::Hierarchical)),
            (&["held"], held),
            #[cfg(feature = "durable")]
            (DURABLE, store::run::<crate::durable::ours::Ours>),
            #[cfg(feature = "durable")]
            (&["durable-neighbor"], crate::durable::neighbor::run),
            #[cfg(feature = "durable")]
            (&["growth-sqlite", "growth-postgres"], crate::durable::growth::run),
            #[cfg(feature = "durable")]
            (&["durable-soak"], store::soak),
        ]),
    },
    Entry {
        name: "timer-hashed",
        what: "this workspace, hashed wheel",
        how: How::Here(&[
            (TIMERS, timers::<ours::Hashed>),
            (&["timetable"], |run| w::timetable::run(run, WheelKind::Hashed { ticks_per_wheel: 32_768 })),
        ]),
    },
    #[cfg(feature = "tokio")]
    Entry {
        name: "timer-pair",
        what: "this workspace, a hash map beside a delay queue",
        how: How::Here(&[(&["ttl"], w::ttl::run::<caches::Pair<timer_core::delay_queue::DelayQueue<u64>>>)]),
    },
    Entry { name: STATIC, what: "this workspace in a static program on musl, with mimalloc", how: IN_STATIC_PROGRAM },
    #[cfg(feature = "tokio")]
    Entry {
        name: tokio::NAME,
        what: "tokio::time::sleep, polled once",
        how: How::Here(&[(TIMERS, timers::<tokio::Tokio>), (SLEEPS, sleeps::<tokio::TokioSleeps>)]),
    },
    #[cfg(all(feature = "peers", not(tokio_unstable)))]
    Entry {
        name: "tokio-alt",
        what: "the same with tokio's alternative timer",
        how: How::External(
            &["schedule", "pair", "reset", "cancel", "crowd", "lateness", "busy", "idle", "futures", "sleepers"],
            external::tokio_alt,
        ),
    },
    #[cfg(feature = "tokio")]
    Entry {
        name: "delay-queue",
        what: "tokio_util::time::DelayQueue, for ttl beside a hash map",
        how: How::Here(&[
            (&["queue"], w::queue::run::<tokio_util::time::DelayQueue<u64>>),
            (&["ttl"], w::ttl::run::<caches::Pair<tokio_util::time::DelayQueue<u64>>>),
        ]),
    },
    #[cfg(feature = "peers")]
    Entry {
        name: "moka",
        what: "moka::sync::Cache with an expiry for each entry",
        how: How::Here(&[(&["ttl"], w::ttl::run::<moka::Moka>)]),
    },
    #[cfg(feature = "peers")]
    Entry {
        name: "pingora",
        what: "pingora_timeout::fast_timeout::fast_sleep, polled once",
        how: How::Here(&[(TIMERS, timers::<pingora::Pingora>)]),
    },
    #[cfg(feature = "peers")]
    Entry {
        name: "async-io",
        what: "async_io::Timer, polled once",
        how: How::Here(&[(TIMERS, timers::<async_io::AsyncIo>), (SLEEPS, sleeps::<async_io::AsyncIo>)]),
    },
    Entry {
        name: "btree",
        what: "std: Mutex<BTreeMap> and a thread",
        how: How::Here(&[(TIMERS, timers::<btree::BTree>)]),
    },
    Entry { name: "netty", what: "Netty's HashedWheelTimer, tick 1 ms", how: How::External(JAVA, external::java) },
    Entry {
        name: "netty-4.2",
        what: "the same, of the Netty whose jar is given",
        how: How::External(JAVA, external::java_with_given_netty),
    },
    Entry { name: "jdk", what: "the JDK's ScheduledThreadPoolExecutor", how: How::External(JAVA, external::java) },
    Entry { name: "fork-join", what: "the ForkJoinPool of JDK 25", how: How::External(JAVA, external::java_25) },
    #[cfg(feature = "durable")]
    Entry {
        name: "poller",
        what: "a table in an SQLite file and a thread that looks every 100 ms",
        how: How::Here(&[(&["durable-sqlite"], store::run::<crate::durable::poller::Poller>)]),
    },
    #[cfg(feature = "durable")]
    Entry { name: "apalis", what: "apalis, which looks every 100 ms", how: How::External(DURABLE, external::queues) },
    #[cfg(feature = "durable")]
    Entry {
        name: "river",
        what: "River for Rust, which looks every 100 ms",
        how: How::External(&["durable-postgres"], external::queues),
    },
    #[cfg(feature = "durable")]
    Entry {
        name: "graphile-worker",
        what: "graphile_worker for Rust, which looks every 100 ms",
        how: How::External(&["durable-postgres"], external::queues),
    },
    Entry {
        name: FLOOR,
        what: "no timer: a clock reading, an allocation, two locks; for durable timeouts, a sync of 4 KB",
        how: How::Here(&[
            (&["pair", "reset", "busy", "instructions"], timers::<floor::Floor>),
            (&["growth"], w::growth::floor),
            #[cfg(feature = "durable")]
            (&["durable-sqlite"], store::floor),
        ]),
    },
];

fn timers<P: Peer>(run: &Run) -> Result<(), Stop> {
    match run.workload.split(':').next().unwrap_or_default() {
        "schedule" => w::schedule::run::<P>(run),
        "pair" => w::pair::run::<P>(run),
        "reset" => w::reset::run::<P>(run),
        "cancel" => w::cancel::run::<P>(run),
        "crowd" => w::crowd::run::<P>(run),
        "lateness" => w::lateness::run::<P>(run),
        "busy" => w::busy::run::<P>(run),
        "overload" => w::overload::run::<P>(run),
        "idle" => w::idle::run::<P>(run),
        "memory" => w::memory::run::<P>(run),
        "growth" => w::growth::run::<P>(run),
        _ => w::instructions::run::<P>(run),
    }
}

#[cfg(feature = "tokio")]
fn sleeps<P: crate::peer::Sleeps>(run: &Run) -> Result<(), Stop> {
    if run.workload == "futures" { w::futures::run::<P>(run) } else { w::sleepers::run::<P>(run) }
}

fn held(run: &Run) -> Result<(), Stop> {
    #[cfg(feature = "held")]
    return w::held::run(run);
    #[cfg(not(feature = "held"))]
    Err(Stop::because(format!("{} needs the program workload-held", run.workload)))
}

/// The program `workload PEER WORKLOAD [--SETTING NUMBER,..]..`, which prints a line per figure.
pub fn main(heap: Heap) -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let started = Settings::parse(&words).map_err(|error| error.to_string()).and_then(|(operands, settings)| {
        let [peer, workload] = operands.as_slice() else { return Err("which timer, and which workload?".to_owned()) };
        let entry = PEERS.iter().find(|entry| entry.name == peer).ok_or(format!("no timer `{peer}` was built in"))?;
        let name = workload.split(':').next();
        if !WORKLOADS.iter().any(|(known, _)| Some(*known) == name) {
            return Err(format!("no workload `{workload}`"));
        }
        let words: Vec<_> = words.iter().filter(|word| ![peer, workload].contains(word)).cloned().collect();
        Ok((entry, Run { peer: peer.clone(), workload: workload.clone(), settings, heap }, words))
    });
    let (entry, this, settings) = match started {
        Ok(started) => started,
        Err(what) => {
            // The error comes last, because the usage fills a screen.
            eprintln!("{}\n{what}", usage());
            return ExitCode::from(2);
        }
    };
    match entry.run(&this, &settings) {
        Ok(()) => {}
        Err(Stop::Unavailable(why)) => println!("{} {} - n/a - {why}", this.peer, this.workload),
        Err(Stop::Failed(why)) => {
            eprintln!("{} {}: {why}", this.peer, this.workload);
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn usage() -> String {
    let mut text = "workload PEER WORKLOAD [--quick] [--SETTING NUMBER[,NUMBER..]]...\n".to_owned();
    let peers: Vec<_> = PEERS.iter().map(|peer| (peer.name, peer.what)).collect();
    for (title, dashes, entries) in
        [("peers", "", &*peers), ("workloads", "", WORKLOADS), ("settings", "--", settings::NAMES)]
    {
        text += &format!("\n{title}:\n");
        for (name, what) in entries {
            text += &format!("  {:<16} {what}\n", format!("{dashes}{name}"));
        }
    }
    text
}
