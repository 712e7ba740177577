//! `cargo xtask loom`: timer-core's models, each explored in every order that the bound on preemptions allows.
//!
//! The cfg goes into the child's flags alone, and into a target folder of its own: neither this program nor an ordinary
//! build sees it. Optimised, since a model is millions of steps; with assertions, since they are part of what is checked.

use std::fs::{self, File};

use xshell::{Cmd, Shell, cmd};

use crate::flags;
use crate::run::{Failure, Result, flags_and, run, run_with, target_dir};

/// Every model that must fail does so at the first bound, and every other one ends within seconds; the second takes minutes.
pub(crate) const PREEMPTIONS: u32 = 2;
pub(crate) const MORE_PREEMPTIONS: u32 = 4;

pub(crate) fn command(sh: &Shell, flags: &flags::Loom) -> Result {
    if flags.compile_only {
        return run(cargo(sh, "check --profile test"));
    }
    explore(sh, flags.filter.as_deref().unwrap_or_default(), flags.preemptions.unwrap_or(PREEMPTIONS))
}

/// The models whose names contain `filter`. The test program takes several filters as "any of them", so the models are
/// listed first and then named exactly.
pub(crate) fn explore(sh: &Shell, filter: &str, preemptions: u32) -> Result {
    let listing = cargo(sh, "test --release").args("-- loom --list --format terse".split(' ')).read()?;
    let models = select(&listing, filter);
    if models.is_empty() {
        return Err(Failure::new(format!("no model has `{filter}` in its name")));
    }
    println!("{} models, preemption bound {preemptions}", models.len());
    let test = cargo(sh, "test --release").args("-- --exact --nocapture --test-threads 1".split(' ')).args(models);
    let test = test.env("LOOM_MAX_PREEMPTIONS", preemptions.to_string()).env("RUST_BACKTRACE", "0");
    // The models that must fail do it by a panic each: that is only of interest if something else fails too.
    let path = target_dir().join("loom/panics.log");
    let log = File::create(&path)?;
    let result = run_with(test, |command| _ = command.stderr(log));
    if result.is_err() {
        eprint!("{}", fs::read_to_string(path)?);
    }
    result
}

fn cargo<'a>(sh: &'a Shell, verb: &str) -> Cmd<'a> {
    let (verb, folder) = (verb.split(' '), target_dir().join("loom"));
    let cmd = cmd!(sh, "cargo {verb...} -p timer-core --lib --target-dir {folder}");
    cmd.env("RUSTFLAGS", flags_and("RUSTFLAGS", "--cfg timer_loom"))
        .env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true")
}

/// The models of a listing whose names contain `filter`.
fn select(listing: &str, filter: &str) -> Vec<String> {
    let tests = listing.lines().filter_map(|line| line.strip_suffix(": test"));
    tests.filter(|name| name.contains("loom") && name.contains(filter)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_filter_narrows_the_models_and_never_widens_them() {
        let models = |filter| super::select("state::loom_cancel: test\ninbox::loom_push: test\ncancel: test\n", filter);
        assert_eq!((models("").len(), models("cancel").join(" ")), (2, "state::loom_cancel".to_owned()));
    }
}
