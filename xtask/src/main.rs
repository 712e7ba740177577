//! The project's chores: `cargo xtask help` lists them, `flags.rs` says what there is, this file
//! dispatches. Every command line is printed before it runs; its exit code is ours if it fails. Of
//! our crates this depends on none.

#![forbid(unsafe_code)]

mod api;
mod chores;
mod ci;
mod crates;
mod flags;
mod fuzz;
mod loom;
mod run;
mod sanitize;
mod steps;
mod tidy;

use std::process::ExitCode;

use crate::flags::XtaskCmd;
use crate::run::{Failure, Result};

fn main() -> ExitCode {
    let flags = flags::parse(std::env::args_os().skip(1)).unwrap_or_else(|error| error.exit());
    let Err(failure) = dispatch(flags.subcommand) else { return ExitCode::SUCCESS };
    // A command that has told everything already leaves this empty.
    if !failure.what.is_empty() {
        eprintln!("xtask: {}", failure.what);
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
        // It was asked for by its name, so it is a fault if it is skipped.
        XtaskCmd::Fuzz(flags) => fuzz::run_all(sh, &flags).map_err(|it| Failure { code: it.code.max(1), ..it }),
        XtaskCmd::Loom(flags) => loom::command(sh, &flags),
        XtaskCmd::MetricsE2e(_) => chores::metrics_e2e(sh),
        XtaskCmd::Sanitize(flags) => sanitize::command(&flags),
        XtaskCmd::Stress(flags) => chores::stress(sh, &flags),
        XtaskCmd::Test(flags) => chores::test(sh, &flags),
        XtaskCmd::Tidy(_) => tidy::command(sh),
    }
}
