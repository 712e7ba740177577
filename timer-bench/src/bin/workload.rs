//! `workload PEER WORKLOAD [--SETTING NUMBER,..]` runs one workload on one timer and prints a line
//! for each figure.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use timer_bench::out::Heap;

fn main() -> ExitCode {
    timer_bench::registry::main(Heap::System)
}
