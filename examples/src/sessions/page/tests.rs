use std::time::Duration;

use super::super::args::Clock;
use super::super::ledger::Session;
use super::super::log::Request;
use super::super::replay::Counts;
use super::*;
use timer_core::TimerStats;

fn of(name: &str) -> String {
    let requests = [0, 30, 3_600].map(|second| Request { second, host: 0 }).to_vec();
    let log = Log { requests, hosts: vec!["a".to_owned()], bytes: 2_500_000 };
    let options = Options { idle: 60, clock: Clock::Real { speed: 1_600 }, ..Options::default() };
    let mut stats = TimerStats::default();
    (stats.scheduled, stats.expired) = (1_234_567, 1_234_567);
    let session = |first, last| Session { first, host: 0, last, requests: 1 };
    let outcome = Outcome {
        sessions: vec![session(0, 30), session(3_600, 3_600)],
        counts: Counts { opened: 2, moved: 1, rearmed: 0, ran: 2 },
        stats,
        behind: None,
        took: Duration::from_millis(1),
    };
    page(&Run { name, log: &log, options: &options, outcome: &outcome, pending: &[(0, 0), (30, 1), (3_660, 0)] })
}

/// Every element is closed by its own end, and no text holds a stray bracket.
fn well_formed(html: &str) -> Result<(), String> {
    let body = html.split_once("</style>").map_or(html, |(_, rest)| rest);
    let mut open: Vec<&str> = vec!["html", "head"];
    for piece in body.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').ok_or(format!("no end of tag: {piece}"))?;
        if text.contains('>') {
            return Err(format!("stray bracket: {text}"));
        }
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Err(format!("</{name}> closes nothing"));
            }
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap_or(tag));
        }
        if tag.matches('"').count() % 2 == 1 {
            return Err(format!("a quote is open: {tag}"));
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("open: {open:?}")) }
}

#[test]
fn the_page_is_well_formed_and_needs_nothing_else() {
    let html = of("a.csv");
    assert_eq!(well_formed(&html), Ok(()));
    for outside in ["http:", "https:", "src=", "href=", "url(", "@import", "<script", "<link", "NaN", "inf"] {
        assert!(!html.contains(outside), "{outside}");
    }
}

#[test]
fn the_figures_are_there() {
    let html = of("a.csv");
    for part in [
        "<dt>sessions</dt><dd>2</dd>",
        "<td>1,234,567</td>",
        "1,600 times as fast",
        "<title>0 s to 2 min: 1 opened</title>",
        "<title>30 s: 1 pending</title>",
        "prefers-color-scheme: dark",
    ] {
        assert!(html.contains(part), "{part} in\n{html}");
    }
}

#[test]
fn the_name_of_a_file_cannot_become_markup() {
    let html = of("<script>alert('\"')</script>&.csv");
    assert_eq!(well_formed(&html), Ok(()));
    assert!(!html.contains("<script") && html.contains("&lt;script&gt;"));
}
