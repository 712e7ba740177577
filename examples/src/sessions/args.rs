//! The command line of `sessions`. This module opens no file and builds no timer.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use timer_live::ListenAddr;

use crate::cli::{Args, Refused, Stop};

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

/// Reads the arguments. An option may be written `--idle 60` or `--idle=60`, and only once. An
/// argument after a lone `--` is the file.
///
/// ```
/// use examples::cli::Args;
/// use examples::sessions::args::{Clock, USAGE, parse};
///
/// let mut args = Args::new(USAGE, ["--idle", "60", "--virtual"].map(Into::into));
/// let options = parse(&mut args).unwrap();
/// assert_eq!((options.idle, options.clock), (60, Clock::Virtual));
/// ```
///
/// # Errors
///
/// Fails for an unknown option, for a value that is missing, wrong or repeated, for a second file,
/// for `--speed` together with `--virtual`, and for `--linger` without `--metrics`.
pub fn parse(args: &mut Args) -> Result<Options, Stop> {
    let mut options = Options::default();
    let mut speed = None;
    let mut is_virtual = false;
    let path = |given: &str| (!given.is_empty()).then(|| PathBuf::from(given));
    while let Some(option) = args.option()? {
        match option {
            "FILE" => options.file = Some(args.value("the path of a log", path)?),
            "--idle" => options.idle = args.number(IDLE)?,
            "--tick" => options.tick = Duration::from_micros(args.number(TICK_MICROS)?),
            "--speed" => speed = Some(args.number(SPEED)?),
            "--virtual" => is_virtual = true,
            "--wheel" => {
                options.wheel = args.choice(&[("hashed", Wheel::Hashed), ("hierarchical", Wheel::Hierarchical)])?;
            }
            "--executor" => {
                use Executor::{Immediate, Rayon, ThreadPool};
                let all = [("immediate", Immediate), ("rayon", Rayon), ("threadpool", ThreadPool)];
                options.executor = args.choice(&all)?;
            }
            "--metrics" => {
                options.metrics = Some(args.value("a port, or an IP address and a port", |given| given.parse().ok())?);
            }
            "--linger" => options.linger = Duration::from_secs(args.number(LINGER)?),
            "--report" => options.report = Some(args.value("the path of the page", path)?),
            _ => return Err(args.unknown(option)),
        }
    }
    let refused = |reason: &str| Err(Stop::Refused(Refused(reason.to_owned())));
    match (speed, is_virtual) {
        (Some(_), true) => return refused("--speed and --virtual both given; allowed: one of them"),
        (Some(speed), false) => options.clock = Clock::Real { speed: u32::try_from(speed).unwrap_or(u32::MAX) },
        (None, true) => options.clock = Clock::Virtual,
        (None, false) => {}
    }
    if options.metrics.is_none() && !options.linger.is_zero() {
        return refused("--linger given without --metrics; allowed: both");
    }
    Ok(options)
}

#[cfg(test)]
mod tests;
