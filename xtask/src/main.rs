//! The project's chores: `cargo xtask help` lists them.
//!
//! This file only dispatches on the first word; each command is one file. It promises to need nothing but cargo, to
//! print every command line before it runs it, and to exit with the code of the command that failed. It depends on no
//! crate, ours least of all: a library that does not build must not take its own tools along.

#![forbid(unsafe_code)]

mod args;
mod bench;
mod cargo;
mod ci;
mod demo;
mod docs;
mod fuzz;
mod help;
mod loom;
mod metrics_e2e;
mod sanitize;
mod stress;
mod test;
mod tidy;

use std::process::ExitCode;

use crate::args::Args;
use crate::cargo::Failure;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    match dispatch(&command, Args::new(words)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Whoever has told everything already leaves this empty.
            if !failure.what.is_empty() {
                eprintln!("xtask: {}", failure.what);
            }
            ExitCode::from(failure.code)
        }
    }
}

fn dispatch(command: &str, args: Args) -> Result<(), Failure> {
    match command {
        "bench" => bench::command(args),
        "ci" => ci::command(args),
        "demo" => demo::command(args),
        "docs" => docs::command(args),
        "fuzz" => fuzz::command(args),
        "loom" => loom::command(args),
        "metrics-e2e" => metrics_e2e::command(args),
        "sanitize" => sanitize::command(args),
        "stress" => stress::command(args),
        "test" => test::command(args),
        "tidy" => tidy::command(args),
        "help" | "-h" | "--help" => help::command(args),
        other => Err(help::unknown(other)),
    }
}
