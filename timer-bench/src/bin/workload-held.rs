//! `workload` with locks that record how long they are held. Recording takes time, so the program
//! serves the workload `held` alone.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use timer_bench::out::Heap;

fn main() -> ExitCode {
    timer_bench::registry::main(Heap::System)
}
