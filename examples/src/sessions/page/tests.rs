use std::time::{Duration, SystemTime};

use super::super::args::{Clock, Options};
use super::super::ledger::Session;
use super::super::log::{Log, Request};
use super::super::replay::{Counts, Outcome};
use super::*;
use timer_core::TimerStats;

fn of(name: &str) -> String {
    let requests = [0, 30, 3_600].map(|second| Request { second, host: 0 }).to_vec();
    let log = Log { requests, hosts: vec!["a".to_owned()], bytes: 2_500_000 };
    let options = Options { idle: 60, clock: Clock::Real { speed: 1_600 }, ..Options::default() };
    let mut stats = TimerStats::default();
    stats.scheduled = 1_234_567;
    stats.expired = 1_234_567;
    let session = |first, last| Session { first, host: 0, last, requests: 1 };
    let outcome = Outcome {
        sessions: vec![session(0, 30), session(3_600, 3_600)],
        counts: Counts { opened: 2, moved: 1, rearmed: 0, ran: 2 },
        stats,
        behind: None,
        took: Duration::from_millis(1),
    };
    let pending = [(0, 0), (30, 1), (3_660, 0)];
    let made = SystemTime::UNIX_EPOCH;
    let source = Some("https://a.org/");
    page(&Run { name, source, log: &log, options: &options, outcome: &outcome, pending: &pending, made }).unwrap()
}

/// Checks that every element is closed by its own end and that no text has a stray bracket.
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
        } else if !tag.ends_with('/') && !tag.starts_with("meta ") {
            open.push(tag.split(' ').next().unwrap_or(tag));
        }
        if tag.matches('"').count() % 2 == 1 {
            return Err(format!("a quote is open: {tag}"));
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("open: {open:?}")) }
}

#[test]
fn the_page_is_well_formed_and_self_contained() {
    let html = of("a.csv");
    assert_eq!(well_formed(&html), Ok(()));
    for outside in ["http:", "src=", "url(", "@import", "<script", "<link", "NaN", "inf"] {
        assert!(!html.contains(outside), "{outside}");
    }
    // Readers may follow one address.
    assert_eq!((html.matches("href=").count(), html.matches("https:").count()), (1, 1));
}

#[test]
fn the_page_has_the_figures() {
    let html = of("a.csv");
    for part in [
        "<dt>sessions</dt><dd><span data-figure=\"sessions\">2</span></dd>",
        "<span data-figure=\"expired\">1,234,567</span></td>",
        "1,600</span> times as fast",
        "<title>0 s to 2 min: 1 opened</title>",
        "<title>30 s: 1 pending</title>",
        "time of the log\n",
        "sessions opened\n",
        "timeouts pending\n",
        "lag, logarithmic\n",
        "turns\n</text>",
        "prefers-color-scheme: dark",
        "Made on <time>1970-01-01 00:00 UTC</time>",
        "<code>sessions</code> 0.1.0",
        "tick 1 ms",
    ] {
        assert!(html.contains(part), "{part} in\n{html}");
    }
}

#[test]
fn a_file_name_cannot_become_markup() {
    let html = of("<script>alert('\"')</script>&.csv");
    assert_eq!(well_formed(&html), Ok(()));
    assert!(!html.contains("<script") && html.contains("&lt;script&gt;"));
}
