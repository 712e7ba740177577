//! `cargo xtask bench`: the benchmarks, and the smoke run that `ci` makes of them.

use crate::args::Args;
use crate::cargo::{Cargo, Failure};

pub(crate) fn command(args: Args) -> Result<(), Failure> {
    run(&args.done_with_rest()?)
}

/// Every benchmark once, unmeasured: does it still build and run?
pub(crate) fn smoke() -> Result<(), Failure> {
    run(&["--test".to_owned()])
}

fn run(rest: &[String]) -> Result<(), Failure> {
    Cargo::new("bench -p timer-bench").rest(rest).run()
}
