//! An independent count of the log's sessions, which sorts each host's requests and counts the
//! gaps. It shares no code with the program.
#![allow(clippy::unwrap_used, reason = "a test panics on an unexpected error")]
#![allow(dead_code, reason = "not every test uses all items")]

use std::collections::BTreeMap;

pub(crate) const CSV: &str = include_str!("../../data/nasa-http-1995-08-01.csv");

/// The log, or its first quarter in an unoptimized test, which takes a second of CPU for a replay.
pub(crate) fn log() -> &'static str {
    let end = CSV.match_indices('\n').nth(12_000).unwrap().0 + 1;
    if cfg!(debug_assertions) { &CSV[..end] } else { CSV }
}

/// Returns (first request in seconds since the log's first, host, last request, number of
/// requests), sorted.
pub(crate) fn sessions(csv: &str, idle: u64) -> Vec<(u64, String, u64, u64)> {
    let mut times: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for row in csv.lines().skip(1) {
        let mut columns = row.split(',');
        let time = columns.next().unwrap().parse().unwrap();
        times.entry(columns.next().unwrap()).or_default().push(time);
    }
    let zero = *times.values().flatten().min().unwrap();
    let mut sessions = Vec::new();
    for (host, mut times) in times {
        times.sort_unstable();
        for session in times.chunk_by(|a, b| b - a < idle) {
            let first = session[0] - zero;
            let last = session[session.len() - 1] - zero;
            sessions.push((first, host.to_owned(), last, session.len() as u64));
        }
    }
    sessions.sort();
    sessions
}
