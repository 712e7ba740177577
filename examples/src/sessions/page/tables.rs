//! What the page says in words and numbers.

use std::fmt::Write as _;
use std::time::Duration;

use super::Run;
use super::markup::escape;
use crate::sessions::args::Clock;
use crate::sessions::report::most_open;
use crate::sessions::units::{fine, grouped, size, span};

/// A sentence about the run; HTML.
pub(super) fn lead(run: &Run<'_>) -> String {
    let how = match run.options.clock {
        Clock::Virtual => "on virtual time".to_owned(),
        Clock::Real { speed } => format!("{} times as fast as it happened", grouped(u64::from(speed))),
    };
    format!(
        "{} of web requests, replayed {how}. Each request moves its host’s idle timeout, or opens a session; a timeout that \
         runs, after {} of silence, closes it.",
        span(run.log.span()),
        span(run.options.idle)
    )
}

/// The few figures to remember.
pub(super) fn headline(run: &Run<'_>) -> String {
    let (outcome, log) = (run.outcome, run.log);
    let a_second = outcome.counts.operations() as f64 / outcome.took.as_secs_f64().max(1e-9);
    let figures = [
        ("sessions", grouped(outcome.sessions.len() as u64)),
        ("requests", grouped(log.requests.len() as u64)),
        ("hosts", grouped(log.hosts.len() as u64)),
        ("open at once, at most", grouped(most_open(&outcome.sessions, run.options.idle))),
        ("99 % of timeouts run within", fine(outcome.stats.timeout_lag.quantile(0.99))),
        ("timer operations a second", grouped(a_second as u64)),
    ];
    let mut html = String::from("<dl class=\"headline\">\n");
    for (name, value) in figures {
        // Writing to a String does not fail.
        let _ = writeln!(html, "<div><dt>{name}</dt><dd>{}</dd></div>", escape(&value));
    }
    html + "</dl>\n"
}

/// What the timer counted.
pub(super) fn counts(run: &Run<'_>) -> String {
    let stats = &run.outcome.stats;
    let longest = if stats.longest_task.is_zero() { "none".to_owned() } else { fine(stats.longest_task) };
    let rows = [
        ("scheduled", "accepted by the timer", grouped(stats.scheduled)),
        ("pending", "not ended yet", grouped(stats.pending)),
        ("expired", "ended by running", grouped(stats.expired)),
        ("cancelled", "ended by cancelling", grouped(stats.cancelled)),
        ("moved", "pushed back by a request", grouped(run.outcome.counts.moved)),
        ("rejected", "refused by the timer", grouped(stats.rejected)),
        ("panics", "of tasks, caught", grouped(stats.task_panics)),
        ("rejections", "by the executor; ran on the worker", grouped(stats.executor_rejections)),
        ("turns", "looks for due timeouts", grouped(stats.turns)),
        ("cascaded", "entries moved to a finer level", grouped(stats.cascaded)),
        ("longest task", "on the worker", longest),
    ];
    let mut html = String::from("<table>\n");
    for (name, what, value) in rows {
        let _ = writeln!(html, "<tr><th scope=\"row\">{name}</th><td class=\"note\">{what}</td><td>{value}</td></tr>");
    }
    html + "</table>\n"
}

/// How it was run.
pub(super) fn parameters(run: &Run<'_>) -> String {
    let (options, outcome) = (run.options, run.outcome);
    let clock = match options.clock {
        Clock::Virtual => "virtual".to_owned(),
        Clock::Real { speed } => format!("real, {} times as fast", grouped(u64::from(speed))),
    };
    let mut rows = vec![
        ("log", run.name.to_owned()),
        ("sent", size(run.log.bytes)),
        ("idle timeout", span(options.idle)),
        ("clock", clock),
        ("tick", tick(options.tick)),
        ("wheel", options.wheel.to_string()),
        ("executor", options.executor.to_string()),
        ("took", fine(outcome.took)),
    ];
    if let Some(behind) = &outcome.behind {
        let (late, seconds) = (grouped(behind.late), grouped(behind.seconds));
        rows.push(("seconds begun late", format!("{late} of {seconds}")));
        rows.push(("the latest", fine(behind.worst)));
    }
    let mut html = String::from("<dl class=\"parameters\">\n");
    for (name, value) in rows {
        let _ = writeln!(html, "<div><dt>{name}</dt><dd>{}</dd></div>", escape(&value));
    }
    html + "</dl>\n"
}

fn tick(tick: Duration) -> String {
    let micros = u64::try_from(tick.as_micros()).unwrap_or(u64::MAX);
    match micros {
        _ if micros % 1_000_000 == 0 => format!("{} s", grouped(micros / 1_000_000)),
        _ if micros % 1_000 == 0 => format!("{} ms", grouped(micros / 1_000)),
        _ => format!("{} µs", grouped(micros)),
    }
}
