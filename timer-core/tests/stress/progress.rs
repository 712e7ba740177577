//! The progress line of a long storm. On a terminal the line is renewed each second. Elsewhere a
//! new line is printed every ten seconds.
//!
//! Its thread also ends the program if a round never ends, because a deadlock is not visible
//! otherwise.

use crate::counts::{Counts, grouped};
use crate::ledger::{MAX_WAIT, lock};
use std::io::{IsTerminal, Write, stderr};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The current storm of a long run, kept for a failure, or `None` outside of a long run.
static CURRENT_STORM: Mutex<Option<String>> = Mutex::new(None);

/// Prints the storm that begins, or in a long run keeps it for a failure.
pub(crate) fn announce(storm: String) {
    match &mut *lock(&CURRENT_STORM) {
        Some(kept) => *kept = storm,
        None => println!("{storm}"),
    }
}

/// The limit of a round. It may wait for lost events a few times.
const HANGS: Duration = MAX_WAIT.saturating_mul(4);

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
        *lock(&CURRENT_STORM) = Some(String::new());
        let (now, on_terminal) = (Instant::now(), stderr().is_terminal());
        let (counts, scenario) = (Counts::default(), String::new());
        let state = State { begun: now, total, seed, counts, round: 0, scenario, round_begun: now, on_terminal };
        let state = Arc::new(Mutex::new(state));
        let (over, ended) = channel();
        let ticking = std::thread::spawn({
            let state = state.clone();
            move || tick(&state, &ended, if on_terminal { 1 } else { 10 })
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

    /// Ends the thread and leaves the last line.
    pub(crate) fn end(self) {
        drop(self.over);
        self.ticking.join().unwrap();
        let state = lock(&self.state);
        state.show();
        state.leave();
    }

    /// Prints the command that repeats the failure.
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
        // Writing to stderr directly avoids the capture of the test's output. The terminal cuts the
        // line instead of wrapping it.
        let _ = if self.on_terminal {
            write!(stderr(), "\r\x1b[?7l{line}\x1b[K\x1b[?7h")
        } else {
            writeln!(stderr(), "{line}")
        };
    }

    /// Ends the progress line, so that other output begins a new one.
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

    fn failure(&self, verdict: &str) -> String {
        let Self { seed, round, scenario, .. } = self;
        let storm = lock(&CURRENT_STORM).clone().unwrap_or_default();
        format!(
            "round {round} {verdict} ({scenario}): {storm}\n\
             to repeat it (for a minute or --minutes N, because threads meet differently each time):\n    \
             cargo xtask stress --seed {seed:#x} --round {round}"
        )
    }
}

fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}
