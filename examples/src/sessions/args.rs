//! The command line of `sessions`.
//!
//! Every argument of a command line must be valid. A refusal names the given and the allowed
//! values. This module opens no file and builds no timer.

use std::ffi::OsString;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use lexopt::Arg;
use timer_metrics::ListenAddr;

/// The text that `--help` prints.
pub const USAGE: &str = "\
Replays a web log through the timer: every request re-arms its host's idle timeout, or opens a session if the
host has none; a timeout that runs closes the session.

Usage: sessions [FILE] [OPTIONS]

  FILE                  CSV with the header time,host,status,bytes, in the order of time (Unix seconds)
                        [default: the log of 1 August 1995 in examples/data]

Options:
  --idle SECONDS        a host that is silent this long ends its session, 1..=31536000 [default: 1800]
  --wheel KIND          hashed | hierarchical [default: hierarchical]
  --executor KIND       where timeouts run: immediate | rayon | threadpool [default: immediate]
  --tick MICROS         tick of the timer in microseconds, 1..=60000000 [default: 1000]
  --speed N             on the real clock, N times as fast as it was recorded, 1..=1000000
                        [default: 2400, about 20 seconds for the default log]
  --virtual             replay on virtual time, as fast as possible and without lag
  --metrics ADDR        serve http://ADDR/metrics and the live page http://ADDR/ during the replay: a port (on
                        127.0.0.1), or an IP address and a port; port 0 takes a free one, which is printed
  --linger SECONDS      with --metrics: continue to serve for so long after the summary, 1..=86400
  --report FILE         write the results as one HTML page
  -h, --help            print this

The result is the same for every speed, wheel, tick and executor. The last line is `sessions: N`.
";

const IDLE: RangeInclusive<u64> = 1..=31_536_000;
const TICK_MICROS: RangeInclusive<u64> = 1..=60_000_000;
const SPEED: RangeInclusive<u64> = 1..=1_000_000;
const LINGER: RangeInclusive<u64> = 1..=86_400;
const OPTIONS: &str = "--idle, --wheel, --executor, --tick, --speed, --virtual, --metrics, --linger, --report, --help";

/// The request that the command line makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Print [`USAGE`].
    Help,
    /// Replay a log.
    Replay(Options),
}

/// The log to replay, and the settings of the replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The log, or `None` for the one that comes with the program.
    pub file: Option<PathBuf>,
    /// The seconds of silence that end a session.
    pub idle: u64,
    /// The timer's wheel.
    pub wheel: Wheel,
    /// The executor that runs the timeouts.
    pub executor: Executor,
    /// The timer's tick.
    pub tick: Duration,
    /// The clock that moves the timer's time.
    pub clock: Clock,
    /// The address of the metrics server.
    pub metrics: Option<ListenAddr>,
    /// The time for which the server continues after the summary.
    pub linger: Duration,
    /// The path of the page.
    pub report: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            file: None,
            idle: 1800,
            wheel: Wheel::Hierarchical,
            executor: Executor::Immediate,
            tick: Duration::from_millis(1),
            clock: Clock::Real { speed: 2400 },
            metrics: None,
            linger: Duration::ZERO,
            report: None,
        }
    }
}

/// The value of `--wheel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wheel {
    /// One ring of buckets that is passed in rounds.
    Hashed,
    /// Levels of increasingly coarse buckets.
    Hierarchical,
}

/// The value of `--executor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executor {
    /// Runs tasks on the timer's own thread.
    Immediate,
    /// Runs tasks on rayon's global pool.
    Rayon,
    /// Runs tasks on a pool of the `threadpool` crate with one thread per core.
    ThreadPool,
}

/// The choice between `--speed` and `--virtual`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Virtual time, which only the replay moves.
    Virtual,
    /// The real clock, on which the log runs `speed` times as fast as it was recorded.
    Real {
        /// Seconds of the log per second, 1..=1,000,000.
        speed: u32,
    },
}

impl fmt::Display for Wheel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hashed => "hashed",
            Self::Hierarchical => "hierarchical",
        })
    }
}

impl fmt::Display for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Immediate => "immediate",
            Self::Rayon => "rayon",
            Self::ThreadPool => "threadpool",
        })
    }
}

/// The reason why a command line is refused. It prints the given and the allowed values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgsError(String);

impl fmt::Display for ArgsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ArgsError {}

impl From<lexopt::Error> for ArgsError {
    fn from(error: lexopt::Error) -> Self {
        Self(match error {
            lexopt::Error::UnexpectedValue { option, value } => {
                format!("{option} takes no value, but '{}' was given", value.display())
            }
            error => error.to_string(),
        })
    }
}

/// Reads the arguments after the program's name. An option may be written `--idle 60` or
/// `--idle=60`, and only once. An argument after a lone `--` is the file.
///
/// ```
/// use examples::sessions::args::{Clock, Command, parse};
///
/// let Ok(Command::Replay(options)) = parse(["--idle", "60", "--virtual"]) else { unreachable!() };
/// assert_eq!((options.idle, options.clock), (60, Clock::Virtual));
/// assert_eq!(
///     parse(["--idle", "0"]).unwrap_err().to_string(),
///     "--idle: '0' given; allowed: a whole number in 1..=31536000",
/// );
/// ```
///
/// # Errors
///
/// Fails for an unknown option, for a value that is missing, wrong or repeated, for a second file,
/// for `--speed` together with `--virtual`, and for `--linger` without `--metrics`.
pub fn parse<A: Into<OsString>>(args: impl IntoIterator<Item = A>) -> Result<Command, ArgsError> {
    let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    let mut parser = lexopt::Parser::from_args(args);
    let mut options = Options::default();
    let mut seen: Vec<String> = Vec::new();
    while let Some(arg) = parser.next()? {
        let name = match arg {
            Arg::Short('h') | Arg::Long("help") => return Ok(Command::Help),
            Arg::Short(letter) => format!("-{letter}"),
            Arg::Long(name) => format!("--{name}"),
            Arg::Value(file) => {
                set_file(&mut options, file)?;
                continue;
            }
        };
        if seen.contains(&name) {
            return Err(ArgsError(format!("{name} given twice; allowed: once")));
        }
        set_option(&mut options, &name, &mut parser)?;
        seen.push(name);
    }
    if seen.iter().any(|name| name == "--virtual") && seen.iter().any(|name| name == "--speed") {
        return Err(ArgsError("--speed and --virtual both given; allowed: one of them".to_owned()));
    }
    if options.metrics.is_none() && !options.linger.is_zero() {
        return Err(ArgsError("--linger given without --metrics; allowed: both".to_owned()));
    }
    Ok(Command::Replay(options))
}

fn set_option(options: &mut Options, name: &str, parser: &mut lexopt::Parser) -> Result<(), ArgsError> {
    let path = |parser: &mut lexopt::Parser| parser.value().ok().filter(|value| !value.is_empty());
    let mut value = || parser.value().ok().map(|value| value.to_string_lossy().into_owned());
    match name {
        "--idle" => options.idle = number(name, value(), IDLE)?,
        "--tick" => options.tick = Duration::from_micros(number(name, value(), TICK_MICROS)?),
        "--speed" => {
            let speed = number(name, value(), SPEED)?;
            options.clock = Clock::Real { speed: u32::try_from(speed).unwrap_or(u32::MAX) };
        }
        "--virtual" => options.clock = Clock::Virtual,
        "--wheel" => options.wheel = choice(name, value(), &[Wheel::Hashed, Wheel::Hierarchical])?,
        "--executor" => {
            let all = [Executor::Immediate, Executor::Rayon, Executor::ThreadPool];
            options.executor = choice(name, value(), &all)?;
        }
        "--metrics" => {
            let given = value().ok_or_else(|| refused(name, None, "a port, or an IP address and a port"))?;
            options.metrics = Some(given.parse().map_err(|error| ArgsError(format!("{name}: {error}")))?);
        }
        "--linger" => options.linger = Duration::from_secs(number(name, value(), LINGER)?),
        "--report" => match path(parser) {
            Some(path) => options.report = Some(path.into()),
            None => return Err(refused(name, None, "the path of the page")),
        },
        _ => return Err(ArgsError(format!("unknown option '{name}'; allowed: {OPTIONS}"))),
    }
    Ok(())
}

fn set_file(options: &mut Options, file: OsString) -> Result<(), ArgsError> {
    if file.is_empty() {
        return Err(ArgsError("FILE: '' given; allowed: the path of a log".to_owned()));
    }
    if let Some(first) = &options.file {
        let (first, second) = (first.display(), PathBuf::from(file));
        return Err(ArgsError(format!("FILE: '{first}' and '{}' given; allowed: one", second.display())));
    }
    options.file = Some(PathBuf::from(file));
    Ok(())
}

fn number(name: &str, given: Option<String>, allowed: RangeInclusive<u64>) -> Result<u64, ArgsError> {
    // `parse` also accepts a leading plus sign.
    let value = given.as_deref().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
    match value.and_then(|text| text.parse().ok()) {
        Some(value) if allowed.contains(&value) => Ok(value),
        _ => {
            let allowed = format!("a whole number in {}..={}", allowed.start(), allowed.end());
            Err(refused(name, given, &allowed))
        }
    }
}

fn choice<T: Copy + fmt::Display>(name: &str, given: Option<String>, all: &[T]) -> Result<T, ArgsError> {
    match all.iter().find(|kind| given.as_deref() == Some(kind.to_string().as_str())) {
        Some(kind) => Ok(*kind),
        None => {
            let names: Vec<String> = all.iter().map(ToString::to_string).collect();
            Err(refused(name, given, &names.join(", ")))
        }
    }
}

fn refused(name: &str, given: Option<String>, allowed: &str) -> ArgsError {
    ArgsError(match given {
        Some(given) => format!("{name}: '{given}' given; allowed: {allowed}"),
        None => format!("{name} needs a value; allowed: {allowed}"),
    })
}

#[cfg(test)]
mod tests;
