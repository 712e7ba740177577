//! The introduction and the summary of a replay as text.
//!
//! The texts depend only on the log, the options and the outcome. The last line of the summary is
//! `sessions: N`. Only the figures about lateness depend on the speed of the replay.

use std::fmt::Write as _;

use super::args::{Clock, Options};
use super::ledger::Session;
use super::log::Log;
use super::plot;
use super::replay::Outcome;
use super::units::{fine, grouped, size, span, whole};

const BAR_WIDTH: usize = 48;
const MOST_BARS: u64 = 24;
const DAY: u64 = 86_400;

/// Returns an introduction in a few sentences.
#[must_use]
pub fn opening(log: &Log, options: &Options) -> String {
    let requests = grouped(count(log.requests.len()));
    let hosts = grouped(count(log.hosts.len()));
    let how = match options.clock {
        Clock::Virtual => "on virtual time".to_owned(),
        Clock::Real { speed } => {
            let seconds = (log.span() + options.idle) / u64::from(speed.max(1)) + 1;
            format!("{} times as fast as they were recorded (about {})", grouped(u64::from(speed)), span(seconds))
        }
    };
    format!(
        "Replays {} of a web server, {requests} requests of {hosts} hosts, {how}.\n\
         Each request extends its host's idle timeout of {} or opens a session with a new one.\n\
         A timeout that runs closes its session.\n\n",
        span(log.span()),
        span(options.idle)
    )
}

/// Returns the summary. `name` is the name of the log in it.
#[must_use]
pub fn summary(name: &str, log: &Log, options: &Options, outcome: &Outcome) -> String {
    let mut text = String::new();
    // Writing to a `String` does not fail.
    let _ = write_summary(&mut text, name, log, options, outcome);
    text
}

fn write_summary(text: &mut String, name: &str, log: &Log, options: &Options, outcome: &Outcome) -> std::fmt::Result {
    let sessions = &outcome.sessions;
    let requests = grouped(count(log.requests.len()));
    let hosts = grouped(count(log.hosts.len()));
    writeln!(
        text,
        "log       {name}: {requests} requests of {hosts} hosts in {}, {} sent",
        span(log.span()),
        size(log.bytes)
    )?;
    let clock = match options.clock {
        Clock::Virtual => "virtual time".to_owned(),
        Clock::Real { speed } => {
            let speed = grouped(u64::from(speed));
            format!("{speed} times as fast as it was recorded, tick {}", whole(options.tick))
        }
    };
    let wheel = options.wheel;
    let executor = options.executor;
    let took = fine(outcome.took);
    writeln!(text, "replay    {clock}, {wheel} wheel, {executor} executor; took {took}")?;
    let total = grouped(count(sessions.len()));
    let open = grouped(most_open(sessions, options.idle));
    writeln!(
        text,
        "sessions  {total}, each ended by {} of silence; at most {open} open at once\n",
        span(options.idle)
    )?;

    let lengths = Spread::of(sessions.iter().map(|session| session.last - session.first));
    let sizes = Spread::of(sessions.iter().map(|session| session.requests));
    writeln!(text, "{:22}{:>12}{:>12}{:>12}{:>12}", "", "mean", "median", "p90", "max")?;
    write!(text, "{:22}{:>12}", "first to last request", span(lengths.mean.round() as u64))?;
    writeln!(text, "{:>12}{:>12}{:>12}", span(lengths.median), span(lengths.p90), span(lengths.max))?;
    write!(text, "{:22}{:>12.1}", "requests of a session", sizes.mean)?;
    writeln!(text, "{:>12}{:>12}{:>12}\n", grouped(sizes.median), grouped(sizes.p90), grouped(sizes.max))?;

    let step = plot_step(log.span());
    writeln!(text, "sessions opened, by the time since the log's first request, in steps of {}", span(step))?;
    write!(text, "{}", plot::bars(&opened(sessions, log.span(), step), BAR_WIDTH))?;
    writeln!(text)?;
    write_timer(text, outcome)?;
    writeln!(text, "\nsessions: {}", sessions.len())
}

fn write_timer(text: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let counts = &outcome.counts;
    let lag = &outcome.stats.start_lag;
    let [opened, moved, rearmed, ran] = [counts.opened, counts.moved, counts.rearmed, counts.ran].map(grouped);
    writeln!(
        text,
        "timer     {moved} times a request moved a timeout; {ran} timeouts ran, {opened} closed their session"
    )?;
    if counts.rearmed > 0 {
        writeln!(
            text,
            "          ({rearmed} ran before the late replay reached their second and were scheduled again)"
        )?;
    }
    match &outcome.behind {
        None => writeln!(text, "lag       none, because virtual time advances from deadline to deadline")?,
        Some(_) => writeln!(
            text,
            "lag       p50 {}, p99 {}, max {}, from a deadline until its task started",
            fine(lag.quantile(0.5)),
            fine(lag.quantile(0.99)),
            fine(lag.max())
        )?,
    }
    let stats = &outcome.stats;
    let [scheduled, pending, expired, cancelled, rejected, panics, turns] = [
        stats.scheduled,
        stats.pending,
        stats.expired,
        stats.cancelled,
        stats.rejected,
        stats.task_panics,
        stats.turns,
    ]
    .map(grouped);
    writeln!(
        text,
        "counts    {scheduled} scheduled = {pending} pending + {expired} expired + {cancelled} cancelled; {rejected} rejected, \
         {panics} panics, {turns} turns"
    )?;
    match &outcome.behind {
        None => Ok(()),
        Some(behind) => {
            let late = grouped(behind.late);
            let seconds = grouped(behind.seconds);
            writeln!(
                text,
                "late      {late} of {seconds} seconds with requests were replayed after the next one was due, at worst {} late",
                fine(behind.worst)
            )
        }
    }
}

struct Spread {
    mean: f64,
    median: u64,
    p90: u64,
    max: u64,
}

impl Spread {
    fn of(values: impl Iterator<Item = u64>) -> Self {
        let mut values: Vec<u64> = values.collect();
        values.sort_unstable();
        let sum: u128 = values.iter().map(|value| u128::from(*value)).sum();
        // The smallest value that at least this percentage of all values do not exceed.
        let rank = |percent: usize| values.get((values.len() * percent).div_ceil(100).saturating_sub(1)).copied();
        Self {
            mean: sum as f64 / values.len().max(1) as f64,
            median: rank(50).unwrap_or(0),
            p90: rank(90).unwrap_or(0),
            max: rank(100).unwrap_or(0),
        }
    }
}

/// Returns the greatest number of sessions open at once. A session is open from its first request
/// until `idle` after its last, and another one may begin in that second.
pub(super) fn most_open(sessions: &[Session], idle: u64) -> u64 {
    let mut opens: Vec<u64> = sessions.iter().map(|session| session.first).collect();
    let mut closes: Vec<u64> = sessions.iter().map(|session| session.last + idle).collect();
    opens.sort_unstable();
    closes.sort_unstable();
    let mut closed = 0;
    let mut most = 0;
    for (opened, second) in opens.iter().enumerate() {
        while closes[closed] <= *second {
            closed += 1;
        }
        most = most.max(opened + 1 - closed);
    }
    count(most)
}

/// Returns the finest step that gives at most [`MOST_BARS`] bars.
fn plot_step(span: u64) -> u64 {
    let steps = [60, 300, 600, 3600, 2 * 3600, 3 * 3600, 6 * 3600, 12 * 3600, DAY];
    match steps.iter().find(|step| span / *step < MOST_BARS) {
        Some(step) => *step,
        None => (span / MOST_BARS + 1).div_ceil(DAY) * DAY,
    }
}

fn opened(sessions: &[Session], span: u64, step: u64) -> Vec<(String, u64)> {
    let label = |second: u64| match step {
        ..3600 => format!("{} min", second / 60),
        3600..DAY => format!("{} h", second / 3600),
        _ => format!("{} d", second / DAY),
    };
    let mut rows: Vec<(String, u64)> = (0..=span / step).map(|i| (label(i * step), 0)).collect();
    for session in sessions {
        if let Some(row) = usize::try_from(session.first / step).ok().and_then(|i| rows.get_mut(i)) {
            row.1 += 1;
        }
    }
    rows
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
