//! The processes of a run. Most of them do one case of one workload, so that the case does not find
//! the memory or the threads of another.

use super::options::Options;
use crate::peers::{self, FLOOR, OURS};
use crate::settings::Size;
use std::time::Duration;

/// One or more cases of a workload, which run the given number of times for each peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// A name from [`workloads::ALL`](crate::workloads::ALL).
    pub workload: &'static str,
    /// The words for [`Settings`](crate::settings::Settings), separated by spaces.
    pub settings: &'static str,
    /// The number of rounds of ours with its defaults, and of the floor if others take part.
    pub rounds: usize,
    /// The number of rounds of ours with other settings, such as the hashed wheel.
    pub rounds_of_variants: usize,
    /// The number of rounds of the other peers, or 0 if the case is for ours alone.
    pub rounds_of_others: usize,
    /// The program that runs the case.
    pub program: ProgramKind,
    /// The longest time of one process. After that it is ended, and its figures are not available.
    pub limit: Duration,
}

/// The programs that run workloads, by their allocators and locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramKind {
    /// The system's allocator.
    Timing,
    /// mimalloc.
    Mimalloc,
    /// An allocator that counts.
    Counting,
    /// Locks that record how long they are held.
    Held,
}

impl Step {
    /// Returns the number of rounds for `peer`.
    pub fn rounds(&self, peer: &str) -> usize {
        match peer {
            OURS => self.rounds,
            FLOOR if self.rounds_of_others > 0 => self.rounds,
            _ if peer.starts_with(OURS) => self.rounds_of_variants,
            _ => self.rounds_of_others,
        }
    }

    /// Returns the peers that take part.
    pub fn peers<'a>(&self, peers: &'a [String]) -> impl Iterator<Item = &'a str> {
        peers.iter().map(String::as_str).filter(|peer| peers::does(peer, self.workload))
    }

    const fn others(mut self, rounds: usize) -> Self {
        (self.rounds_of_variants, self.rounds_of_others) = (rounds, rounds);
        self
    }

    /// Makes a storm that other timers do not run. Their backlog would fill the memory, because
    /// they do not slow callers down.
    const fn overload(self) -> Self {
        let mut step = self.storm();
        step.rounds_of_others = 0;
        step
    }

    /// Limits the time, because a storm that does not end must not hold up the rest.
    const fn storm(self) -> Self {
        self.within(Duration::from_secs(60))
    }

    const fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    const fn by(mut self, program: ProgramKind) -> Self {
        self.program = program;
        self
    }
}

const fn step(workload: &'static str, rounds: usize, settings: &'static str) -> Step {
    let limit = Duration::from_secs(300);
    let (rounds_of_variants, rounds_of_others) = (rounds, rounds);
    Step { workload, settings, rounds, rounds_of_variants, rounds_of_others, program: ProgramKind::Timing, limit }
}

const fn counting(workload: &'static str, rounds: usize) -> Step {
    step(workload, rounds, "").by(ProgramKind::Counting)
}

/// The steps of a full run, which take 40 to 55 minutes with all peers.
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
    step("W8", 3, "").by(ProgramKind::Mimalloc).others(0),
    step("W9", 3, "threads=1"),
    step("W9", 3, "threads=2"),
    step("W9", 3, "threads=4"),
    step("W9", 3, "threads=1 live=1000000").others(1),
    step("W10", 2, ""),
    step("W11", 2, "n=1000"),
    step("W11", 2, "n=100000"),
    step("W11", 2, "n=1000000"),
    step("W11", 1, "n=10000000"),
    step("W11", 1, "n=100000000").within(Duration::from_secs(600)),
    step("W12", 3, "n=1000"),
    step("W12", 3, "n=100000"),
    step("W12", 1, "n=1000000"),
    step("W12", 1, "n=10000000"),
    step("W13", 3, "cpus=1").others(1),
    step("W13", 3, "cpus=2").others(1),
    step("W14", 3, "").others(1),
    step("W14", 3, "").by(ProgramKind::Mimalloc).others(0),
    step("W15", 3, "threads=4").storm(),
    step("W15", 3, "threads=8").storm(),
    step("W15", 3, "threads=12").storm(),
    step("W15", 3, "threads=24").storm(),
    step("W15", 3, "threads=48").storm(),
    step("W15", 3, "threads=16 cpus=1").storm(),
    step("W15", 3, "threads=4 cancel=0 ms=4000 window-ms=250").overload(),
    step("W15", 3, "threads=4 cancel=30 ms=4000 window-ms=250").overload(),
    step("W15", 3, "threads=64 cancel=0 ms=4000 window-ms=250").overload(),
    step("W15", 3, "threads=64 cancel=30 ms=4000 window-ms=250").overload(),
    step("W15", 3, "threads=200 cancel=0 ms=4000 window-ms=250").overload(),
    step("W15", 3, "threads=200 cancel=30 ms=4000 window-ms=250").overload(),
    step("W15", 3, "threads=200 ms=4000 window-ms=250").overload(),
    step("W15", 3, "threads=64 cancel=30 stall-ms=4000 ms=16000 window-ms=250").overload(),
    step("W15", 3, "threads=8 cancel=0 stall-ms=1500 ms=9000 window-ms=250").overload(),
    step("W15", 3, "threads=8 cancel=0 freeze-ms=1500 ms=9000 window-ms=250").overload(),
    step("W15", 3, "threads=64 pause-us=1000").storm(),
    step("W15", 3, "nice=1").storm(),
    step("W16", 2, "").others(1),
    step("W17", 2, "").others(1),
    counting("W17", 1),
    step("W18", 3, ""),
    counting("W18", 1),
    step("W19", 3, ""),
    step("W20", 1, ""),
    step("W21", 2, "case=1").by(ProgramKind::Held).others(0),
    step("W21", 2, "case=2").by(ProgramKind::Held).others(0),
    step("W21", 2, "case=3").by(ProgramKind::Held).others(0),
    step("W21", 2, "case=4").by(ProgramKind::Held).others(0),
    step("W21", 2, "case=5").by(ProgramKind::Held).others(0),
    step("instructions", 1, ""),
];

/// The steps of a quick run, which take about four minutes with all peers.
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
    step("W9", 2, "threads=1 live=100000").others(1),
    step("W10", 1, ""),
    step("W11", 2, "n=1000"),
    step("W11", 2, "n=100000"),
    step("W12", 3, "n=1000"),
    step("W12", 3, "n=100000"),
    step("W13", 2, "cpus=1").others(1),
    step("W13", 2, "cpus=2").others(1),
    step("W14", 2, "").others(1),
    step("W14", 2, "").by(ProgramKind::Mimalloc).others(0),
    step("W15", 2, "threads=4").storm(),
    step("W15", 2, "threads=12").storm(),
    step("W15", 2, "threads=48").storm(),
    step("W15", 1, "threads=16 cpus=1").storm(),
    step("W15", 1, "threads=64 pause-us=1000").storm(),
    step("W15", 1, "nice=1").storm(),
    step("W15", 1, "threads=4 cancel=0 ms=2000 window-ms=100").overload(),
    step("W15", 1, "threads=200 cancel=30 ms=2000 window-ms=100").overload(),
    step("W15", 1, "threads=64 cancel=30 stall-ms=1000 ms=6000 window-ms=250").overload(),
    step("W15", 1, "threads=8 cancel=0 freeze-ms=500 ms=6000 window-ms=250").overload(),
    step("W16", 1, ""),
    step("W17", 1, ""),
    counting("W17", 1),
    step("W18", 2, ""),
    counting("W18", 1),
    step("W19", 2, ""),
    step("W20", 1, ""),
    step("W21", 1, "case=1").by(ProgramKind::Held).others(0),
    step("W21", 1, "case=2").by(ProgramKind::Held).others(0),
    step("W21", 1, "case=3").by(ProgramKind::Held).others(0),
    step("W21", 1, "case=4").by(ProgramKind::Held).others(0),
    step("W21", 1, "case=5").by(ProgramKind::Held).others(0),
];

/// Returns the steps that the options select, in order.
pub fn steps(options: &Options) -> Vec<Step> {
    let all = match options.size {
        Size::Full => FULL,
        Size::Quick => QUICK,
    };
    let is_built = |step: &Step| step.program != ProgramKind::Mimalloc || cfg!(feature = "peers");
    let wanted = |step: &&Step| is_built(step) && options.workloads.iter().any(|name| name == step.workload);
    all.iter().filter(wanted).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::{FULL, ProgramKind, QUICK, step, steps};
    use crate::report::options::Options;
    use crate::settings::Settings;
    use crate::workloads;

    #[test]
    fn each_workload_is_planned_with_known_settings() {
        for plan in [FULL, QUICK] {
            // Only the full run counts instructions.
            let planned = |name: &str| plan.iter().any(|step| step.workload == name) || name == "instructions";
            assert!(workloads::ALL.iter().all(|(name, _)| planned(name)));
            for step in plan {
                assert!(step.rounds > 0 && step.rounds_of_others <= step.rounds, "{step:?}");
                assert!(Settings::parse(step.settings.split_whitespace()).is_ok(), "{step:?}");
            }
        }
    }

    #[test]
    fn only_selected_workloads_are_run() {
        let options = Options::parse(["W7,W8", "--quick"]).unwrap();
        assert_eq!(steps(&Options::parse(["W14"]).unwrap()).len(), if cfg!(feature = "peers") { 2 } else { 1 });
        let steps: Vec<_> = steps(&options).iter().map(|step| (step.workload, step.program)).collect();
        assert_eq!(steps, [("W7", ProgramKind::Counting), ("W8", ProgramKind::Timing), ("W8", ProgramKind::Counting)]);
    }

    #[test]
    fn all_that_take_part_in_a_storm_have_as_many_rounds() {
        let (step, peers) = (step("W15", 3, "").storm(), ["timer", "heap", "btree", "floor"].map(str::to_owned));
        assert_eq!(step.peers(&peers).collect::<Vec<_>>(), ["timer", "btree", "floor"]);
        let peers = ["timer", "timer-hashed", "floor", "btree"];
        assert_eq!(peers.map(|peer| step.rounds(peer)), [3, 3, 3, 3]);
        assert_eq!(peers.map(|peer| step.overload().rounds(peer)), [3, 3, 0, 0]);
    }
}
