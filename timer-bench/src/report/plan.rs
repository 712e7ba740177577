//! The processes of a run. Each runs one workload on one peer, in turn, so that a disturbance of
//! the machine affects all peers.

use crate::peer::{FLOOR, OURS};
use std::time::Duration;

/// A workload with settings, which runs the given number of times for each peer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// A name from [`WORKLOADS`](crate::registry::WORKLOADS).
    pub(super) workload: &'static str,
    /// The words of the settings, separated by spaces.
    pub(super) settings: &'static str,
    pub(super) rounds: usize,
    /// The program that runs it.
    pub(super) program: &'static str,
    /// The peers that take part, or none for all.
    pub(super) peers: &'static [&'static str],
}

/// The longest time of a process. After that it is killed, and its figures are not available.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

const fn step(rounds: usize, workload: &'static str, settings: &'static str) -> Step {
    Step { workload, settings, rounds, program: "workload", peers: &[] }
}

const fn of(mut step: Step, peers: &'static [&'static str]) -> Step {
    step.peers = peers;
    step
}

const fn by(program: &'static str, mut step: Step) -> Step {
    step.program = program;
    step
}

/// All steps, in the order in which they run.
pub(super) const STEPS: &[Step] = &[
    step(3, "schedule", ""),
    by("workload-mimalloc", of(step(3, "schedule", "--threads 1"), &[OURS, "tokio"])),
    step(3, "pair", ""),
    step(3, "reset", ""),
    step(3, "cancel", ""),
    by("workload-mimalloc", of(step(3, "cancel", ""), &[OURS, "tokio"])),
    step(2, "crowd", ""),
    step(1, "lateness", ""),
    step(1, "busy", ""),
    step(1, "overload", ""),
    // Other timers do not slow callers down, so their backlog would fill the memory.
    of(step(1, "overload", "--threads 64 --cancel 0 --ms 6000 --stall-ms 1000"), &[OURS, "timer-hashed"]),
    step(1, "idle", ""),
    by("workload-mem", step(1, "memory", "")),
    step(2, "futures", ""),
    step(1, "sleepers", ""),
    step(2, "queue", ""),
    of(step(1, "instructions", ""), &[OURS, "timer-hashed", "tokio", "btree", FLOOR]),
    by("workload-held", of(step(2, "held", ""), &[OURS])),
    step(1, "durable-sqlite", ""),
    step(1, "durable-postgres", ""),
];

#[cfg(test)]
mod tests {
    use super::STEPS;
    use crate::registry::WORKLOADS;
    use crate::settings::Settings;

    #[test]
    fn steps_have_known_workloads_and_settings() {
        for step in STEPS {
            assert!(WORKLOADS.iter().any(|(name, _)| *name == step.workload), "{}", step.workload);
            assert!(Settings::parse(step.settings.split_whitespace()).is_ok(), "{}", step.settings);
        }
    }
}
