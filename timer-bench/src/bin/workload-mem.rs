//! `workload` with an allocator that counts. Counting distorts times, so this program only runs the
//! memory workloads.

#![forbid(unsafe_code)]

use peak_alloc::PeakAlloc;
use std::process::ExitCode;
use timer_bench::workloads::{self, Program};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

fn main() -> ExitCode {
    workloads::main(Program::Counting(|| HEAP.current_usage()))
}
