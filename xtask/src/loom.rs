//! `cargo xtask loom`, which checks the models of timer-core.
//!
//! loom explores every interleaving of a model within a bound on preemptions.
//!
//! The cfg is in the flags of the child process alone, and its target folder is separate, so
//! neither this program nor an ordinary build sees it. The build is optimized, because a model
//! takes millions of steps, and has assertions, because they are part of the checks.

use std::fs::{self, File};
use std::path::PathBuf;

use xshell::{Cmd, Shell, cmd};

use crate::flags;
use crate::run::{Failure, Result, flags_and, report, run, run_with, target_dir};

/// The bounds of the everyday run and of the long run. Every negative twin fails at the first
/// bound, where every other model ends within seconds. The second bound takes minutes.
pub(crate) const PREEMPTIONS: u32 = 2;
pub(crate) const MORE_PREEMPTIONS: u32 = 3;

/// The seconds that a model may take at a larger bound. Beyond [`MORE_PREEMPTIONS`] some models
/// have too many interleavings, and their lines say that they were cut off.
const SECONDS_PER_MODEL: &str = "120";

/// The number of lines of the panics that a failed run shows.
const SHOWN_LINES: usize = 60;

/// The flag of a build for loom.
pub(crate) const CFG: &str = "--cfg timer_loom";

/// The variable with the bound on preemptions.
pub(crate) const BOUND: &str = "LOOM_MAX_PREEMPTIONS";

pub(crate) fn command(sh: &Shell, flags: &flags::Loom) -> Result {
    if flags.compile_only {
        return run(cargo(sh, "check", "--profile test"));
    }
    explore(sh, flags.filter.as_deref().unwrap_or_default(), flags.preemptions.unwrap_or(PREEMPTIONS))
}

/// Runs the models whose names contain `filter`.
///
/// The test program would run each model that contains any of several filters. Therefore this lists
/// the models first and passes their exact names.
pub(crate) fn explore(sh: &Shell, filter: &str, preemptions: u32) -> Result {
    run(cargo(sh, "test", "--profile loom --no-run"))?;
    let list = cargo(sh, "test", "--profile loom --quiet -- --list --format terse").quiet().read()?;
    let models = select(&list, filter);
    if models.is_empty() {
        return Err(Failure::new(format!("no model has `{filter}` in its name")));
    }
    report(&format!("{} models with up to {preemptions} preemptions\n", models.len()));
    let attempt = || {
        let mut test = cargo(sh, "test", "--profile loom -- --exact --nocapture --test-threads 1").args(&models);
        if preemptions > MORE_PREEMPTIONS {
            test = test.env("LOOM_MAX_DURATION", SECONDS_PER_MODEL);
        }
        check(test.env(BOUND, preemptions.to_string()).env("RUST_BACKTRACE", "0"))
    };
    // The same interleavings follow in each attempt, so a second one hides no fault of a model. It
    // is for a process that was killed.
    attempt().or_else(|_| {
        report("== a second attempt\n");
        attempt()
    })
}

/// Runs the models. The output of panics matters only if this fails, because each negative twin
/// panics as it must, and then its end tells why.
fn check(test: Cmd<'_>) -> Result {
    let path = folder().join("panics.log");
    let log = File::create(&path)?;
    run_with(test, |command| _ = command.stderr(log)).inspect_err(|_| {
        let panics = fs::read_to_string(path).unwrap_or_default();
        let from = panics.lines().count().saturating_sub(SHOWN_LINES);
        report(&panics.lines().skip(from).map(|line| format!("{line}\n")).collect::<String>());
    })
}

fn folder() -> PathBuf {
    target_dir().join("loom")
}

fn cargo<'a>(sh: &'a Shell, verb: &str, rest: &str) -> Cmd<'a> {
    let folder = folder();
    let rest = rest.split(' ');
    let cmd = cmd!(sh, "cargo {verb} -p timer-core --lib --target-dir {folder} {rest...}");
    cmd.env("RUSTFLAGS", flags_and("RUSTFLAGS", CFG))
}

/// Returns the models of a listing whose names contain `filter`.
fn select(listing: &str, filter: &str) -> Vec<String> {
    let tests = listing.lines().filter_map(|line| line.strip_suffix(": test"));
    tests.filter(|name| name.contains("loom") && name.contains(filter)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use crate::run::root;
    use std::fs;

    #[test]
    fn capped_models_are_listed_with_reasons() {
        let folder = root().join("timer-core/src/loom_models");
        let list = fs::read_to_string(folder.join("mod.rs")).unwrap();
        let mut capped = Vec::new();
        let texts = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).filter(|it| !it.ends_with("mod.rs"));
        let texts: Vec<_> = texts.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect();
        for (path, text) in &texts {
            let module = path.file_stem().unwrap().to_str().unwrap();
            let models =
                text.lines().filter_map(|line| line.strip_prefix("model!(check_heav")?.split([',', ')']).nth(1));
            capped.extend(models.map(|model| format!("//! | `{module}::{}` | ", model.trim())));
        }
        assert!(capped.len() > 10);
        let unlisted: Vec<_> = capped.iter().filter(|row| !list.contains(*row)).collect();
        assert!(unlisted.is_empty(), "{unlisted:?}");
        assert_eq!(list.matches("//! | `").count(), capped.len(), "a listed model is not capped");
    }

    #[test]
    fn a_filter_selects_models_only() {
        let models = |filter| super::select("state::loom_cancel: test\nloom_push: test\ncancel: test\n", filter);
        assert_eq!((models("").len(), models("cancel").join(" ")), (2, "state::loom_cancel".to_owned()));
    }
}
