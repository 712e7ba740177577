//! The same as `workload`, but with an allocator that counts, which would distort any figure of time: only the memory
//! workloads can be run here.

#![forbid(unsafe_code)]

use peak_alloc::PeakAlloc;
use std::process::ExitCode;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

fn main() -> ExitCode {
    timer_bench::workloads::main(Some(|| HEAP.current_usage()))
}
