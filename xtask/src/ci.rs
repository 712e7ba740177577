//! `cargo xtask ci`: everything a change must pass, in order, one line and the time of each at the end.
//!
//! What runs on a server is this and nothing else, so it can be run here too.

use std::time::{Duration, Instant};

use crate::args::{Args, usage};
use crate::cargo::{Cargo, Failure};
use crate::test::LIBRARIES;
use crate::{bench, demo, docs, loom, test, tidy};

/// A step gets whether to keep going after a failure inside it.
struct Step {
    name: &'static str,
    run: fn(bool) -> Result<(), Failure>,
}

/// Quick ones first.
const STEPS: &[Step] = &[
    Step { name: "fmt", run: |_| fmt() },
    Step { name: "clippy", run: |_| clippy() },
    Step { name: "tidy", run: |_| tidy::run() },
    Step { name: "test", run: |keep_going| test::run(keep_going, &[]) },
    Step { name: "docs", run: |_| docs::run(false) },
    Step { name: "loom", run: |_| loom::all() },
    Step { name: "package", run: |_| package() },
    Step { name: "demo-smoke", run: |_| demo::smoke() },
    Step { name: "bench-smoke", run: |_| bench::smoke() },
];

pub(crate) fn command(mut args: Args) -> Result<(), Failure> {
    let keep_going = args.flag("--keep-going");
    let only = args.value("--step")?;
    args.done()?;
    let steps: Vec<&Step> = STEPS.iter().filter(|step| only.as_deref().is_none_or(|only| only == step.name)).collect();
    if steps.is_empty() {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        let only = only.unwrap_or_default();
        return Err(usage(format!("no step `{only}`; the steps are {}", names.join(", "))));
    }
    run(&steps, keep_going)
}

fn fmt() -> Result<(), Failure> {
    Cargo::new("fmt --all --check").run()?;
    // The fuzz targets are a workspace of their own.
    Cargo::new("fmt --manifest-path timer-core/fuzz/Cargo.toml --check").run()
}

struct Done {
    name: &'static str,
    time: Duration,
    failure: Option<Failure>,
}

fn run(steps: &[&Step], keep_going: bool) -> Result<(), Failure> {
    let mut done = Vec::new();
    for step in steps {
        eprintln!("\n== {}", step.name);
        let start = Instant::now();
        let failure = (step.run)(keep_going).err();
        let stop = failure.is_some() && !keep_going;
        if let Some(failure) = &failure {
            eprintln!("xtask: {}", failure.what);
        }
        done.push(Done { name: step.name, time: start.elapsed(), failure });
        if stop {
            break;
        }
    }
    print!("\n{}", summary(&done, &steps[done.len()..]));
    // The summary says which, and its count is to be the last line.
    match done.into_iter().find_map(|step| step.failure) {
        None => Ok(()),
        Some(first) => Err(Failure { code: first.code, what: String::new() }),
    }
}

/// One line for each step, and a last one in a form that a script can read.
fn summary(done: &[Done], not_run: &[&Step]) -> String {
    let mut text = String::new();
    for step in done {
        let verdict = if step.failure.is_some() { "FAILED" } else { "ok" };
        text += &format!("{:<14} {verdict:<8} {:>7.1} s\n", step.name, step.time.as_secs_f64());
    }
    for step in not_run {
        text += &format!("{:<14} not run\n", step.name);
    }
    let failed = done.iter().filter(|step| step.failure.is_some()).count();
    let total: Duration = done.iter().map(|step| step.time).sum();
    text += &format!("total          {:>16.1} s\n", total.as_secs_f64());
    text += &format!("{} passed, {failed} failed\n", done.len() - failed);
    text
}

fn clippy() -> Result<(), Failure> {
    let deny = ["-D".to_owned(), "warnings".to_owned()];
    Cargo::new("clippy --workspace --all-targets --all-features").rest(&deny).run()?;
    // Without the tests: what they ask for would switch features on.
    libraries("clippy --no-default-features --lib").rest(&deny).run()
}

/// All three at once: each is built against the packages of the others, not against what a registry has.
fn package() -> Result<(), Failure> {
    let package = libraries("package");
    // On a server the tree is a clean checkout; here one packages while one works.
    if std::env::var_os("CI").is_some() { package.run() } else { package.arg("--allow-dirty").run() }
}

fn libraries(line: &str) -> Cargo {
    LIBRARIES.iter().fold(Cargo::new(line), |cargo, library| cargo.arg("-p").arg(library))
}

#[cfg(test)]
mod tests {
    use super::{Failure, STEPS, Step, command, run};
    use crate::args::Args;

    const GOOD: Step = Step { name: "good", run: |_| Ok(()) };
    const BAD: Step = Step { name: "bad", run: |_| Err(Failure { code: 7, what: "broken".to_owned() }) };
    const UNREACHED: Step = Step { name: "unreached", run: |_| panic!("a step after the one that failed") };

    #[test]
    fn the_first_failure_stops_the_rest_and_gives_the_exit_code() {
        let failure = run(&[&GOOD, &BAD, &UNREACHED], false).unwrap_err();
        assert_eq!(failure.code, 7);
    }

    #[test]
    fn keep_going_runs_all_and_still_fails() {
        let failure = run(&[&BAD, &GOOD, &BAD], true).unwrap_err();
        assert_eq!(failure.code, 7);
        assert!(run(&[&GOOD, &GOOD], true).is_ok());
    }

    #[test]
    fn an_unknown_step_is_an_error_that_lists_the_steps() {
        let failure = command(Args::new(["--step", "fnt"].map(str::to_owned).into_iter())).unwrap_err();
        assert_eq!(failure.code, 2);
        assert!(STEPS.iter().all(|step| failure.what.contains(step.name)));
    }

    #[test]
    fn the_last_line_counts_the_steps() {
        let done = [("fmt", None), ("test", Some(Failure::new("broken")))];
        let done = done.map(|(name, failure)| super::Done { name, time: std::time::Duration::ZERO, failure });
        let text = super::summary(&done, &[&GOOD]);
        assert_eq!(text.lines().last(), Some("1 passed, 1 failed"));
        assert!(text.contains("good           not run"));
    }
}
