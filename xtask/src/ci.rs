//! `cargo xtask ci`: everything a change must pass, in order, with the time of each step.
//!
//! What runs on a server is this and nothing else, so it can be run here too. The everyday steps share one profile and one
//! set of features, so that each crate is compiled once for the tests, the benches and the doctests; what is built twice all
//! the same says why. There is no step for the demo and none for the workloads of the bench: both are programs that the
//! tests run. The peers of the bench, which take longer to build than all else, are left to `--long`.

use xshell::{Shell, cmd};

use crate::chores::{METRICS_E2E, docs, stress, test_line, without_features};
use crate::crates::{LIBRARIES, features, metadata};
use crate::run::{Failure, Result, run, target_dir};
use crate::steps::{self, Outcome, Step};
use crate::{flags, fuzz, loom, sanitize, tidy};

/// Quick ones first.
const STEPS: &[Step] = &[
    Step { name: "fmt", run: fmt },
    // A test as well; here it speaks before anything is compiled.
    Step { name: "tidy", run: |sh| passed(tidy::command(sh)) },
    Step { name: "clippy", run: clippy },
    Step { name: "test", run: test },
    Step { name: "doctest", run: |sh| passed(test_line(sh, &format!("{} --doc", workspace(sh)?), true, &[])) },
    Step { name: "docs", run: |sh| passed(docs(sh, false)) },
    // The cfg makes another crate of timer-core, and a model is millions of steps: optimised, in a folder of its own.
    Step { name: "loom", run: |sh| passed(loom::explore(sh, "", loom::PREEMPTIONS)) },
    // Builds the libraries from what a registry would get: a file that is not packed is missed nowhere else.
    Step { name: "package", run: package },
];

/// After the others, with `--long`.
const LONG: &[Step] = &[
    // Without assertions, and at the full sizes: the million timeouts, the ten years.
    Step { name: "test-release", run: release },
    Step { name: "test-features", run: no_features },
    Step { name: "loom-deeper", run: |sh| passed(loom::explore(sh, "", loom::MORE_PREEMPTIONS)) },
    Step { name: "peers", run: peers },
    Step { name: "stress", run: |sh| passed(stress(sh, &STORM)) },
    Step { name: "fuzz", run: |sh| fuzz::run_all(sh, &EVERY_TARGET) },
    sanitize::ASAN,
    sanitize::TSAN,
    sanitize::MEMCHECK,
    METRICS_E2E,
    Step { name: "instructions", run: instructions },
];

const STORM: flags::Stress = flags::Stress { minutes: Some(2.0), seed: None, round: None, ten_years: false };
const EVERY_TARGET: flags::Fuzz = flags::Fuzz { target: None, minutes: Some(1), jobs: None, address: false };

pub(crate) fn command(sh: &Shell, flags: &flags::Ci) -> Result {
    steps::run(sh, &select(flags.step.as_deref(), flags.long)?, flags.keep_going)
}

fn select(only: Option<&str>, long: bool) -> Result<Vec<&'static Step>> {
    let all = || STEPS.iter().chain(LONG);
    let Some(only) = only else {
        return Ok(all().take(if long { usize::MAX } else { STEPS.len() }).collect());
    };
    let found: Vec<_> = all().filter(|step| step.name == only).collect();
    if found.is_empty() {
        let names: Vec<_> = all().map(|step| step.name).collect();
        return Err(Failure::usage(format!("no step `{only}`; the steps are {}", names.join(", "))));
    }
    Ok(found)
}

fn passed(result: Result) -> Result<Outcome> {
    result.map(|()| Outcome::Passed)
}

fn workspace(sh: &Shell) -> Result<String> {
    Ok(format!("--workspace --features {}", features(&metadata(sh)?)))
}

fn libraries() -> impl Iterator<Item = &'static str> {
    LIBRARIES.into_iter().flat_map(|library| ["-p", library])
}

fn fmt(sh: &Shell) -> Result<Outcome> {
    run(cmd!(sh, "cargo fmt --all --check"))?;
    // The fuzz targets are a workspace of their own.
    passed(run(cmd!(sh, "cargo fmt --manifest-path timer-core/fuzz/Cargo.toml --check")))
}

fn clippy(sh: &Shell) -> Result<Outcome> {
    let (all, libraries) = (workspace(sh)?, libraries());
    let all = all.split(' ');
    run(cmd!(sh, "cargo clippy {all...} --all-targets -- -D warnings"))?;
    // Without the tests: what they ask for would switch features on.
    passed(run(cmd!(sh, "cargo clippy {libraries...} --no-default-features --lib -- -D warnings")))
}

/// A criterion benchmark that is run as a test does each operation once.
fn test(sh: &Shell) -> Result<Outcome> {
    passed(test_line(sh, &format!("{} --tests --benches", workspace(sh)?), true, &[]))
}

/// All three at once: each is built against the packages of the others, not against what a registry has.
fn package(sh: &Shell) -> Result<Outcome> {
    let libraries = libraries();
    // On a server the tree is a clean checkout; here one packages while one works.
    let dirty = std::env::var_os("CI").is_none().then_some("--allow-dirty");
    passed(run(cmd!(sh, "cargo package {libraries...} {dirty...}")))
}

fn release(sh: &Shell) -> Result<Outcome> {
    passed(test_line(sh, &format!("{} --release --tests --exclude xtask", workspace(sh)?), true, &[]))
}

fn no_features(sh: &Shell) -> Result<Outcome> {
    passed(LIBRARIES.iter().try_for_each(|library| test_line(sh, &without_features(library), true, &[])))
}

fn peers(sh: &Shell) -> Result<Outcome> {
    run(cmd!(sh, "cargo clippy -p timer-bench --all-targets --features peers -- -D warnings"))?;
    passed(test_line(sh, "-p timer-bench --features peers --tests", true, &[]))
}

/// Workload, what is counted.
const COUNTED: &[(&str, &str)] = &[("W1", "schedule"), ("W2", "schedule + cancel"), ("W9", "reset")];
const FEW: u64 = 20_000;
const MANY: u64 = 60_000;

/// Instructions of an operation: those of many less those of few, so that what is done once does not count.
fn instructions(sh: &Shell) -> Result<Outcome> {
    if let Some(why) = sanitize::no_valgrind() {
        return Ok(Outcome::Skipped(why));
    }
    run(cmd!(sh, "cargo build --release -p timer-bench --bin workload"))?;
    let program = target_dir().join("release/workload");
    for (workload, what) in COUNTED {
        let count = |n: u64| -> Result<u64> {
            let callgrind =
                cmd!(sh, "valgrind --tool=callgrind --callgrind-out-file=/dev/null {program} timer {workload}");
            let n = format!("n={n}");
            let told = callgrind.args([&n, "threads=1", "standing=0"]).quiet().ignore_stdout().read_stderr()?;
            collected(&told).ok_or_else(|| Failure::new(format!("callgrind tells no count:\n{told}")))
        };
        let each = count(MANY)?.saturating_sub(count(FEW)?) / (MANY - FEW);
        println!("{workload:<4} {what:<20} {each:>6} instructions");
    }
    Ok(Outcome::Passed)
}

/// The number in `==7== Collected : 123`.
fn collected(told: &str) -> Option<u64> {
    told.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::{LONG, STEPS, collected, select};

    #[test]
    fn the_long_run_has_every_step_and_one_can_be_chosen() {
        assert_eq!(select(None, false).unwrap().len(), STEPS.len());
        assert_eq!(select(None, true).unwrap().len(), STEPS.len() + LONG.len());
        assert_eq!(select(Some("fuzz"), false).unwrap()[0].name, "fuzz");
        let Err(failure) = select(Some("fnt"), false) else { panic!("there is no such step") };
        assert!(failure.code == 2 && STEPS.iter().chain(LONG).all(|step| failure.what.contains(step.name)));
    }

    #[test]
    fn the_count_is_found() {
        assert_eq!(collected("==7== Events    : Ir\n==7== Collected : 123\n"), Some(123));
        assert_eq!(collected("==7== Command: workload\n"), None);
    }
}
