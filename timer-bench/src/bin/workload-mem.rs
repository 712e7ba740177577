//! The same as `workload`, but with an allocator that counts, which would distort any figure of time: only the memory
//! workloads can be run here.

#![forbid(unsafe_code)]

use peak_alloc::PeakAlloc;
use std::process::ExitCode;
use timer_bench::workloads::{self, Program};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

fn main() -> ExitCode {
    workloads::main(Program::Counting(|| HEAP.current_usage()))
}
