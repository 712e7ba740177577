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
mod units;
pub mod watch;

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;
use std::{fmt, fs, thread};

use args::Command;
use log::Log;
use observer::Observer;
use page::Run;
use replay::ReplayError;

pub use clock::Behind;

const DATA: &str = "data/nasa-http-1995-08-01.csv";

/// The origin of the data.
const SOURCE: &str = "https://ita.ee.lbl.gov/html/contrib/NASA-HTTP.html";

/// The exit code for mistakes that the user can correct, in the command line or the log.
const USAGE_ERROR: u8 = 2;
/// The exit code for a fault of the timer, or for an error of standard output.
const FAILURE: u8 = 1;

/// Runs the program with the arguments after its name. Prints the summary on standard output.
/// Prints progress (on a terminal), addresses and errors on standard error. The exit code is 0, 2
/// for a mistake in the command line or the log, and 1 for a failure.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { code, reason }) => {
            // If standard error is closed as well, the reason is lost.
            let _ = writeln!(io::stderr(), "sessions: {reason}");
            ExitCode::from(code)
        }
    }
}

struct Failure {
    code: u8,
    reason: String,
}

impl Failure {
    fn usage(reason: impl fmt::Display) -> Self {
        Self { code: USAGE_ERROR, reason: reason.to_string() }
    }

    fn of(reason: impl fmt::Display) -> Self {
        Self { code: FAILURE, reason: reason.to_string() }
    }
}

fn run(args: impl IntoIterator<Item = OsString>) -> Result<(), Failure> {
    let options = match args::parse(args) {
        Ok(Command::Help) => return print(args::USAGE),
        Ok(Command::Replay(options)) => options,
        Err(error) => {
            let usage = args::USAGE.lines().find(|line| line.starts_with("Usage: ")).unwrap_or_default();
            return Err(Failure::usage(format!("{error}\n{usage}\nTry 'sessions --help'.")));
        }
    };
    let file = options.file.clone().unwrap_or_else(default_file);
    let text = File::open(&file).map_err(|error| {
        Failure::usage(format!(
            "{}: {error}; allowed: a readable CSV file with the header {}",
            file.display(),
            log::HEADER
        ))
    })?;
    let log =
        Log::read(BufReader::new(text)).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
    if let Some(page) = &options.report {
        // Before the replay, which takes 20 s.
        OpenOptions::new().create(true).append(true).open(page).map_err(|error| {
            Failure::usage(format!("--report: {}: {error}; allowed: a file that can be written", page.display()))
        })?;
    }
    let mut observer = Observer::new(&log, &options).map_err(|error| {
        Failure::usage(format!("--metrics: {error}; allowed: an address that is free, and port 0 takes a free one"))
    })?;
    print(&report::opening(&log, &options))?;
    let outcome = replay::replay(&log, &options, replay::timer(&options), &mut observer);
    observer.bar.finish_and_clear();
    let outcome = outcome.map_err(|error| match error {
        ReplayError::Build(_) => Failure::usage(error),
        error => Failure::of(error),
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
        let html = page::page(&run).map_err(Failure::of)?;
        fs::write(page, html).map_err(|error| Failure::of(format!("{}: {error}", page.display())))?;
    }
    print(&report::summary(&name, &log, &options, &outcome))?;
    if let Some(page) = &options.report {
        say(format_args!("report: {}", page.display()));
    }
    if !options.linger.is_zero() {
        say(format_args!("metrics: served for another {} s", options.linger.as_secs()));
        thread::sleep(options.linger);
    }
    Ok(())
}

fn print(text: &str) -> Result<(), Failure> {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        // A reader such as `head` may close its end early, which is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::of(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a line on standard error.
fn say(line: impl fmt::Display) {
    // If standard error is closed, the line is lost.
    let _ = writeln!(io::stderr(), "{line}");
}

/// Returns the path of the log beside the program's sources. If there is none, returns
/// `examples/data` below the current folder.
fn default_file() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join(DATA);
    if beside.exists() { beside } else { Path::new("examples").join(DATA) }
}
