//! The program `sessions`: a web log as connections with an idle timeout.
//!
//! | module | is |
//! |---|---|
//! | [`args`] | the command line |
//! | [`log`] | the log's text, read and checked |
//! | [`ledger`] | which sessions are open, and the rule that makes their number exact |
//! | `clock` | what moves the timer's time: the real clock, or the replay |
//! | [`replay`] | the log, played through the timer |
//! | [`watch`] | who watches that: here the `observer`, with progress, [`samples`] and metrics |
//! | [`plot`], [`report`] | the summary |
//! | [`page`] | the same, and more, as an HTML page |
//!
//! Here is what ties them together and what they do not touch: files, the terminal, the exit code.
//! Nothing is replayed unless all of the log is good.

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

/// Where that comes from.
const SOURCE: &str = "https://ita.ee.lbl.gov/html/contrib/NASA-HTTP.html";

/// Exit code for what the user can put right: the command line or the log.
const USAGE_ERROR: u8 = 2;
/// Exit code for what the user cannot: a fault of the timer, or standard output that takes no more.
const FAILURE: u8 = 1;

/// The whole program, for the arguments that follow its name. Prints the summary on standard
/// output, and progress (if it is a terminal), where to look and errors on standard error. The exit
/// code is 0, 2 for a mistake in the command line or the log, or 1 for a failure.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { code, reason }) => {
            // Where standard error is gone, too, there is no place left to say it.
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
        Err(error) => return Err(Failure::usage(format!("{error}\nTry 'sessions --help'."))),
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
        // Now, not after half a minute.
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
        say(format_args!("metrics: served for {} s more", options.linger.as_secs()));
        thread::sleep(options.linger);
    }
    Ok(())
}

fn print(text: &str) -> Result<(), Failure> {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        // A reader such as `head` that has seen enough is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::of(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Where to look, on standard error.
fn say(line: impl fmt::Display) {
    // Where that is gone there is no place left to say it.
    let _ = writeln!(io::stderr(), "{line}");
}

// The log lies beside the program's sources; a program that was moved finds it from the workspace's
// folder.
fn default_file() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join(DATA);
    if beside.exists() { beside } else { Path::new("examples").join(DATA) }
}
