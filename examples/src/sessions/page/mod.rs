//! A replay as one HTML page for the eye.
//!
//! Promises: one text that needs nothing else, no network, no script, no font; readable in light and dark, on a desk and on a
//! phone; it depends on nothing but what is given. What comes from outside is escaped. A figure that stands twice is the same
//! in both places.
//!
//! | module | is |
//! |---|---|
//! | `chart` | axes, and what stands between them |
//! | `scale` | where ticks stand |
//! | `over_time`, `lengths`, `lag` | the charts |
//! | `tables` | the headline, the tables, the footer |

mod chart;
mod lag;
mod lengths;
mod over_time;
mod scale;
mod tables;

use std::fmt;
use std::time::SystemTime;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::args::{Clock, Options};
use super::log::Log;
use super::replay::Outcome;
use super::units::{grouped, span};
use tables::{named, shown};

const STYLE: &str = include_str!("style.css");

/// What a page is about.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// What the log is called.
    pub name: &'a str,
    /// Where the log comes from: an address to follow.
    pub source: Option<&'a str>,
    /// The log.
    pub log: &'a Log,
    /// How it was replayed.
    pub options: &'a Options,
    /// What came of it.
    pub outcome: &'a Outcome,
    /// How many timeouts were pending at some seconds of the log, in the order of time.
    pub pending: &'a [(u64, u64)],
    /// When.
    pub made: SystemTime,
}

/// A chart that cannot be drawn.
#[derive(Debug)]
pub struct PageError(String);

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PageError {}

impl From<chart::Fault> for PageError {
    fn from(fault: chart::Fault) -> Self {
        Self(format!("a chart cannot be drawn: {fault}"))
    }
}

/// The page.
///
/// # Errors
///
/// A chart that cannot be drawn; none is known.
pub fn page(run: &Run<'_>) -> Result<String, PageError> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Sessions of " (shown(run.name)) }
                style { (PreEscaped(STYLE)) (PreEscaped(chart::rules())) }
            }
            body {
                header {
                    h1 { "Sessions that time out" }
                    p { (tables::lead(run)) }
                    (tables::headline(run))
                }
                main { (figures(run)?) }
                (tables::footer(run))
            }
        }
    };
    Ok(page.into_string() + "\n")
}

struct Figure {
    /// As wide as the page.
    whole: bool,
    title: &'static str,
    note: Markup,
    content: Markup,
}

fn figures(run: &Run<'_>) -> Result<Markup, PageError> {
    let mut parts = vec![
        Figure {
            whole: true,
            title: "Sessions opened",
            note: html! { "for each " (span(over_time::step(run))) ", by the time since the first request" },
            content: over_time::opened(run)?,
        },
        Figure {
            whole: true,
            title: "Timeouts pending",
            note: html! { "by the time of the log; each open session has one" },
            content: over_time::pending(run)?,
        },
    ];
    // Virtual time hops from deadline to deadline: nothing is late on it.
    if run.options.clock != Clock::Virtual {
        parts.extend(lags(run)?);
    }
    parts.extend([
        Figure {
            whole: false,
            title: "Length of sessions",
            note: html! { "from the first to the last request" },
            content: lengths::lengths(&run.outcome.sessions),
        },
        Figure {
            whole: false,
            title: "Counts of the timer",
            note: html! { "scheduled = for sessions + once more = pending + expired + cancelled" },
            content: tables::counts(run),
        },
        Figure { whole: true, title: "This run", note: html! {}, content: tables::parameters(run) },
    ]);
    Ok(html! {
        @for Figure { whole, title, note, content } in &parts {
            figure class=[whole.then_some("whole")] {
                figcaption { h2 { (title) } p { (note) } }
                (content)
            }
        }
    })
}

fn lags(run: &Run<'_>) -> Result<[Figure; 2], PageError> {
    let (stats, tick) = (&run.outcome.stats, run.options.tick);
    Ok([
        Figure {
            whole: false,
            title: "Lag of timeouts",
            note: html! {
                "from its deadline until it was handed over, for each of the "
                (named("expired", &grouped(stats.start_lag.count()))) " timeouts that ran"
            },
            content: lag::lag("lag of timeouts", &stats.start_lag, tick)?,
        },
        Figure {
            whole: false,
            title: "Lag of ticks",
            note: html! {
                "how late it began, for each of the " (grouped(stats.tick_lag.count()))
                " turns that had a tick to handle, of " (named("turns", &grouped(stats.turns)))
            },
            content: lag::lag("lag of ticks", &stats.tick_lag, tick)?,
        },
    ])
}

#[cfg(test)]
mod tests;
