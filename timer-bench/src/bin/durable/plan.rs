//! All cases, each in a process of its own, and the tables of their figures.

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
    ("E6", "fill: pending timeouts of the next 30 days"),
    ("E7", "idle: a thousand pending, nothing due"),
];

/// The peers of this program.
const POLLERS: &[&str] = &["poller-1s", "poller-100ms"];

/// The processes of a run: case, settings, and whether the peers take part.
const STEPS: &[(&str, &str, bool)] = &[
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

/// The command line.
pub(crate) struct Options<'a> {
    pub(crate) store: StoreName,
    /// The programs of other peers, by name.
    pub(crate) peers: Vec<(String, String)>,
    pub(crate) save: Option<String>,
    /// The cases to run. All of them if there are none.
    pub(crate) cases: Vec<&'a str>,
    /// Settings that replace those of the steps.
    pub(crate) settings: Vec<&'a str>,
}

/// Runs the cases.
pub(crate) fn run(options: &Options<'_>) -> Result<(), String> {
    let mut results = Results::new(Machine::of_this(), Size::Full);
    let mut failures = Vec::new();
    for (case, settings, with_peers) in STEPS {
        let name = case.split('-').next().unwrap_or(case);
        if !options.cases.is_empty() && !options.cases.contains(&name) {
            continue;
        }
        // The cases E6 and E5 share a store.
        if *case == "E6" {
            options.store.remove();
        }
        for peer in peers(options, *with_peers) {
            let rows = process(options, peer, case, settings);
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
    let others = POLLERS.iter().copied().chain(options.peers.iter().map(|(name, _)| name.as_str()));
    ["timer"].into_iter().chain(others.filter(move |_| with_peers))
}

/// Runs one case and returns its rows, which are complete although the process may be aborted.
fn process(options: &Options<'_>, peer: &str, case: &str, settings: &str) -> io::Result<Vec<Row>> {
    let program = options.peers.iter().find(|(name, _)| name == peer);
    let mut command = match program {
        Some((_, program)) => {
            let mut command = Command::new(program);
            command.arg(options.store.file());
            command
        }
        None => {
            let mut command = Command::new(std::env::current_exe()?);
            let store = match &options.store {
                StoreName::Sqlite(file) => format!("sqlite:{}", file.display()),
                StoreName::Postgres(url) => url.clone(),
            };
            command.args(["--store", &store, "--one"]);
            command
        }
    };
    let output = command.args([peer, case]).args(settings.split_whitespace()).args(&options.settings).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    eprint!("{text}{}", String::from_utf8_lossy(&output.stderr));
    Ok(text.lines().filter_map(Row::parse).collect())
}

/// Writes the figures, the tables and a plot of the lag.
fn save(results: &Results, text: &str, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("results.json"), results.to_json()?)?;
    fs::write(folder.join("results.csv"), results.to_csv())?;
    fs::write(folder.join("tables.txt"), text)?;
    let mut lags = results.clone();
    lags.series
        .retain(|one| one.workload == "E4" && one.params.starts_with("rate=100,") && one.unit.starts_with("us-p"));
    if !lags.series.is_empty() {
        let plot = svg::workload(&lags, "E4", "lag of durable timeouts, 100 a second").map_err(io::Error::other)?;
        fs::write(folder.join("lag.svg"), plot)?;
    }
    Ok(())
}
