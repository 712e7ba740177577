//! The program `sessions`, which replays a web log as connections with an idle timeout.
//!
//! | module | contents |
//! |---|---|
//! | [`args`] | the command line |
//! | [`log`] | reading and checking the log |
//! | [`ledger`] | the open sessions, and the rule that makes their number exact |
//! | `clock` | the clock that moves the timer's time, real or virtual |
//! | [`replay`] | the replay of the log through the timer |
//! | [`watch`] | the trait of watchers; `observer` has progress, [`samples`] and metrics |
//! | [`plot`], [`report`] | the summary |
//! | [`page`] | the results as an HTML page |
//! | `terminal` | standard output and standard error |
//!
//! This file connects the modules with files, the terminal and the exit code. Nothing is replayed
//! unless all of the log is valid.

pub mod args;
mod clock;
pub mod ledger;
pub mod log;
mod observer;
pub mod page;
pub mod plot;
pub mod replay;
pub mod report;
pub mod samples;
mod terminal;
mod units;
pub mod watch;

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;
use std::{fmt, fs, thread};

use args::Options;
use log::Log;
use observer::Observer;
use page::Run;
use replay::ReplayError;
use terminal::{print, say};

use crate::cli::{self, Checks, Refused};

pub use clock::Behind;

const DATA: &str = "data/nasa-http-1995-08-01.csv";

/// The origin of the data.
const SOURCE: &str = "https://ita.ee.lbl.gov/html/contrib/NASA-HTTP.html";

/// Runs the program. Prints the summary on standard output, and progress (on a terminal), addresses
/// and errors on standard error.
pub fn main() -> ExitCode {
    cli::main("sessions", args::USAGE, args::parse, run)
}

fn refused(reason: impl fmt::Display) -> Box<dyn Error> {
    Box::new(Refused(reason.to_string()))
}

fn run(options: Options) -> Result<Checks, Box<dyn Error>> {
    let file = options.file.clone().unwrap_or_else(default_file);
    let text = File::open(&file).map_err(|error| {
        refused(format!("{}: {error}; allowed: a readable CSV file with the header {}", file.display(), log::HEADER))
    })?;
    let log = Log::read(BufReader::new(text)).map_err(|error| refused(format!("{}: {error}", file.display())))?;
    if let Some(page) = &options.report {
        // Before the replay, which takes 20 s.
        OpenOptions::new().create(true).append(true).open(page).map_err(|error| {
            refused(format!("--report: {}: {error}; allowed: a file that can be written", page.display()))
        })?;
    }
    let mut observer = Observer::new(&log, &options).map_err(|error| {
        refused(format!("--metrics: {error}; allowed: an address that is free, and port 0 takes a free one"))
    })?;
    print(&report::opening(&log, &options))?;
    let outcome = replay::replay(&log, &options, replay::timer(&options), &mut observer);
    observer.bar.finish_and_clear();
    let outcome = outcome.map_err(|error| match error {
        ReplayError::Build(_) => refused(error),
        error => error.into(),
    })?;
    observer.samples.end(log.span() + options.idle, outcome.stats.pending);
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
    if let Some(page) = &options.report {
        let run = Run {
            name: &name,
            source: options.file.is_none().then_some(SOURCE),
            log: &log,
            options: &options,
            outcome: &outcome,
            pending: observer.samples.points(),
            made: SystemTime::now(),
        };
        let html = page::page(&run)?;
        fs::write(page, html).map_err(|error| format!("{}: {error}", page.display()))?;
    }
    print(&report::summary(&name, &log, &options, &outcome))?;
    if let Some(page) = &options.report {
        say(format_args!("report: {}", page.display()));
    }
    if !options.linger.is_zero() {
        say(format_args!("metrics: served for another {} s", options.linger.as_secs()));
        thread::sleep(options.linger);
    }
    Ok(Checks::default())
}

/// Returns the path of the log beside the program's sources. If there is none, returns
/// `examples/data` below the current folder.
fn default_file() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join(DATA);
    if beside.exists() { beside } else { Path::new("examples").join(DATA) }
}
