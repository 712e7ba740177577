//! The progress line of a long storm, about once a second: on a terminal always the same line, else
//! one every ten seconds.
//!
//! It has a thread of its own, which also ends the program if a round never ends: a deadlock shows
//! nowhere else.

use crate::counts::{Counts, grouped};
use crate::ledger::{LOST, lock};
use std::io::{IsTerminal, Write, stderr};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What the storm that goes on is, kept for a failure; `None` outside of a long storm.
static GOES_ON: Mutex<Option<String>> = Mutex::new(None);

/// Says what begins: at once, or if it fails.
pub(crate) fn announce(what: String) {
    match &mut *lock(&GOES_ON) {
        Some(kept) => *kept = what,
        None => println!("{what}"),
    }
}

/// A round may wait for what is lost some times over; if it has not ended by then, it never does.
const HANGS: Duration = LOST.saturating_mul(4);

pub(crate) struct Progress {
    state: Arc<Mutex<State>>,
    over: Sender<()>,
    ticking: JoinHandle<()>,
}

struct State {
    begun: Instant,
    total: Duration,
    seed: u64,
    counts: Counts,
    round: usize,
    scenario: String,
    round_begun: Instant,
    on_terminal: bool,
}

impl Progress {
    pub(crate) fn begin(seed: u64, total: Duration) -> Self {
        *lock(&GOES_ON) = Some(String::new());
        let (now, on_terminal) = (Instant::now(), stderr().is_terminal());
        let (counts, scenario) = (Counts::default(), String::new());
        let state = State { begun: now, total, seed, counts, round: 0, scenario, round_begun: now, on_terminal };
        let state = Arc::new(Mutex::new(state));
        let (over, told) = channel();
        let ticking = std::thread::spawn({
            let state = state.clone();
            move || tick(&state, &told, if on_terminal { 1 } else { 10 })
        });
        Self { state, over, ticking }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        lock(&self.state).begun.elapsed()
    }

    pub(crate) fn round(&self, round: usize, scenario: String) {
        let mut state = lock(&self.state);
        (state.round, state.scenario, state.round_begun) = (round, scenario, Instant::now());
    }

    pub(crate) fn add(&self, counts: Counts) {
        lock(&self.state).counts += counts;
    }

    /// The last line stays.
    pub(crate) fn end(self) {
        drop(self.over);
        self.ticking.join().unwrap();
        let state = lock(&self.state);
        state.show();
        state.leave();
    }

    /// Says what to run to see the failure again.
    pub(crate) fn fail(self) {
        let failure = lock(&self.state).failure("failed");
        self.end();
        eprintln!("\n{failure}\n");
    }
}

fn tick(state: &Mutex<State>, over: &Receiver<()>, every: u64) {
    for second in 0.. {
        let state = lock(state);
        if state.round_begun.elapsed() > HANGS {
            state.leave();
            eprintln!("{}", state.failure("does not end"));
            std::process::exit(1);
        }
        if second % every == 0 {
            state.show();
        }
        drop(state);
        if over.recv_timeout(Duration::from_secs(1)) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

impl State {
    fn show(&self) {
        let line = self.line();
        // Written past what captures the output of tests. A terminal cuts the line instead of
        // wrapping it.
        let _ = if self.on_terminal {
            write!(stderr(), "\r\x1b[?7l{line}\x1b[K\x1b[?7h")
        } else {
            writeln!(stderr(), "{line}")
        };
    }

    /// Whatever comes next begins a line.
    fn leave(&self) {
        if self.on_terminal {
            let _ = writeln!(stderr());
        }
    }

    fn line(&self) -> String {
        let Self { total, seed, counts, round, scenario, .. } = self;
        let elapsed = self.begun.elapsed();
        let rate = |count: u64| grouped((count as f64 / elapsed.as_secs_f64().max(0.001)) as u64);
        let Counts { accepted, expired, cancelled, handed_back, with_timer, resets, panics, .. } = *counts;
        let stopped = handed_back + with_timer;
        format!(
            "{} of {} seed {seed:#x} round {round}: {} timeouts ({}/s), {} expired, {} cancelled, {} reset, {} by stop, \
             {} panics; {scenario}",
            clock(elapsed),
            clock(*total),
            grouped(accepted),
            rate(accepted),
            grouped(expired),
            grouped(cancelled),
            grouped(resets),
            grouped(stopped),
            grouped(panics),
        )
    }

    fn failure(&self, how: &str) -> String {
        let Self { seed, round, scenario, .. } = self;
        let what = lock(&GOES_ON).clone().unwrap_or_default();
        format!(
            "round {round} {how} ({scenario}): {what}\n\
             to see it again (threads meet differently each time, so the round is repeated for a minute or --minutes N):\n    \
             cargo xtask stress --seed {seed:#x} --round {round}"
        )
    }
}

fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}
