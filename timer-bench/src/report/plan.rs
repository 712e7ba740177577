//! Which processes a run takes. Each does one case of one workload, so that none finds the memory or the threads of another.

use super::options::Options;

/// One case of a workload, to be run so many times for each peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// `W1` to `W12`.
    pub workload: &'static str,
    /// What [`Settings`](crate::settings::Settings) are given, split at blanks.
    pub settings: &'static str,
    /// How often.
    pub rounds: usize,
    /// In the process that counts allocations.
    pub counting: bool,
}

const fn step(workload: &'static str, rounds: usize, settings: &'static str) -> Step {
    Step { workload, settings, rounds, counting: false }
}

const fn counting(workload: &'static str, rounds: usize) -> Step {
    Step { workload, settings: "", rounds, counting: true }
}

/// Under half an hour with all peers.
const FULL: &[Step] = &[
    step("W1", 3, "threads=1"),
    step("W1", 3, "threads=2"),
    step("W1", 3, "threads=4"),
    step("W2", 3, "standing=0 threads=1"),
    step("W2", 3, "standing=0 threads=2"),
    step("W2", 3, "standing=0 threads=4"),
    step("W2", 1, "standing=1000000 threads=1"),
    step("W2", 1, "standing=1000000 threads=2"),
    step("W2", 1, "standing=1000000 threads=4"),
    step("W3", 3, ""),
    step("W4", 2, ""),
    step("W5", 1, ""),
    step("W6", 1, ""),
    counting("W7", 1),
    step("W8", 3, ""),
    counting("W8", 1),
    step("W9", 3, "threads=1"),
    step("W9", 3, "threads=2"),
    step("W9", 3, "threads=4"),
    step("W10", 2, ""),
    step("W11", 2, "n=1000"),
    step("W11", 2, "n=100000"),
    step("W11", 2, "n=1000000"),
    step("W11", 1, "n=10000000"),
    step("W11", 1, "n=100000000"),
    step("W12", 3, "n=1000"),
    step("W12", 3, "n=100000"),
    step("W12", 1, "n=1000000"),
    step("W12", 1, "n=10000000"),
];

/// Under three minutes with all peers.
const QUICK: &[Step] = &[
    step("W1", 3, "threads=1"),
    step("W1", 3, "threads=2"),
    step("W1", 3, "threads=4"),
    step("W2", 2, "standing=0 threads=1"),
    step("W2", 2, "standing=0 threads=2"),
    step("W2", 2, "standing=0 threads=4"),
    step("W2", 2, "standing=100000 threads=1"),
    step("W2", 2, "standing=100000 threads=2"),
    step("W2", 2, "standing=100000 threads=4"),
    step("W3", 2, ""),
    step("W4", 1, ""),
    step("W5", 1, ""),
    step("W6", 1, ""),
    counting("W7", 1),
    step("W8", 3, ""),
    counting("W8", 1),
    step("W9", 3, "threads=1"),
    step("W9", 3, "threads=2"),
    step("W9", 3, "threads=4"),
    step("W10", 1, ""),
    step("W11", 2, "n=1000"),
    step("W11", 2, "n=100000"),
    step("W12", 3, "n=1000"),
    step("W12", 3, "n=100000"),
];

/// What the options ask for, in order.
pub fn steps(options: &Options) -> Vec<Step> {
    let all = if options.quick { QUICK } else { FULL };
    let wanted = |step: &&Step| options.workloads.iter().any(|name| name == step.workload);
    all.iter().filter(wanted).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::{FULL, QUICK, steps};
    use crate::report::options::Options;
    use crate::settings::Settings;
    use crate::workloads;

    #[test]
    fn every_workload_is_planned_with_settings_that_exist() {
        for plan in [FULL, QUICK] {
            let planned = |name: &str| plan.iter().any(|step| step.workload == name);
            assert!(workloads::ALL.iter().all(|(name, _)| planned(name)));
            for step in plan {
                assert!(step.rounds > 0 && Settings::parse(step.settings.split_whitespace()).is_ok());
            }
        }
    }

    #[test]
    fn only_what_was_asked_for_is_run() {
        let options = Options::parse(["W7,W8", "--quick"]).unwrap();
        let steps: Vec<_> = steps(&options).iter().map(|step| (step.workload, step.counting)).collect();
        assert_eq!(steps, [("W7", true), ("W8", false), ("W8", true)]);
    }
}
