//! `workload` with mimalloc instead of the system's allocator.

#![forbid(unsafe_code)]

use mimalloc::MiMalloc;
use std::process::ExitCode;
use timer_bench::out::Heap;

#[global_allocator]
static HEAP: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    timer_bench::registry::main(Heap::Mimalloc)
}
