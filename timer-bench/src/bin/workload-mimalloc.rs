//! `workload` with mimalloc instead of the system's allocator, for the workloads in which that
//! matters.

#![forbid(unsafe_code)]

use mimalloc::MiMalloc;
use std::process::ExitCode;
use timer_bench::workloads::{self, Program};

#[global_allocator]
static HEAP: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    workloads::main(Program::Mimalloc)
}
