//! The processes of a run. Each runs one workload on one peer, in turn, so that a disturbance of
//! the machine affects all peers.

use crate::peer::{FLOOR, OURS, STATIC};
use std::time::Duration;

/// A workload with settings, which runs the given number of times for each peer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// A name from [`WORKLOADS`](crate::registry::WORKLOADS).
    pub(super) workload: &'static str,
    /// The words of the settings, separated by spaces.
    pub(super) settings: &'static str,
    pub(super) rounds: usize,
    /// The expected time of one process, averaged over the peers, in seconds.
    seconds: u64,
    /// The program that runs it.
    pub(super) program: &'static str,
    /// The peers that take part, or none for all but the static program.
    peers: &'static [&'static str],
}

impl Step {
    /// Returns the longest time of a process.
    pub(super) fn limit(&self) -> Duration {
        LIMIT.max(Duration::from_secs(4 * self.seconds))
    }

    /// Returns `true` if the step runs the workload on a peer that can do it.
    pub(super) fn includes(&self, peer: &str) -> bool {
        if self.peers.is_empty() { peer != STATIC } else { self.peers.contains(&peer) }
    }

    /// Returns the expected time of one process in seconds. That of a quick process is at least
    /// one.
    pub(super) fn seconds_of(&self, is_quick: bool) -> u64 {
        if is_quick { self.seconds.div_ceil(QUICK) } else { self.seconds }
    }
}

/// The longest time of a process, unless the step expects more than a quarter of it. After that it
/// is killed, and its figures are not available.
const LIMIT: Duration = Duration::from_secs(40);

/// The time of a process above which another peer than ours has only one round.
pub(super) const SLOW: Duration = Duration::from_secs(3);

/// The ratio of the times of a process and of a quick one. It is less than ten, because a quick
/// process does not shorten all times.
const QUICK: u64 = 4;

const fn step(rounds: usize, seconds: u64, workload: &'static str, settings: &'static str) -> Step {
    Step { workload, settings, rounds, seconds, program: "workload", peers: &[] }
}

const fn of(mut step: Step, peers: &'static [&'static str]) -> Step {
    step.peers = peers;
    step
}

const fn by(program: &'static str, mut step: Step) -> Step {
    step.program = program;
    step
}

/// The longest expected time of all steps, in seconds.
#[cfg(test)]
const MAX_SECONDS: u64 = 900;

/// All steps, in the order in which they run.
pub(super) const STEPS: &[Step] = &[
    step(3, 1, "schedule", ""),
    by("workload-mimalloc", of(step(5, 1, "schedule", "--threads 1"), &[OURS, STATIC, "tokio"])),
    step(3, 1, "pair", ""),
    by("workload-mimalloc", of(step(5, 1, "pair", "--threads 1"), &[OURS, STATIC])),
    step(3, 1, "reset", ""),
    by("workload-mimalloc", of(step(5, 1, "reset", "--threads 1"), &[OURS, STATIC])),
    step(3, 1, "cancel", ""),
    by("workload-mimalloc", of(step(5, 1, "cancel", ""), &[OURS, STATIC, "tokio"])),
    step(2, 2, "crowd", ""),
    step(3, 3, "lateness", "--ms 2000"),
    step(3, 3, "busy", ""),
    step(3, 4, "overload", "--ms 3000"),
    // Other timers do not slow callers down, so their backlog would fill the memory.
    of(step(1, 8, "overload", "--threads 64 --cancel 0 --ms 6000 --stall-ms 1000"), &[OURS, "timer-hashed"]),
    step(1, 3, "idle", "--ms 1000"),
    by("workload-mem", step(1, 1, "memory", "")),
    step(2, 2, "futures", "--ms 500"),
    step(1, 6, "sleepers", ""),
    step(2, 3, "queue", ""),
    step(1, 9, "ttl", "--n 60000"),
    by("workload-mem", step(1, 1, "ttl", "")),
    of(step(1, 3, "timetable", ""), &[OURS, "timer-hashed"]),
    of(step(1, 10, "instructions", ""), &[OURS, "tokio", FLOOR]),
    by("workload-held", of(step(1, 15, "held", ""), &[OURS])),
    step(3, 7, "durable-sqlite", "--ms 1500"),
    step(1, 22, "durable-postgres", "--ms 1500 --delay-ms 1000,5000"),
    step(1, 7, "durable-neighbor", "--ms 1500"),
];

/// The steps of a run with `--growth`.
pub(super) const GROWTH: &[Step] = &[
    of(step(1, 45, "growth", ""), &[OURS, "tokio", "btree", FLOOR]),
    of(step(1, 300, "growth-sqlite", ""), &[OURS]),
    of(step(1, 650, "growth-postgres", ""), &[OURS]),
];

#[cfg(test)]
mod tests {
    use super::{GROWTH, MAX_SECONDS, STEPS, Step};
    use crate::registry::{PEERS, WORKLOADS};
    use crate::settings::Settings;

    #[test]
    fn steps_have_known_workloads_and_settings() {
        for step in STEPS.iter().chain(GROWTH) {
            assert!(WORKLOADS.iter().any(|(name, _)| *name == step.workload), "{}", step.workload);
            assert!(Settings::parse(step.settings.split_whitespace()).is_ok(), "{}", step.settings);
        }
    }

    #[test]
    fn a_run_takes_a_quarter_of_an_hour() {
        let peers = |step: &Step| {
            PEERS.iter().filter(|peer| step.includes(peer.name) && peer.does(step.workload)).count() as u64
        };
        let seconds: u64 = STEPS.iter().map(|step| step.seconds * step.rounds as u64 * peers(step)).sum();
        assert!(seconds <= MAX_SECONDS, "{seconds}");
    }
}
