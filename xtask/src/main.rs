//! The project's chores. `flags.rs` declares the commands, and this file dispatches them.
//!
//! xtask prints the command lines that do its work before it runs them, except for queries such as
//! `cargo metadata` and for the builds and tests of single mutations. It exits with the code of the
//! first failure. It depends on none of the crates of the workspace.

#![forbid(unsafe_code)]

mod api;
mod attempts;
mod cargo;
mod chores;
mod ci;
mod crates;
mod debian;
mod first_lines;
mod flags;
mod fuzz;
mod loom;
mod lowest;
mod mutants;
mod package;
mod platforms;
mod postgres;
mod recipes;
mod release;
mod resolve;
mod run;
mod rustdoc;
mod sanitize;
mod steps;
mod tidy;

use std::process::ExitCode;

use crate::flags::XtaskCmd;
use crate::run::{Failure, Result};

fn main() -> ExitCode {
    let chore = std::env::args().nth(1);
    let parse =
        || flags::parse(std::env::args_os().skip(1)).unwrap_or_else(|error| flags::exit(error, chore.as_deref()));
    let done = rustdoc::stand_in().unwrap_or_else(|| dispatch(parse().subcommand));
    let Err(failure) = done else { return ExitCode::SUCCESS };
    // The steps have already printed their failures and leave the message empty.
    if !failure.message.is_empty() {
        eprintln!("xtask: {}", failure.message);
    }
    ExitCode::from(failure.code)
}

fn dispatch(command: XtaskCmd) -> Result {
    let sh = &run::shell()?;
    match command {
        XtaskCmd::Api(flags) => api::command(sh, &flags),
        XtaskCmd::Bench(flags) => chores::bench(sh, flags),
        XtaskCmd::Browser(_) => chores::browser(sh),
        XtaskCmd::Ci(flags) => ci::command(&flags),
        XtaskCmd::Demo(flags) => chores::demo(sh, &flags.args),
        XtaskCmd::Docs(flags) => chores::docs(sh, if flags.open { "--open" } else { "" }),
        // A user who asks for fuzzing gets an error if it cannot run; `ci` skips it.
        XtaskCmd::Fuzz(flags) => fuzz::run_all(&flags).map_err(|it| Failure { code: it.code.max(1), ..it }),
        XtaskCmd::Loom(flags) => loom::command(sh, &flags),
        XtaskCmd::MetricsE2e(_) => chores::metrics_e2e(sh),
        XtaskCmd::Mutants(flags) => mutants::command(sh, &flags),
        XtaskCmd::Release(flags) => release::command(sh, &flags),
        XtaskCmd::Sanitize(flags) => sanitize::command(&flags),
        XtaskCmd::Stress(flags) => chores::stress(sh, &flags),
        XtaskCmd::Tidy(_) => tidy::command(sh),
    }
}
