//! `bench-report`: what `cargo xtask bench` runs.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    timer_bench::report::main()
}
