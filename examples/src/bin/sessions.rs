//! Replays a web log through the timer as connections with an idle timeout. See `sessions --help`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    examples::sessions::main()
}
