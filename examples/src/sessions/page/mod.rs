//! The HTML page of a replay.
//!
//! The page is one document without network access, scripts or fonts. It is readable in light and
//! dark mode and on small screens. It depends only on its arguments and escapes all foreign text. A
//! figure that occurs twice is the same in both places.
//!
//! | module | contents |
//! |---|---|
//! | [`Run`] | the contents of a page |
//! | `chart` | a chart, with axes, bars or a line, and marks |
//! | `scale` | the positions of ticks |
//! | `over_time`, `lengths`, `lag` | the charts |
//! | `tables` | the headline, the tables, the footer |

mod chart;
mod lag;
mod lengths;
mod over_time;
mod run;
mod scale;
mod tables;

use std::fmt;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::args::Clock;
use super::units::{grouped, span};
use tables::{named, shown};

pub use run::Run;

const STYLE: &str = include_str!("style.css");

/// The error for a chart that cannot be drawn.
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

/// Returns the page.
///
/// # Errors
///
/// Fails if a chart cannot be drawn. No such case is known.
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
    /// Makes the figure as wide as the page.
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
    // Virtual time advances from deadline to deadline, so nothing is late.
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
    let stats = &run.outcome.stats;
    let tick = run.options.tick;
    Ok([
        Figure {
            whole: false,
            title: "Lag of timeouts",
            note: html! {
                "from its deadline until its task started, for each of the "
                (named("expired", &grouped(stats.start_lag.count()))) " timeouts that ran"
            },
            content: lag::lag("timeouts", &stats.start_lag, tick)?,
        },
        Figure {
            whole: false,
            title: "Lag of ticks",
            note: html! {
                "how late each of the " (grouped(stats.tick_lag.count())) " turns that had a tick to handle began; the "
                "timer made " (named("turns", &grouped(stats.turns))) " turns in all"
            },
            content: lag::lag("turns", &stats.tick_lag, tick)?,
        },
    ])
}

#[cfg(test)]
mod tests;
