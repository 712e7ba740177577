//! `cargo xtask test`: the four ways the tests are built.

use crate::args::Args;
use crate::cargo::{Cargo, Failure};

/// The crates that are published, in the order of their arrows.
pub(crate) const LIBRARIES: [&str; 3] = ["timer-executor", "timer-core", "timer-metrics"];

pub(crate) fn command(mut args: Args) -> Result<(), Failure> {
    let keep_going = args.flag("--keep-going");
    run(keep_going, &args.done_with_rest()?)
}

/// Stops at the first failure, or runs all and returns the first.
pub(crate) fn run(keep_going: bool, rest: &[String]) -> Result<(), Failure> {
    let mut result = Ok(());
    for line in lines() {
        let mut cargo = Cargo::new(&line);
        if keep_going {
            cargo = cargo.arg("--no-fail-fast");
        }
        result = result.and(cargo.rest(rest).run());
        if result.is_err() && !keep_going {
            break;
        }
    }
    result
}

/// Each library has a line of its own where default features are off: together, what one asks for would be on in all.
fn lines() -> Vec<String> {
    let mut lines = vec!["test --workspace --all-features --tests".to_owned()];
    lines.extend(LIBRARIES.map(|library| format!("test -p {library} --no-default-features --tests")));
    lines.push("test --workspace --all-features --doc".to_owned());
    lines.push("test --workspace --all-features --release --tests --exclude xtask".to_owned());
    lines
}
