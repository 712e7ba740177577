//! The text and the tables of the page.
//!
//! Every figure that occurs in more than one place is written by [`named`], so that a test finds
//! all of its places.

use std::time::SystemTime;

use maud::{Markup, html};

use super::run::Run;
use crate::sessions::args::Clock;
use crate::sessions::report::most_open;
use crate::sessions::units::{fine, grouped, size, span, whole};

/// Returns a figure with a name, because it occurs elsewhere as well.
pub(super) fn named(name: &str, value: &str) -> Markup {
    html! { span data-figure=(name) { (value) } }
}

/// Returns the share of `part` in `all`, such as `12.3 %`.
pub(super) fn percent(part: u64, all: u64) -> String {
    let share = part as f64 * 100.0 / all.max(1) as f64;
    if part > 0 && share < 0.1 { "< 0.1 %".to_owned() } else { format!("{share:.1} %") }
}

/// Returns a sentence about the run.
pub(super) fn lead(run: &Run<'_>) -> Markup {
    html! {
        (named("span", &span(run.log.span()))) " of web requests, replayed "
        @match run.options.clock {
            Clock::Virtual => "on virtual time",
            Clock::Real { speed } => { (named("speed", &grouped(u64::from(speed)))) " times as fast as they were recorded" },
        }
        ". Each request extends its host’s idle timeout or opens a session. A timeout that runs, after "
        (named("idle", &span(run.options.idle))) " of silence, closes it."
    }
}

/// Returns the main figures. The number of moves and the lag depend on the speed of the replay.
pub(super) fn headline(run: &Run<'_>) -> Markup {
    let outcome = run.outcome;
    let log = run.log;
    let lag = &outcome.stats.start_lag;
    let mut figures = vec![
        ("sessions", named("sessions", &grouped(outcome.sessions.len() as u64))),
        ("requests", named("requests", &grouped(log.requests.len() as u64))),
        ("hosts", named("hosts", &grouped(log.hosts.len() as u64))),
        ("sessions open at once, at most", named("open", &grouped(most_open(&outcome.sessions, run.options.idle)))),
        ("timeouts moved by a request", named("moved", &grouped(outcome.counts.moved))),
    ];
    // Virtual time advances from deadline to deadline, so it has no lag worth showing.
    if run.options.clock != Clock::Virtual {
        figures.push(("99 % of timeouts ran within", named("p99", &fine(lag.quantile(0.99)))));
    }
    html! {
        dl.headline {
            @for (name, value) in figures { div { dt { (name) } dd { (value) } } }
        }
    }
}

/// Returns the timer's counts.
pub(super) fn counts(run: &Run<'_>) -> Markup {
    let stats = &run.outcome.stats;
    let counts = &run.outcome.counts;
    let longest = if stats.longest_batch.is_zero() { "none".to_owned() } else { fine(stats.longest_batch) };
    let rows = [
        ("scheduled", "accepted by the timer", named("scheduled", &grouped(stats.scheduled))),
        ("for sessions", "the first timeout of each", named("sessions", &grouped(counts.opened))),
        ("once more", "ran before the replay came to its second", named("again", &grouped(counts.rearmed))),
        ("moved", "moved by a request", named("moved", &grouped(counts.moved))),
        ("pending", "not ended yet", named("pending", &grouped(stats.pending))),
        ("expired", "ended by running", named("expired", &grouped(stats.expired))),
        ("cancelled", "ended by cancelling", named("cancelled", &grouped(stats.cancelled))),
        ("rejected", "refused by the timer", html! { (grouped(stats.rejected)) }),
        ("panics", "of tasks, caught", html! { (grouped(stats.task_panics)) }),
        (
            "rejections",
            "by the executor; ran on the worker, or returned by the stop",
            html! { (grouped(stats.executor_rejections)) },
        ),
        ("turns", "looks for due timeouts", named("turns", &grouped(stats.turns))),
        ("cascaded", "entries moved to a finer level", html! { (grouped(stats.cascaded)) }),
        ("longest batch", "of tasks on the worker", html! { (longest) }),
    ];
    html! {
        table {
            @for (name, what, value) in rows {
                tr { th scope="row" { (name) } td.note { (what) } td { (value) } }
            }
        }
    }
}

/// Returns the settings of the run.
pub(super) fn parameters(run: &Run<'_>) -> Markup {
    let options = run.options;
    let outcome = run.outcome;
    let mut rows = vec![
        ("log", html! { (shown(run.name)) }),
        ("sent to the hosts", html! { (size(run.log.bytes)) }),
        ("idle timeout", named("idle", &span(options.idle))),
    ];
    match options.clock {
        Clock::Virtual => rows.push(("clock", html! { "virtual" })),
        Clock::Real { speed } => {
            rows.push(("clock", html! { "real, " (named("speed", &grouped(u64::from(speed)))) " times as fast" }))
        }
    }
    rows.extend([
        ("tick", named("tick", &whole(options.tick))),
        ("wheel", html! { (options.wheel) }),
        ("executor", html! { (options.executor) }),
        ("took", html! { (fine(outcome.took)) }),
    ]);
    if let Some(behind) = &outcome.behind {
        rows.push((
            "seconds replayed too late",
            html! { (grouped(behind.late)) " of " (grouped(behind.seconds)) ", the worst by " (fine(behind.worst)) },
        ));
    }
    html! {
        dl.parameters {
            @for (name, value) in rows { div { dt { (name) } dd { (value) } } }
        }
    }
}

/// Returns the date, the program and the origin of the log.
pub(super) fn footer(run: &Run<'_>) -> Markup {
    html! {
        footer {
            "Made on " time { (date(run.made)) } " by " code { "sessions" } " " (env!("CARGO_PKG_VERSION"))
            ", an example of the crate " code { "timer-core" } "."
            @if let Some(source) = run.source { " The log: " a href=(source) { "where it comes from" } "." }
        }
    }
}

/// Formats a time in UTC to the minute.
fn date(time: SystemTime) -> String {
    let text = humantime::format_rfc3339_seconds(time).to_string();
    match (text.get(..10), text.get(11..16)) {
        (Some(day), Some(minute)) => format!("{day} {minute} UTC"),
        _ => text,
    }
}

/// Replaces control characters, which HTML cannot express.
pub(super) fn shown(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonzero_share_is_never_shown_as_zero() {
        assert_eq!(
            [(0, 9), (1, 8), (1, 100_000), (0, 0)].map(|(part, all)| percent(part, all))[..],
            ["0.0 %", "12.5 %", "< 0.1 %", "0.0 %"]
        );
    }

    #[test]
    fn a_date_has_minutes_in_utc() {
        let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(807_235_201);
        assert_eq!(date(time), "1995-08-01 00:00 UTC");
    }
}
