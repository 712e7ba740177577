//! `workload PEER WORKLOAD [--quick] [NAME=NUMBER,..]`: one workload on one timer; a line for each figure.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    timer_bench::workloads::main(None)
}
