//! `workload` with an allocator that counts. Counting distorts times.

#![forbid(unsafe_code)]

use peak_alloc::PeakAlloc;
use std::process::ExitCode;
use timer_bench::out::Heap;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

fn main() -> ExitCode {
    timer_bench::registry::main(Heap::Counting(|| HEAP.current_usage()))
}
