//! The course of a storm, with the worst lag and the pending timeouts in short steps.

use super::book::Book;
use super::micros;
use crate::peers::storming::Storming;
use crate::workloads::out::Out;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const STEP: Duration = Duration::from_millis(10);

/// The figures of the time from the end of the previous step to `end`.
struct Step {
    end: Duration,
    worst_lag: u64,
    pending: Option<usize>,
}

pub(super) struct Watch<'a, P> {
    peer: &'a P,
    book: &'static Book,
    begin: Instant,
    steps: Vec<Step>,
}

impl<'a, P: Storming> Watch<'a, P> {
    pub(super) fn begin(peer: &'a P, book: &'static Book) -> Self {
        Self { peer, book, begin: Instant::now(), steps: Vec::new() }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Watches until `end` after the beginning.
    pub(super) fn until(&mut self, end: Duration) {
        while let Some(left) = end.checked_sub(self.elapsed()).filter(|left| !left.is_zero()) {
            thread::sleep(left.min(STEP));
            let (worst_lag, pending) = (self.book.take_worst_lag(), self.peer.pending());
            self.steps.push(Step { end: self.elapsed(), worst_lag, pending });
        }
    }

    /// Returns the greatest number of pending timeouts from `from` on, if the timer reports it.
    pub(super) fn pending_max(&self, from: Duration) -> Option<usize> {
        self.since(from).filter_map(|step| step.pending).max()
    }

    fn since(&self, from: Duration) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(move |step| step.end > from)
    }

    /// Reports the worst lag and the pending timeouts from a second and from two seconds after
    /// `end` on, which is the end of a stall.
    pub(super) fn after(&self, end: Duration, params: &str, out: &Out) {
        for seconds in [1, 2] {
            let from = end + Duration::from_secs(seconds);
            if self.since(from).next().is_none() {
                continue;
            }
            if P::FIRES {
                let lag = self.since(from).map(|step| step.worst_lag).max().unwrap_or(0);
                out.figure(params, micros(lag), &format!("us-lag-max-after-{seconds}s"));
            }
            if let Some(pending) = self.pending_max(from) {
                out.figure(params, pending as f64, &format!("pending-max-after-{seconds}s"));
            }
        }
    }

    /// Reports the worst lag and the pending timeouts of each window of this length.
    pub(super) fn over_time(&self, window: Duration, params: &str, out: &Out) {
        let last = self.steps.last().map_or(Duration::ZERO, |step| step.end);
        let mut end = window;
        while end <= last + STEP {
            let steps = || self.since(end - window).take_while(|step| step.end <= end);
            let params = format!("{params},t={:.2}", end.as_secs_f64());
            if let Some(lag) = steps().map(|step| step.worst_lag).max().filter(|_| P::FIRES) {
                out.figure(&params, micros(lag), "us-lag-max-over-time");
            }
            if let Some(pending) = steps().filter_map(|step| step.pending).max() {
                out.figure(&params, pending as f64, "pending-max-over-time");
            }
            end += window;
        }
    }
}

/// Stops this process by SIGSTOP for a while, with the help of a child. Returns `false` if the
/// system has no such signal.
pub(super) fn freeze_this_process(freeze: Duration) -> bool {
    let script = format!("kill -STOP $0 && sleep {} ; kill -CONT $0", freeze.as_secs_f64());
    let status = Command::new("sh").args(["-c", &script, &std::process::id().to_string()]).status();
    cfg!(unix) && status.is_ok_and(|status| status.success())
}
