//! `cargo xtask loom`: timer-core's models, each in every order that the bound on preemptions
//! allows; and storms, each in some orders.
//!
//! The cfgs go into the child's flags alone, and into a target folder of their own: neither this
//! program nor an ordinary build sees them. Optimised, since a model is millions of steps; with
//! assertions, since they are part of what is checked.

use std::fs::{self, File};

use xshell::{Cmd, Shell, cmd};

use crate::flags;
use crate::run::{Failure, Result, flags_and, run, run_with, target_dir};

/// Every model that must fail does so at the first bound, and every other one ends within seconds;
/// the second takes minutes.
pub(crate) const PREEMPTIONS: u32 = 2;
pub(crate) const MORE_PREEMPTIONS: u32 = 3;

/// A checker: what is in the names of its tests, the cfgs, and the variable that bounds it.
pub(crate) const LOOM: [&str; 3] = ["loom", "--cfg timer_loom", "LOOM_MAX_PREEMPTIONS"];
pub(crate) const SHUTTLE: [&str; 3] = ["storm", "--cfg timer_loom --cfg timer_shuttle", "STORM_ROUNDS"];

pub(crate) fn command(sh: &Shell, flags: &flags::Loom) -> Result {
    if flags.compile_only {
        return run(cargo(sh, LOOM, "check", "--profile test"));
    }
    explore(sh, LOOM, flags.filter.as_deref().unwrap_or_default(), flags.preemptions.unwrap_or(PREEMPTIONS))
}

/// The models whose names contain `filter`. The test program takes several filters as "any of
/// them", so the models are listed first and then named exactly.
pub(crate) fn explore(sh: &Shell, checker: [&str; 3], filter: &str, bound: u32) -> Result {
    let models = select(&cargo(sh, checker, "test", "--release -- --list --format terse").read()?, checker[0], filter);
    if models.is_empty() {
        return Err(Failure::new(format!("no model has `{filter}` in its name")));
    }
    println!("{} models, {} {bound}", models.len(), checker[2]);
    let test = cargo(sh, checker, "test", "--release -- --exact --nocapture --test-threads 1").args(models);
    // The models that must fail do it by a panic each: that is only of interest if something else
    // fails too.
    let path = target_dir().join(checker[0]).join("panics.log");
    let log = File::create(&path)?;
    run_with(test.env(checker[2], bound.to_string()).env("RUST_BACKTRACE", "0"), |command| _ = command.stderr(log))
        .inspect_err(|_| eprint!("{}", fs::read_to_string(path).unwrap_or_default()))
}

fn cargo<'a>(sh: &'a Shell, checker: [&str; 3], verb: &str, rest: &str) -> Cmd<'a> {
    let (folder, rest) = (target_dir().join(checker[0]), rest.split(' '));
    let cmd = cmd!(sh, "cargo {verb} -p timer-core --lib --target-dir {folder} {rest...}");
    cmd.env("RUSTFLAGS", flags_and("RUSTFLAGS", checker[1])).env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true")
}

/// The models of a listing whose names contain `filter`.
fn select(listing: &str, checker: &str, filter: &str) -> Vec<String> {
    let tests = listing.lines().filter_map(|line| line.strip_suffix(": test"));
    tests.filter(|name| name.contains(checker) && name.contains(filter)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_filter_narrows_the_models_and_never_widens_them() {
        let models =
            |filter| super::select("state::loom_cancel: test\nloom_push: test\ncancel: test\n", "loom", filter);
        assert_eq!((models("").len(), models("cancel").join(" ")), (2, "state::loom_cancel".to_owned()));
    }
}
