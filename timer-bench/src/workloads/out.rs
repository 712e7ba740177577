//! Printing of figures to standard output line by line, so that a crash loses no earlier figure.

use crate::row::Row;
use std::io::{Write, stdout};
use std::time::Duration;

/// The printer of the rows of one peer and workload.
pub(super) struct Out {
    peer: &'static str,
    workload: String,
}

impl Out {
    pub(super) fn new(peer: &'static str, workload: &str) -> Self {
        Self { peer, workload: workload.to_owned() }
    }

    /// Returns the name of the peer.
    #[cfg(feature = "peers")]
    pub(super) fn peer(&self) -> &'static str {
        self.peer
    }

    /// Prints a figure.
    pub(super) fn figure(&self, params: &str, value: f64, unit: &str) {
        self.print(params, Ok(value), unit);
    }

    /// Prints the reason why a figure is not available.
    pub(super) fn unavailable(&self, params: &str, unit: &str, why: &str) {
        self.print(params, Err(why.to_owned()), unit);
    }

    /// Prints `time` divided by `count` in nanoseconds.
    pub(super) fn each(&self, params: &str, time: Duration, count: usize, unit: &str) {
        self.figure(params, time.as_nanos() as f64 / count.max(1) as f64, unit);
    }

    /// Prints the CPU time of calls, `used`, and of the work that they left to other threads,
    /// `rest`, divided by `count` in nanoseconds. `rest` is `None` if these threads did not come to
    /// rest.
    pub(super) fn cpu_with_rest(&self, params: &str, used: Duration, rest: Option<Duration>, count: usize, unit: &str) {
        match rest {
            Some(rest) => self.each(params, used + rest, count, unit),
            None => self.unavailable(params, unit, "did not come to rest"),
        }
    }

    /// Prints how long a timer worked on queued requests.
    pub(super) fn drain(&self, params: &str, time: Option<Duration>) {
        match time {
            Some(time) => self.figure(params, millis(time), "ms-drain"),
            None => self.unavailable(params, "ms-drain", "did not come to rest"),
        }
    }

    fn print(&self, params: &str, value: Result<f64, String>, unit: &str) {
        let row = Row {
            peer: self.peer.to_owned(),
            workload: self.workload.clone(),
            params: params.to_owned(),
            value,
            unit: unit.to_owned(),
        };
        let mut out = stdout().lock();
        // An error means that the reader is gone, so the output is lost.
        let _: std::io::Result<()> = writeln!(out, "{row}").and_then(|()| out.flush());
    }
}

/// Returns a time in milliseconds.
pub(super) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
