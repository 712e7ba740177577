//! Durable timeouts beside a raw sync of 4 KB and beside other ways to keep timeouts on disk.
//!
//!     cargo build --release -p timer-bench --features durable --bin durable
//!     target/release/durable --store STORE [--peer NAME=PROGRAM] [--rounds N] [--save NAME] [CASE..]
//!
//! STORE is `sqlite:FILE`, `postgres` or `postgres://URL`. The program runs each case in a process
//! of its own, all implementations in turn, and prints tables with the goals. A file is emptied
//! before each case but E5, which reopens the file of E6. Without a URL the program starts a
//! PostgreSQL server from the installed binaries, and each case has a new database. `--peer` names
//! a program that measures another implementation, which takes the words `FILE NAME CASE SETTING..`
//! or `URL NAME CASE SETTING..` and prints rows. `--rounds` repeats all cases, and the tables have
//! the medians. `--save` keeps the figures and a plot of the lag under `results/NAME`.
//!
//!     durable --store sqlite:FILE|postgres://URL --one PEER CASE [NAME=NUMBER]..
//!
//! runs one case in this process and prints its rows.
#![forbid(unsafe_code)]

mod cluster;
mod long_run;
mod nodes;
mod ours;
mod plan;
mod poller;
#[allow(dead_code, clippy::expect_used, reason = "tests use the rest of it, and a benchmark may panic, too")]
#[path = "../../../../timer-durable/tests/support/postgres_server.rs"]
mod postgres_server;
mod sizes;
mod stores;

use ours::Ours;
use poller::Poller;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use stores::StoreName;
use timer_bench::durable::{cases, floor, row};
use timer_bench::row::Row;
use timer_bench::settings::Settings;

const USAGE: &str =
    "usage: durable --store sqlite:FILE|postgres[://URL] [--peer NAME=PROGRAM] [--rounds N] [--save NAME] [E1|..|E7|P1|..|P9].. [NAME=NUMBER]..
       durable --store sqlite:FILE|postgres://URL --one PEER CASE [NAME=NUMBER]..";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match start(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("durable: {what}\n{USAGE}");
            ExitCode::FAILURE
        }
    }
}

fn start(words: &[String]) -> Result<(), String> {
    let (mut store, mut peers, mut save, mut one, mut rest) = (None, Vec::new(), None, false, Vec::new());
    let mut rounds = 1;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().cloned().ok_or_else(|| format!("`{word}` needs a value"));
        match word.as_str() {
            "--store" => store = Some(StoreName::parse(&value()?)?),
            "--peer" => {
                let value = value()?;
                let (name, program) = value.split_once('=').ok_or_else(|| format!("`{value}` is not NAME=PROGRAM"))?;
                peers.push((name.to_owned(), program.to_owned()));
            }
            "--rounds" => {
                let value = value()?;
                rounds = value
                    .parse()
                    .ok()
                    .filter(|rounds| (1..=100).contains(rounds))
                    .ok_or_else(|| format!("`--rounds {value}` given; allowed: 1 to 100"))?;
            }
            "--save" => save = Some(value()?),
            "--one" => one = true,
            _ => rest.push(word.as_str()),
        }
    }
    let store = store.ok_or("which store?")?;
    if one {
        let [peer, case, settings @ ..] = rest.as_slice() else { return Err("which peer, and which case?".to_owned()) };
        return single(&store, peer, case, &Settings::parse(settings.iter().copied())?);
    }
    let (settings, cases) = rest.iter().partition(|word| word.contains('=') || word.starts_with("--"));
    plan::run(&plan::Options { store, peers, save, rounds, cases, settings })
}

/// Runs one case in this process.
fn single(store: &StoreName, peer: &str, case: &str, settings: &Settings) -> Result<(), String> {
    let print = |row: Row| println!("{row}");
    let file = store.file();
    if let StoreName::Postgres(Some(url)) = store
        && let Some(result) = nodes::run(url, case, settings, |row| println!("{row}"))
    {
        return result;
    }
    match case {
        "E5" => return sizes::reopen(store, print),
        "E5-before" => return sizes::write_overdue(store),
        "E6" => return sizes::fill(store, settings, print),
        _ => {}
    }
    let span = Duration::from_millis(settings.number("floor-ms", 500, 50) as u64);
    let floor = floor::measure(&file, span).map_err(|error| format!("{}: {error}", file.display()))?;
    let rows = match peer {
        "timer" => {
            store.remove();
            cases::run(peer, case, settings, |on_run| Ours::open(store.open()?, on_run))?
        }
        "poller-1s" => poll(&file, Duration::from_secs(1), peer, case, settings)?,
        "poller-100ms" => poll(&file, Duration::from_millis(100), peer, case, settings)?,
        _ => return Err(format!("no peer `{peer}`; there are timer, poller-1s and poller-100ms")),
    };
    let params = rows.first().map_or("-", |row| row.params.as_str()).to_owned();
    let rate = rows.first().and_then(|row| row.value.clone().ok());
    rows.into_iter().for_each(print);
    if let Some(rate) = rate.filter(|_| case == "E1") {
        print(row(peer, case, &params, rate / floor.rate, "of-the-floor"));
    }
    print(row("floor", case, &params, floor.rate, "syncs/s"));
    print(row("floor", case, &params, floor.median.as_secs_f64() * 1e6, "us-sync"));
    Ok(())
}

fn poll(file: &Path, period: Duration, peer: &str, case: &str, settings: &Settings) -> Result<Vec<Row>, String> {
    stores::remove(file);
    let open = |on_run| Poller::open(file, period, on_run).map_err(|error| error.to_string());
    let rows = cases::run(peer, case, settings, open);
    stores::remove(file);
    rows
}
