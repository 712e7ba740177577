//! `workload` with a timer that records how long the locks of its shards are held. Recording takes
//! time, so the program serves only W21.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use timer_bench::workloads::{self, Program};

fn main() -> ExitCode {
    workloads::main(Program::Held)
}
