//! The program `sessions`: a web log as connections with an idle timeout.
//!
//! | module | is |
//! |---|---|
//! | [`args`] | the command line |
//! | [`log`] | the log's text, read and checked |
//! | [`ledger`] | which sessions are open, and the rule that makes their number exact |
//! | `pace` | what moves the timer's time: the real clock, or the replay |
//! | [`replay`] | the log, played through the timer |
//! | [`plot`], [`report`] | the summary |
//!
//! Here is what ties them together and what they do not touch: files, the terminal, the exit code.
//! Nothing is replayed unless all of the log is good.

pub mod args;
pub mod ledger;
pub mod log;
mod pace;
pub mod plot;
pub mod replay;
pub mod report;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fmt, fs};

use args::{Command, Options};
use indicatif::{ProgressBar, ProgressStyle};
use log::Log;
use replay::ReplayError;

pub use pace::Behind;

const DATA: &str = "data/nasa-http-1995-08-01.csv";

/// Exit code for what the user can put right: the command line or the log.
const USAGE_ERROR: u8 = 2;
/// Exit code for what the user cannot: a fault of the timer, or standard output that takes no more.
const FAILURE: u8 = 1;

/// The whole program, for the arguments that follow its name. Prints the summary on standard
/// output, and progress (if it is a terminal) and errors on standard error. The exit code is 0, 2
/// for a mistake in the command line or the log, or 1 for a failure.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let (text, failed) = match run(args) {
        Ok(text) => (text, None),
        Err(failure) => (String::new(), Some(failure)),
    };
    if let Some(Failure { code, reason }) = failed {
        // Nobody is left to tell if standard error is gone.
        let _ = writeln!(io::stderr(), "sessions: {reason}");
        return ExitCode::from(code);
    }
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        // A reader such as `head` that has seen enough is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let _ = writeln!(io::stderr(), "sessions: standard output: {error}");
            ExitCode::from(FAILURE)
        }
        _ => ExitCode::SUCCESS,
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
}

fn run(args: impl IntoIterator<Item = OsString>) -> Result<String, Failure> {
    let options = match args::parse(args) {
        Ok(Command::Help) => return Ok(args::USAGE.to_owned()),
        Ok(Command::Replay(options)) => options,
        Err(error) => return Err(Failure::usage(format!("{error}\nTry 'sessions --help'."))),
    };
    let file = options.file.clone().unwrap_or_else(default_file);
    let text = fs::read(&file).map_err(|error| {
        Failure::usage(format!(
            "{}: {error}; allowed: a readable CSV file with the header {}",
            file.display(),
            log::HEADER
        ))
    })?;
    let log = Log::parse(&text).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
    let progress = progress_bar(&log, &options);
    let outcome = replay::replay(&log, &options, replay::timer(&options), &mut |second| progress.set_position(second));
    progress.finish_and_clear();
    let outcome = outcome.map_err(|error| match error {
        ReplayError::Build(_) => Failure::usage(error),
        error => Failure { code: FAILURE, reason: error.to_string() },
    })?;
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
    Ok(report::summary(&name, &log, &options, &outcome))
}

// The log lies beside the program's sources; a program that was moved finds it from the workspace's
// folder.
fn default_file() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join(DATA);
    if beside.exists() { beside } else { Path::new("examples").join(DATA) }
}

fn progress_bar(log: &Log, options: &Options) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(log.span() + options.idle);
    let style = ProgressStyle::with_template("{wide_bar} {percent:>3} % of the log, {elapsed} gone, {eta} to go");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
