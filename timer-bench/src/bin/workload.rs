//! `workload PEER WORKLOAD [--quick] [NAME=NUMBER,..]` runs one workload on one timer and prints a
//! line for each figure.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use timer_bench::workloads::{self, Program};

fn main() -> ExitCode {
    workloads::main(Program::Timing)
}
