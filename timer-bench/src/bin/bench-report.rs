//! The program behind `cargo xtask bench`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    timer_bench::report::main()
}
