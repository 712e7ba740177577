//! A replay as one HTML page for the eye.
//!
//! Promises: one text that needs nothing else, no network, no script, no font; readable in light and dark, on a desk and on a
//! phone; it depends on nothing but what is given. What comes from outside is escaped.
//!
//! | module | is |
//! |---|---|
//! | `markup` | escaping, numbers |
//! | `scale` | from values to places, and where ticks stand |
//! | `frame`, `marks` | axes, and what stands between them |
//! | `over_time`, `lengths`, `lag` | the charts |
//! | `tables` | the headline and the tables |

mod frame;
mod lag;
mod lengths;
mod marks;
mod markup;
mod over_time;
mod scale;
mod tables;

use super::args::Options;
use super::log::Log;
use super::replay::Outcome;
use super::units::{grouped, span};
use frame::{NARROW, WIDE};
use markup::escape;

const STYLE: &str = include_str!("style.css");

/// What a page is about.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// What the log is called.
    pub name: &'a str,
    /// The log.
    pub log: &'a Log,
    /// How it was replayed.
    pub options: &'a Options,
    /// What came of it.
    pub outcome: &'a Outcome,
    /// How many timeouts were pending at some seconds of the log, in the order of time.
    pub pending: &'a [(u64, u64)],
}

/// The page.
#[must_use]
pub fn page(run: &Run<'_>) -> String {
    let (opened, step) = over_time::opened(run, WIDE);
    let opened = opened + &over_time::opened(run, NARROW).0;
    let pending = over_time::pending(run, WIDE) + &over_time::pending(run, NARROW);
    let stats = &run.outcome.stats;
    let sections = [
        figure(
            "whole",
            "Sessions opened",
            &format!("for each {}, by the time since the first request", span(step)),
            &opened,
        ),
        figure("whole", "Timeouts pending", "by the time of the log; each open session has one", &pending),
        figure(
            "",
            "Lag of timeouts",
            &format!("{} timeouts, from deadline to hand-over", grouped(stats.timeout_lag.count())),
            &lag::lag("lag of timeouts", &stats.timeout_lag),
        ),
        figure(
            "",
            "Lag of ticks",
            &format!("{} turns, how late each began", grouped(stats.tick_lag.count())),
            &lag::lag("lag of ticks", &stats.tick_lag),
        ),
        figure(
            "",
            "Length of sessions",
            "from the first to the last request",
            &lengths::lengths(&run.outcome.sessions),
        ),
        figure("", "Counts of the timer", "scheduled = pending + expired + cancelled", &tables::counts(run)),
        figure("whole", "This run", "", &tables::parameters(run)),
    ];
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>Sessions of {name}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>Sessions that time out</h1>\n<p>{}</p>\n{}</header>\n\
         <main>\n{}</main>\n</body>\n</html>\n",
        tables::lead(run),
        tables::headline(run),
        sections.concat(),
        name = escape(run.name),
    )
}

fn figure(class: &str, title: &str, note: &str, content: &str) -> String {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let note = if note.is_empty() { String::new() } else { format!("<p>{}</p>", escape(note)) };
    format!("<figure{class}>\n<figcaption><h2>{}</h2>{note}</figcaption>\n{content}</figure>\n", escape(title))
}

#[cfg(test)]
mod tests;
