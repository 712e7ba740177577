//! All cases, each in a process of its own, and the tables of their figures.

use crate::cluster::Cluster;
use crate::stores::StoreName;
use std::path::Path;
use std::process::Command;
use std::{fs, io};
use timer_bench::report::machine::Machine;
use timer_bench::report::results::Results;
use timer_bench::report::{svg, table};
use timer_bench::row::Row;
use timer_bench::settings::Size;

/// The cases with their descriptions, in the order of the tables.
const CASES: &[(&str, &str)] = &[
    ("E1", "schedule: callers that wait until their timeout is on disk"),
    ("E2", "pairs: callers that schedule a timeout and cancel it"),
    ("E3", "lives: schedule, begin, handler, end"),
    ("E4", "lag of durable timeouts"),
    ("E5", "reopen: the first overdue timeout after a kill, and memory"),
    ("E6", "fill: pending timeouts that are due in 1 to 31 days"),
    ("E7", "idle: a thousand pending, nothing due"),
    ("P1", "inserts"),
    ("P2", "lives: schedule, begin, handler, end"),
    ("P3", "lives, one at a time"),
    ("P4", "lag of durable timeouts"),
    ("P5", "a node is killed: the first of its timeouts that runs elsewhere"),
    ("P6", "idle: a thousand pending, nothing due"),
    ("P7", "the write-ahead log"),
    ("P8", "as P5, with many pending"),
    ("P9", "a long run at a fixed rate"),
];

/// The peers of this program, which use a file.
const POLLERS: &[&str] = &["poller-1s", "poller-100ms"];

/// A process of a run: case, settings, and whether the peers take part.
type Step = (&'static str, &'static str, bool);

/// The steps of a file.
const FILE_STEPS: &[Step] = &[
    ("E1", "threads=1", true),
    ("E1", "threads=64", true),
    ("E1", "threads=512", false),
    ("E2", "threads=64", false),
    ("E3", "n=512", true),
    ("E4", "rate=100", true),
    ("E4", "rate=1000 alone=1", false),
    ("E4", "rate=10000", false),
    ("E6", "", false),
    ("E5-before", "", false),
    ("E5", "", false),
    ("E7", "ms=10000", true),
];

/// The steps of a server. Those of [`LONG_CASES`] run only if they are named.
const SERVER_STEPS: &[Step] = &[
    ("P1", "", true),
    ("P2", "n=512 nodes=1", true),
    ("P2", "n=512 nodes=2", false),
    ("P2", "n=64 nodes=1", false),
    ("P2", "n=64 nodes=2", false),
    ("P3", "n=1 nodes=1", false),
    ("P4", "rate=100", true),
    ("P4", "rate=1000", false),
    ("P5", "", false),
    ("P6", "ms=60000", true),
    ("P7", "n=512 nodes=1", false),
    ("P8", "n=10000000", false),
    ("P9", "rate=10000 ms=600000", false),
];

/// The cases that take minutes, so they run only if they are named.
const LONG_CASES: &[&str] = &["P8", "P9"];

/// The command line.
pub(crate) struct Options<'a> {
    pub(crate) store: StoreName,
    /// The programs of other peers, by name.
    pub(crate) peers: Vec<(String, String)>,
    pub(crate) save: Option<String>,
    /// How often each case runs. The tables have the medians.
    pub(crate) rounds: u32,
    /// The cases to run. All of them if there are none.
    pub(crate) cases: Vec<&'a str>,
    /// Settings that replace those of the steps.
    pub(crate) settings: Vec<&'a str>,
}

/// Runs the cases.
pub(crate) fn run(options: &Options<'_>) -> Result<(), String> {
    let mut results = Results::new(Machine::of_this(), Size::Full);
    let mut failures = Vec::new();
    let cluster = match &options.store {
        StoreName::Sqlite(_) => None,
        StoreName::Postgres(url) => Some(Cluster::open(url.as_deref())?),
    };
    let steps = if cluster.is_some() { SERVER_STEPS } else { FILE_STEPS };
    let steps = (0..options.rounds).flat_map(|_| steps);
    for (case, settings, with_peers) in steps {
        let name = case.split('-').next().unwrap_or(case);
        let is_wanted =
            if options.cases.is_empty() { !LONG_CASES.contains(&name) } else { options.cases.contains(&name) };
        if !is_wanted {
            continue;
        }
        // The cases E6 and E5 share a store.
        if *case == "E6" {
            options.store.remove();
        }
        for peer in peers(options, *with_peers) {
            let rows = match &cluster {
                None => process(options, &options.store, peer, case, settings),
                Some(cluster) => in_database(options, cluster, peer, case, settings),
            };
            match rows {
                Ok(rows) if rows.is_empty() && *case != "E5-before" => {
                    failures.push(format!("{peer} {case}: no figure"))
                }
                Ok(rows) => results.add(rows),
                Err(error) => failures.push(format!("{peer} {case}: {error}")),
            }
        }
    }
    options.store.remove();
    let mut text = table::header(&results.machine);
    CASES.iter().for_each(|(case, what)| text += &table::workload(&results, case, what));
    failures.iter().for_each(|failure| text += &format!("failed  {failure}\n"));
    print!("{text}");
    if let Some(name) = &options.save {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("results").join(name);
        save(&results, &text, &folder).map_err(|error| format!("cannot write {}: {error}", folder.display()))?;
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) }
}

fn peers<'a>(options: &'a Options<'_>, with_peers: bool) -> impl Iterator<Item = &'a str> {
    let pollers = if matches!(options.store, StoreName::Sqlite(_)) { POLLERS } else { &[] };
    let others = pollers.iter().copied().chain(options.peers.iter().map(|(name, _)| name.as_str()));
    ["timer"].into_iter().chain(others.filter(move |_| with_peers))
}

/// Runs one case in a database of its own.
fn in_database(
    options: &Options<'_>,
    cluster: &Cluster,
    peer: &str,
    case: &str,
    settings: &str,
) -> Result<Vec<Row>, String> {
    let url = cluster.create()?;
    let rows = process(options, &StoreName::Postgres(Some(url.clone())), peer, case, settings);
    cluster.remove(&url)?;
    rows
}

/// Runs one case and returns its rows, which are complete although the process may be aborted.
fn process(
    options: &Options<'_>,
    store: &StoreName,
    peer: &str,
    case: &str,
    settings: &str,
) -> Result<Vec<Row>, String> {
    let program = options.peers.iter().find(|(name, _)| name == peer);
    let mut command = match program {
        Some((_, program)) => {
            let mut command = Command::new(program);
            match store {
                StoreName::Postgres(Some(url)) => command.arg(url),
                _ => command.arg(store.file()),
            };
            command
        }
        None => {
            let mut command = Command::new(std::env::current_exe().map_err(|error| error.to_string())?);
            let store = match store {
                StoreName::Sqlite(file) => format!("sqlite:{}", file.display()),
                StoreName::Postgres(url) => url.clone().unwrap_or_default(),
            };
            command.args(["--store", &store, "--one"]);
            command
        }
    };
    command.args([peer, case]).args(settings.split_whitespace()).args(&options.settings);
    let output = command.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    eprint!("{text}{}", String::from_utf8_lossy(&output.stderr));
    if asks_for_goals(options) && !output.status.success() {
        return Err("the process failed, perhaps because of a missed goal".to_owned());
    }
    Ok(text.lines().filter_map(Row::parse).collect())
}

/// Returns `true` if a process that misses its goal has to fail. Without goals a process may end by
/// an abort.
fn asks_for_goals(options: &Options<'_>) -> bool {
    options.settings.contains(&"goal=1")
}

/// Writes the figures, the tables and a plot of the lag.
fn save(results: &Results, text: &str, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("results.json"), results.to_json()?)?;
    fs::write(folder.join("results.csv"), results.to_csv())?;
    fs::write(folder.join("tables.txt"), text)?;
    let mut lags = results.clone();
    lags.series.retain(|one| {
        ["E4", "P4"].contains(&one.workload.as_str())
            && one.params.starts_with("rate=100,")
            && one.unit.starts_with("us-p")
    });
    if let Some(case) = lags.series.first().map(|one| one.workload.clone()) {
        let plot = svg::workload(&lags, &case, "lag of durable timeouts, 100 a second").map_err(io::Error::other)?;
        fs::write(folder.join("lag.svg"), plot)?;
    }
    Ok(())
}
