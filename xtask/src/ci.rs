//! `cargo xtask ci`: everything a change must pass, in order, with the time of each step.
//!
//! What runs on a server is this and nothing else, so it can be run here too. The everyday steps share one profile and one
//! set of features, so that each crate is compiled once for the tests, the benches and the doctests; what is built twice all
//! the same says why. The demo and the bench's workloads are programs that the tests run. The peers are left to `--long`.

use xshell::{Shell, cmd};

use crate::chores::{docs, metrics_e2e, stress};
use crate::run::{Failure, Result, cargo, flags_and, need, run, target_dir};
use crate::steps::{self, Step};
use crate::{flags, fuzz, loom, sanitize, tidy};

/// Quick ones first.
const STEPS: &[Step] = &[
    // The fuzz targets are a workspace of their own.
    ("fmt", |sh| cargo(sh, &["fmt --all --check", "fmt --manifest-path timer-core/fuzz/Cargo.toml --check"])),
    // A test as well; here it speaks before anything is compiled.
    ("tidy", |sh| tidy::command(sh)),
    ("clippy", |sh| cargo(sh, &["clippy {all} --all-targets -- -D warnings", CLIPPY_WITHOUT_FEATURES])),
    // A criterion benchmark that is run as a test does each operation once.
    ("test", |sh| cargo(sh, &["test --no-fail-fast {all} --tests --benches"])),
    ("doctest", |sh| cargo(sh, &["test --no-fail-fast {all} --doc"])),
    ("docs", |sh| docs(sh, false)),
    // The cfg makes another crate of timer-core, and a model is millions of steps: optimised, in a folder of its own.
    ("loom", |sh| loom::explore(sh, "", loom::PREEMPTIONS)),
    // Builds the libraries from what a registry would get: a file that is not packed is missed nowhere else. All at once: each
    // is built against the packages of the others.
    ("package", |sh| cargo(sh, &["package {libraries} --allow-dirty"])),
];

/// After the others, with `--long`.
const LONG: &[Step] = &[
    // Without assertions, and at the full sizes: the million timeouts, the ten years.
    ("test-release", |sh| cargo(sh, &["test --no-fail-fast {all} --release --tests --exclude xtask"])),
    ("test-features", |sh| cargo(sh, &WITHOUT_FEATURES)),
    ("loom-deeper", |sh| loom::explore(sh, "", loom::MORE_PREEMPTIONS)),
    ("peers", |sh| cargo(sh, &["clippy {peers} --all-targets -- -D warnings", "test --no-fail-fast {peers} --tests"])),
    ("stress", |sh| stress(sh, &STORM)),
    ("fuzz", |sh| fuzz::run_all(sh, &EVERY_TARGET)),
    sanitize::ASAN,
    sanitize::TSAN,
    sanitize::MEMCHECK,
    ("metrics-e2e", metrics_e2e),
    ("instructions", instructions),
];

/// The libraries alone: what their tests ask for would switch features on.
const CLIPPY_WITHOUT_FEATURES: &str = "clippy {libraries} --no-default-features --lib -- -D warnings";

/// A line for each: together, what one asks for would be on in all.
pub(crate) const WITHOUT_FEATURES: [&str; 3] = [
    "test -p timer-executor --no-default-features --tests",
    "test -p timer-core --no-default-features --tests",
    "test -p timer-metrics --no-default-features --tests",
];

const STORM: flags::Stress = flags::Stress { minutes: Some(2.0), seed: None, round: None, ten_years: false };
const EVERY_TARGET: flags::Fuzz = flags::Fuzz { target: None, minutes: Some(1), jobs: None, address: false };

pub(crate) fn command(flags: &flags::Ci) -> Result {
    steps::run(&select(flags.step.as_deref(), flags.long)?, flags.keep_going)
}

fn select(only: Option<&str>, long: bool) -> Result<Vec<Step>> {
    let all = || STEPS.iter().chain(if long || only.is_some() { LONG } else { &[] });
    let found: Vec<_> = all().filter(|(name, _)| only.is_none_or(|only| only == *name)).copied().collect();
    if found.is_empty() {
        let names: Vec<_> = all().map(|(name, _)| *name).collect();
        return Err(Failure::usage(format!("no such step; there are {}", names.join(", "))));
    }
    Ok(found)
}

/// Instructions of an operation: those of many less those of few, so that what is done once does not count.
fn instructions(sh: &Shell) -> Result {
    need("valgrind --version", "valgrind (apt-get install valgrind)")?;
    // Without rustix's own system calls: valgrind does not map the page that they look for. In a folder of its own.
    sh.set_var("RUSTFLAGS", flags_and("RUSTFLAGS", "--cfg rustix_use_libc"));
    let folder = target_dir().join("callgrind");
    run(cmd!(sh, "cargo build --release -p timer-bench --bin workload --target-dir {folder}"))?;
    let program = folder.join("release/workload");
    let (few, many) = (20_000, 60_000);
    for (workload, what) in [("W2", "schedule + cancel"), ("W9", "reset")] {
        let count = |n: u64| -> Result<u64> {
            let (out, n) = ("--callgrind-out-file=/dev/null", format!("n={n}"));
            let valgrind =
                cmd!(sh, "valgrind --tool=callgrind {out} {program} timer {workload} {n} threads=1 standing=0");
            let told = valgrind.quiet().ignore_stdout().read_stderr()?;
            // `==7== Collected : 123`
            let counted =
                told.split_once("Collected : ").and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
            counted.ok_or_else(|| Failure::new(format!("callgrind tells no count:\n{told}")))
        };
        let each = count(many)?.saturating_sub(count(few)?) / (many - few);
        println!("{workload:<4} {what:<20} {each:>6} instructions");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{LONG, STEPS, select};

    #[test]
    fn the_long_run_has_every_step_and_one_can_be_chosen() {
        let count = |only, long| select(only, long).map(|steps| steps.len());
        assert_eq!(count(None, false).unwrap(), STEPS.len());
        assert_eq!(count(None, true).unwrap(), STEPS.len() + LONG.len());
        assert_eq!(count(Some("fuzz"), false).unwrap(), 1);
        let failure = count(Some("fnt"), false).unwrap_err();
        assert!(failure.code == 2 && failure.what.contains("fmt, tidy, ") && failure.what.contains(", instructions"));
    }
}
