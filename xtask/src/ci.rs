//! `cargo xtask ci`, which runs the checks that a change must pass.
//!
//! A server runs this command alone, so a failure there can be repeated here. The everyday steps
//! share one profile, one selection of packages and one set of features. Cargo therefore compiles
//! each crate once for the lints, tests, doctests and the documentation. A step that needs other
//! features belongs to `--long`, and so do features whose dependencies take long to compile. The
//! tests also run the demo and the bench's workloads.
//!
//! An unoptimized test has a size at which it finds what it is for. `test-release` runs it at full
//! size.
//!
//! There are two rows of steps, because many steps wait or use one core. In `--long` the steps that
//! measure run alone at the end.

use xshell::{Shell, cmd};

use crate::cargo::cargo;
use crate::chores::{WITHOUT_FEATURES, browser, docs, metrics_e2e, stress};
use crate::crates::{each_feature, is_heavy, library_features, metadata};
use crate::run::{Failure, Result, flags_and, log_to, need, run};
use crate::steps::{self, Phase, Step, Work::Call, Work::Cargo};
use crate::{
    api, attempts, first_lines, flags, fuzz, loom, lowest, mutants, package, platforms, postgres, recipes, resolve,
    rustdoc, sanitize, tidy,
};

/// The everyday steps, the quick ones first.
const STEPS: &[Step] = &[
    // The fuzz targets, the drivers and the recipes are other workspaces.
    (
        "fmt",
        Cargo(&[
            "fmt --all --check",
            "fmt --manifest-path timer-core/fuzz/Cargo.toml --check",
            "fmt --manifest-path timer-durable-postgres/drivers/Cargo.toml --check",
            "fmt --manifest-path examples/recipes/Cargo.toml --check",
        ]),
    ),
    // The tests contain this step too, but here it reports before anything is compiled.
    ("tidy", Call(tidy::command)),
    // Needs the index of the registry and compiles nothing.
    ("resolve", Call(resolve::command)),
    ("clippy", Call(attempts::lint)),
    ("test", Call(attempts::test_twice)),
    ("doctest", Call(rustdoc::test)),
    ("system-calls", Call(platforms::system_calls)),
];

/// The everyday steps that run beside the others. Many tests mostly wait.
const SECOND_ROW: &[Step] = &[
    // The cfg makes another crate of timer-core, and a model takes millions of steps. Therefore
    // this build is optimized and has another folder.
    ("loom", Call(|sh| loom::explore(sh, "", loom::PREEMPTIONS))),
    ("test-servers", Call(attempts::servers_twice)),
];

/// The CPU seconds of the everyday steps from an empty target folder, with a tenth to spare.
const BUDGET: f64 = 1_000.0;

/// The steps that `--long` adds.
const LONG: &[Step] = &[
    // Without debug assertions and at full size, such as the million timeouts and the ten years.
    ("test-release", Cargo(&["test --no-fail-fast {all} --release --tests --exclude xtask"])),
    ("clippy-features", Call(clippy_features)),
    ("test-features", Cargo(&WITHOUT_FEATURES)),
    // Without the tests, whose features the packages must not need.
    ("package", Call(package::command)),
    // Both compile everything again, on another compiler.
    ("msrv", Call(msrv)),
    ("docs-rs", Call(docs_rs)),
    // Compiles the old versions, which only this step uses.
    ("lowest", Call(lowest::command)),
    ("resolve-check", Call(resolve::check)),
    ("first-lines", Call(first_lines::command)),
    ("loom-deeper", Call(|sh| loom::explore(sh, "", loom::MORE_PREEMPTIONS))),
    // The features that take long to compile, and the private pages of the programs.
    ("heavy", Cargo(&["clippy {heavy} --all-targets -- -D warnings", "test --no-fail-fast {heavy} --tests --benches"])),
    ("docs", Call(|sh| docs(sh, ""))),
    // Simulators take long to compile.
    ("recipes", Call(recipes::command)),
    ("musl", Call(platforms::musl)),
    ("i686", Call(platforms::i686)),
    ("aarch64", Call(platforms::aarch64)),
    ("workflows", Call(platforms::workflows)),
    sanitize::ASAN,
    sanitize::TSAN,
    sanitize::MEMCHECK,
    sanitize::MIRI,
    ("api", Call(|sh| api::command(sh, &flags::Api { bless: false }))),
    // Not cargo-mutants, which takes hours by itself (`cargo xtask mutants --plain`).
    ("mutants", Call(|sh| mutants::listed(sh, ""))),
    ("metrics-e2e", Call(metrics_e2e)),
    ("browser", Call(browser)),
];

/// Steps of `--long` that wait for servers and clocks, or that end after a fixed time.
const WAITING: &[Step] = &[
    ("durable", Call(durable)),
    ("drivers", Call(drivers)),
    ("pgbouncer", Call(pgbouncer)),
    ("postgres-versions", Call(postgres::versions)),
    ("postgres-upgrade", Call(postgres::upgrade)),
    ("stress", Call(|sh| stress(sh, &LONG_STRESS))),
    ("fuzz", Call(|_| fuzz::run_all(&EVERY_TARGET))),
];

/// Steps of `--long` that measure.
const ALONE: &[Step] = &[("durable-long-run", Call(durable_long_run)), ("instructions", Call(instructions))];

/// Finds a test that needs a feature without asking for it.
const CLIPPY_DURABLE_TESTS: &str = "clippy -p timer-durable --no-default-features --tests -- -D warnings";

/// The feature whose dependency needs a newer compiler than the libraries.
const NEEDS_NEWER_COMPILER: &str = "timer-durable-postgres/sqlx";

/// `rust-version` of the libraries.
const MSRV: &str = "1.85";

const LONG_STRESS: flags::Stress = flags::Stress { minutes: Some(10.0), seed: None, round: None };
const EVERY_TARGET: flags::Fuzz = flags::Fuzz { target: None, minutes: Some(30), jobs: None, address: false };

pub(crate) fn command(flags: &flags::Ci) -> Result {
    if let Some(path) = &flags.log {
        log_to(path)?;
    }
    // One failure in a run of hours must not hide the results of the other steps.
    let max_failures = if flags.keep_going || flags.long { usize::MAX } else { 1 };
    let phases = match &flags.step {
        Some(name) => vec![Phase { steps: vec![find(name)?], ..Phase::default() }],
        None if flags.long => long(),
        None => vec![Phase { steps: STEPS.to_vec(), second_row: SECOND_ROW.to_vec() }],
    };
    let budget = if flags.long || flags.step.is_some() { f64::INFINITY } else { BUDGET };
    steps::run(&phases, max_failures, budget)
}

fn long() -> Vec<Phase> {
    let mut first = Phase { steps: [STEPS, LONG].concat(), second_row: [SECOND_ROW, WAITING].concat() };
    // Nothing has a second attempt in hours of checks, which look for rare failures too.
    for (name, work) in first.steps.iter_mut().chain(&mut first.second_row) {
        match *name {
            "test" => *work = Call(attempts::test),
            "test-servers" => *work = Call(attempts::servers),
            _ => {}
        }
    }
    vec![first, Phase { steps: ALONE.to_vec(), ..Phase::default() }]
}

fn all_steps() -> Vec<Step> {
    long().into_iter().flat_map(|phase| [phase.steps, phase.second_row]).flatten().collect()
}

fn find(step: &str) -> Result<Step> {
    let all = all_steps();
    let names = all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let found = all.into_iter().find(|(name, _)| *name == step);
    found.ok_or_else(|| Failure::usage(format!("no such step; there are {names}")))
}

/// Lints each library with each of its features alone.
fn clippy_features(sh: &Shell) -> Result {
    let lines = each_feature(&metadata(sh)?, |feature| !is_heavy(feature));
    cargo(sh, &lines.iter().map(String::as_str).chain([CLIPPY_DURABLE_TESTS]).collect::<Vec<_>>())
}

/// Builds the libraries on the oldest compiler that they support.
fn msrv(sh: &Shell) -> Result {
    need(&format!("rustup run {MSRV} cargo --version"), &format!("Rust {MSRV} (rustup toolchain install {MSRV})"))?;
    sh.set_var("RUSTUP_TOOLCHAIN", MSRV);
    let mut features = library_features(&metadata(sh)?);
    features.retain(|feature| feature != NEEDS_NEWER_COMPILER);
    features.push("timer-metrics/protobuf".to_owned());
    cargo(sh, &[&format!("check {{libraries}} --lib --features {}", features.join(","))])
}

/// Builds the documentation as docs.rs does, with the features that items need.
fn docs_rs(sh: &Shell) -> Result {
    need("rustup run nightly rustdoc --version", "nightly compiler (rustup toolchain install nightly)")?;
    sh.set_var("RUSTUP_TOOLCHAIN", "nightly");
    sh.set_var("RUSTDOCFLAGS", flags_and("RUSTDOCFLAGS", "--cfg docsrs -D warnings"));
    cargo(sh, &["doc {libraries} --all-features --no-deps --target-dir target/docs-rs"])
}

/// Explores every configuration of the durable protocol, and kills programs with durable timeouts
/// 2,000 times on each store.
fn durable(sh: &Shell) -> Result {
    sh.set_var("TIMER_MODEL_LONG", "1");
    sh.set_var("TIMER_LEDGER_KILLS", "2000");
    // With the features of the step `test`, whose programs are used again.
    cargo(
        sh,
        &[
            "test {linted} --test model -- mutant every_configuration",
            "test {linted} --test ledger --test ledger_postgres",
            "test {linted} --test sqlite -- ledger",
        ],
    )
}

/// Kills programs that schedule and end timeouts in transactions of each driver of PostgreSQL.
fn drivers(sh: &Shell) -> Result {
    need("pkg-config --exists libpq", "client library of PostgreSQL (apt-get install libpq-dev pkg-config)")?;
    sh.set_var("TIMER_LEDGER_KILLS", "200");
    let lines = each_feature(&metadata(sh)?, is_heavy);
    let tests = "test --no-fail-fast --manifest-path timer-durable-postgres/drivers/Cargo.toml";
    cargo(sh, &lines.iter().map(String::as_str).chain([tests]).collect::<Vec<_>>())
}

/// Runs the store behind PgBouncer in transaction mode.
fn pgbouncer(sh: &Shell) -> Result {
    if !sh.path_exists("/usr/sbin/pgbouncer") && sh.var_os("TIMER_PGBOUNCER").is_none() {
        return Err(Failure::skipped("PgBouncer (apt-get install pgbouncer)"));
    }
    cargo(sh, &["test {linted} --test postgres -- --ignored pgbouncer"])
}

/// Runs 10,000 durable timeouts a second for ten minutes on PostgreSQL. Fails if the lag at 99 % is
/// above 5 ms, or if dead rows or the size of the database grow all the time.
fn durable_long_run(sh: &Shell) -> Result {
    let is_installed = sh.path_exists("/usr/lib/postgresql") || sh.var_os("TIMER_POSTGRES_BIN").is_some();
    if !is_installed {
        return Err(Failure::skipped("PostgreSQL (apt-get install postgresql)"));
    }
    cargo(sh, &["run --release -p timer-bench --features durable --bin workload -- timer durable-soak"])
}

/// Counts instructions. The bench skips this without the two programs, and `ci` has to report that.
fn instructions(sh: &Shell) -> Result {
    need("valgrind --version", "valgrind (apt-get install valgrind)")?;
    need("objdump --version", "objdump (apt-get install binutils)")?;
    run(cmd!(sh, "cargo run --quiet --release -p timer-bench --bin workload -- timer instructions"))
}

#[cfg(test)]
mod tests {
    use super::{MSRV, all_steps, find};
    use crate::crates::{LIBRARIES, metadata};
    use crate::run::shell;

    #[test]
    fn the_libraries_support_one_compiler() {
        let metadata = metadata(&shell().unwrap()).unwrap();
        for package in metadata["packages"].as_array().unwrap() {
            let name = package["name"].as_str().unwrap();
            assert!(!LIBRARIES.contains(&name) || package["rust_version"] == MSRV, "{name}");
        }
    }

    #[test]
    fn each_step_can_be_chosen() {
        assert!(all_steps().iter().all(|(name, _)| find(name).is_ok_and(|(found, _)| found == *name)));
        let Err(failure) = find("fnt") else { panic!("no such step") };
        assert!(
            failure.code == 2 && failure.message.contains("fmt, tidy, ") && failure.message.contains(", instructions")
        );
    }
}
