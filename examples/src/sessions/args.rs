//! The command line of `sessions`.
//!
//! Promises: a command line is understood whole or not at all, and a refusal says what was given
//! and what is allowed. Touches nothing: no file is looked at here, no timer built.

use std::ffi::OsString;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use lexopt::Arg;
use timer_metrics::ListenAddr;

/// What `--help` prints.
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
  --speed N             on the real clock, N times as fast as it happened, 1..=1000000
                        [default: 1600, about half a minute for the default log]
  --virtual             on virtual time instead: without lag, and as fast as it goes
  --metrics ADDR        serve the timer's metrics while it replays, at http://ADDR/metrics: a port (on 127.0.0.1), or an
                        IP address and a port; port 0 takes a free one, which is told on standard error
  --linger SECONDS      with --metrics: go on serving so long after the summary was printed, 1..=86400
  --report FILE         write what happened as one HTML page
  -h, --help            print this

The result is the same for every speed, wheel, tick and executor. The last line is `sessions: N`.
";

const IDLE: RangeInclusive<u64> = 1..=31_536_000;
const TICK_MICROS: RangeInclusive<u64> = 1..=60_000_000;
const SPEED: RangeInclusive<u64> = 1..=1_000_000;
const LINGER: RangeInclusive<u64> = 1..=86_400;
const OPTIONS: &str = "--idle, --wheel, --executor, --tick, --speed, --virtual, --metrics, --linger, --report, --help";

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Print [`USAGE`].
    Help,
    /// Replay a log.
    Replay(Options),
}

/// How to replay which log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The log; `None` is the one that comes with the program.
    pub file: Option<PathBuf>,
    /// Silence in seconds that ends a session.
    pub idle: u64,
    /// The timer's wheel.
    pub wheel: Wheel,
    /// Where the timeouts run.
    pub executor: Executor,
    /// The timer's tick.
    pub tick: Duration,
    /// What moves the timer's time.
    pub clock: Clock,
    /// Where to serve metrics.
    pub metrics: Option<ListenAddr>,
    /// For how long to go on with that after the end.
    pub linger: Duration,
    /// Where to write the page.
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
            clock: Clock::Real { speed: 1600 },
            metrics: None,
            linger: Duration::ZERO,
            report: None,
        }
    }
}

/// `--wheel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wheel {
    /// One ring of buckets, with rounds.
    Hashed,
    /// Levels of ever coarser buckets.
    Hierarchical,
}

/// `--executor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executor {
    /// On the timer's own thread.
    Immediate,
    /// On rayon's global pool.
    Rayon,
    /// On a pool of the `threadpool` crate, one thread per core.
    ThreadPool,
}

/// `--speed` or `--virtual`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Time is moved by the replay, and stands still otherwise.
    Virtual,
    /// The real clock, on which the log runs `speed` times as fast as it happened.
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

/// Why a command line is refused. Prints what was given and what is allowed.
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

/// Reads the arguments that follow the program's name. An option may be written `--idle 60` or
/// `--idle=60`, once; what follows a lone `--` is the file.
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
/// An unknown option, a value that is missing, wrong or given twice, a second file, `--speed`
/// together with `--virtual`, `--linger` without `--metrics`.
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
    // `parse` alone would take a leading plus sign, too.
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
