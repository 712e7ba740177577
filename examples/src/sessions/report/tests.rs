use super::super::log::Request;
use std::time::Duration;

use timer_core::TimerStats;

use super::super::replay::Counts;
use super::*;

fn session(first: u64, last: u64, requests: u64) -> Session {
    Session { first, host: 0, last, requests }
}

#[test]
fn the_summary_ends_with_the_number_of_sessions() {
    let requests = [0, 30, 3600].map(|second| Request { second, host: 0 }).to_vec();
    let log = Log { requests, hosts: vec!["a".to_owned()], bytes: 2_500_000 };
    let options = Options { idle: 60, clock: Clock::Virtual, ..Options::default() };
    let outcome = Outcome {
        sessions: vec![session(0, 30, 2), session(3600, 3600, 1)],
        counts: Counts { opened: 2, moved: 1, rearmed: 0, ran: 2 },
        stats: TimerStats::default(),
        behind: None,
        took: Duration::from_millis(1),
    };
    let text = summary("a.csv", &log, &options, &outcome);
    for part in ["a.csv: 3 requests of 1 hosts in 1 h, 2 MB", "virtual time", "60 min █"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert!(text.ends_with("\nsessions: 2\n"));
    assert!(text.lines().all(|line| line.trim_end() == line));
}

#[test]
fn quantiles_are_the_smallest_covering_values() {
    let spread = Spread::of([4, 1, 3, 2, 10].into_iter());
    assert_eq!((spread.median, spread.p90, spread.max), (3, 10, 10));
    assert!((spread.mean - 4.0).abs() < 1e-9);
    let one = Spread::of([7].into_iter());
    assert_eq!((one.median, one.p90, one.max), (7, 7, 7));
    let ten = Spread::of(1..=10);
    assert_eq!((ten.median, ten.p90), (5, 9));
}

#[test]
fn sessions_that_touch_are_not_open_at_once() {
    assert_eq!(most_open(&[session(0, 5, 2), session(15, 15, 1)], 10), 1);
    assert_eq!(most_open(&[session(0, 5, 2), session(14, 14, 1)], 10), 2);
    assert_eq!(most_open(&[], 10), 0);
}

#[test]
fn a_plot_has_a_bounded_number_of_bars() {
    assert_eq!(plot_step(46_321), 3600);
    for span in [0, 59, 1439, 1440, 10_800, 10_801, 86_399, 86_400, 604_800, u64::from(u32::MAX)] {
        let bars = opened(&[], span, plot_step(span)).len();
        assert!((1..=24).contains(&bars), "{bars} bars for {span} s");
    }
    let rows = opened(&[session(0, 0, 1), session(3599, 3599, 1), session(7200, 7200, 1)], 7200, 3600);
    assert_eq!(rows.iter().map(|row| row.1).collect::<Vec<_>>(), [2, 0, 1]);
}
