//! The program `sessions` as a scraper sees it, with the address on standard error and `/metrics`
//! over a real socket, during the run and at its end.
#![allow(clippy::unwrap_used, reason = "a test panics on an unexpected error")]

mod exposition;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use exposition::Exposition;

/// The names of the gauge, the counters and the histograms.
const PENDING: &str = "timer_pending_timeouts";
const COUNTERS: [&str; 7] = [
    "timer_timeouts_scheduled_total",
    "timer_timeouts_expired_total",
    "timer_timeouts_cancelled_total",
    "timer_timeouts_rejected_total",
    "timer_task_panics_total",
    "timer_executor_rejections_total",
    "timer_turns_total",
];
const HISTOGRAMS: [&str; 2] = ["timer_tick_lag_seconds", "timer_timeout_lag_seconds"];

/// A running `sessions` process that ends when this is dropped.
struct Sessions {
    child: Child,
    stdout: BufReader<ChildStdout>,
    addr: String,
}

impl Sessions {
    fn start(args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sessions"));
        command.args(["--metrics", "127.0.0.1:0"]).args(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let stderr = child.stderr.take().unwrap();
        let mut sessions = Self { child, stdout: BufReader::new(stdout), addr: String::new() };
        let mut stderr = BufReader::new(stderr);
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let addr = line.strip_prefix("metrics: http://").and_then(|rest| rest.strip_suffix("/metrics\n"));
        sessions.addr = addr.unwrap_or_else(|| panic!("{line:?} tells no address")).to_owned();
        assert!(!sessions.addr.ends_with(":0"), "the real port is told");
        sessions.child.stderr = Some(stderr.into_inner());
        sessions
    }

    fn scrape(&self) -> Exposition {
        let mut stream = TcpStream::connect(&self.addr).unwrap();
        let accept = "application/openmetrics-text; version=1.0.0";
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: {}\r\nAccept: {accept}\r\n\r\n", self.addr).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        let head = head.to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 200 "), "{head}");
        assert!(head.contains("\r\ncontent-type: application/openmetrics-text; version=1.0.0"), "{head}");
        assert!(head.contains(&format!("\r\ncontent-length: {}", body.len())), "{head}");
        Exposition::parse(body).unwrap_or_else(|fault| panic!("{fault}\n{body}"))
    }

    /// Waits until the summary is printed and returns its last line.
    fn last_line(&mut self) -> String {
        let mut line = String::new();
        while !line.starts_with("sessions: ") {
            line.clear();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the output ends without a number of sessions");
        }
        line
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

fn get(scrape: &Exposition, name: &str) -> f64 {
    scrape.value(name, "sessions").unwrap_or_else(|| panic!("no {name} of the timer `sessions` in {scrape:?}"))
}

fn check_names(scrape: &Exposition) {
    for name in COUNTERS.into_iter().chain([PENDING]) {
        get(scrape, name);
    }
    for name in HISTOGRAMS {
        get(scrape, &format!("{name}_count"));
        get(scrape, &format!("{name}_sum"));
    }
}

#[test]
fn all_metrics_exist_and_counters_only_grow() {
    // The replay takes 20 s, long enough for several scrapes.
    let sessions = Sessions::start(&["--idle", "60"]);
    let first = sessions.scrape();
    check_names(&first);
    let mut before = first.growing();
    loop {
        let scrape = sessions.scrape();
        check_names(&scrape);
        let now = scrape.growing();
        for (name, value) in &before {
            assert!(now.get(name).is_some_and(|now| now >= value), "{name}: {value}, then {:?}", now.get(name));
        }
        before = now;
        if get(&scrape, PENDING) > 0.0 && get(&scrape, COUNTERS[1]) > get(&first, COUNTERS[1]) {
            break;
        }
    }
}

#[test]
fn at_the_end_every_timeout_has_ended_once() {
    for clock in [&["--speed", "100000", "--executor", "rayon"][..], &["--virtual"]] {
        let mut sessions = Sessions::start(&[clock, &["--linger", "600"]].concat());
        assert_eq!(sessions.last_line(), "sessions: 2989\n");
        let scrape = sessions.scrape();
        check_names(&scrape);
        let [scheduled, expired, cancelled, rejected, panics, ..] = COUNTERS.map(|name| get(&scrape, name));
        assert_eq!(scheduled, get(&scrape, PENDING) + expired + cancelled);
        assert_eq!((get(&scrape, PENDING), rejected, panics), (0.0, 0.0, 0.0));
        assert!(expired >= 2989.0, "each session was ended by a timeout: {expired}");
        assert_eq!(get(&scrape, "timer_start_lag_seconds_count"), expired);
        // A task that is moved while it waits in the pool's queue is handed over again.
        assert!(get(&scrape, "timer_timeout_lag_seconds_count") >= expired);
    }
}

#[test]
fn a_taken_address_is_refused_before_the_replay() {
    let sessions = Sessions::start(&["--virtual", "--linger", "600"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_sessions"));
    let Output { status, stdout, stderr } = command.args(["--metrics", &sessions.addr]).output().unwrap();
    assert_eq!((status.code(), stdout.as_slice()), (Some(2), &b""[..]));
    let error = String::from_utf8(stderr).unwrap();
    assert!(error.starts_with(&format!("sessions: --metrics: cannot listen on {}: ", sessions.addr)), "{error}");
    assert!(error.contains("; allowed: an address that is free, and port 0 takes a free one\n"), "{error}");
}

#[test]
fn the_parser_accepts_exactly_the_format() {
    let good = "# HELP a Help.\n# TYPE a counter\na_total{timer=\"x\\\"\\\\\\n\",b=\"\"} 1\n# TYPE h_seconds histogram\n\
                # UNIT h_seconds seconds\nh_seconds_bucket{le=\"0.1\"} 1\nh_seconds_bucket{le=\"+Inf\"} 2\nh_seconds_sum 1.5e-3\n\
                h_seconds_count 2\n# EOF\n";
    let parsed = Exposition::parse(good).unwrap();
    assert_eq!(parsed.growing().len(), 5);
    for (from, to) in [
        ("# EOF\n", ""),
        ("# EOF\n", "# EOF"),
        ("a_total", "a"),
        ("counter", "Counter"),
        ("# HELP a Help.", "#HELP a Help."),
        ("\",b", "\" b"),
        ("b=\"\"", "b=\"\","),
        ("b=\"\"", "timer=\"\""),
        ("b=\"\"", "2=\"\""),
        ("x\\\"", "x\\t"),
        ("} 1\n# TYPE", "} -1\n# TYPE"),
        ("} 1\n# TYPE", "} NaN\n# TYPE"),
        ("} 1\n# TYPE", "}  1\n# TYPE"),
        ("h_seconds seconds", "h_seconds bytes"),
        ("le=\"0.1\"} 1", "le=\"0.1\"} 3"),
        ("le=\"+Inf\"", "le=\"0.2\""),
        ("h_seconds_count 2", "h_seconds_count 3"),
        ("h_seconds_sum 1.5e-3", "h_seconds_sum 1\nh_seconds_sum 1"),
        ("# TYPE h_seconds histogram\n", "# TYPE b gauge\nb 1\n# TYPE a counter\n# TYPE h_seconds histogram\n"),
    ] {
        assert!(good.contains(from), "{from}");
        let bad = good.replacen(from, to, 1);
        assert!(Exposition::parse(&bad).is_err(), "`{to}` for `{from}` was taken");
    }
}
