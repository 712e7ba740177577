//! `cargo xtask help`: the one list of commands. A test compares it with the arms of `main.rs`.

use crate::args::Args;
use crate::cargo::{Failure, USAGE};

/// Name, arguments, what it does.
const COMMANDS: &[(&str, &str, &str)] = &[
    (
        "bench",
        "[W1,W2..] [--peers A,B] [--quick] [--save NAME] [--baseline NAME] | --criterion [-- ARGS]",
        "the workloads side by side with other timers, or the benchmarks of single operations; ARGS go to those",
    ),
    ("ci", "[--step NAME] [--keep-going]", "everything a change must pass, or one step of it"),
    (
        "demo",
        "[-- ARGS]",
        "replays half a day's log as sessions that time out, in half a minute; with metrics while it runs and a page at the end",
    ),
    ("docs", "[--open]", "builds the documentation, warnings denied"),
    (
        "fuzz",
        "[TARGET] [--minutes N] [--jobs N] [--address]",
        "arbitrary operations on the wheels and on the timer against their models, N minutes each (1); needs nightly and cargo-fuzz",
    ),
    ("help", "", "prints this list"),
    (
        "loom",
        "[FILTER] [--preemptions N] [--compile-only]",
        "checks the hand-overs between threads in every order that N preemptions allow (2)",
    ),
    (
        "metrics-e2e",
        "",
        "a real Prometheus scrapes the demo, and both are compared; promtool judges the rules (skipped without them)",
    ),
    (
        "sanitize",
        "[--asan] [--tsan] [--valgrind] [--helgrind]",
        "the tests under sanitizers and valgrind, those that are named or all; what cannot run here is skipped",
    ),
    (
        "stress",
        "[--minutes N] [--seed S [--round R]] | --ten-years [--seed S]",
        "storms upon the timer for N minutes (1) with a ledger that must balance, or one round of them again and again; \
         or ten years of virtual time with a million timeouts",
    ),
    (
        "test",
        "[--keep-going] [-- ARGS]",
        "all features, no default features, doctests, release; ARGS go to the test programs",
    ),
    ("tidy", "", "checks the rules of the architecture on the source text"),
];

pub(crate) fn command(args: Args) -> Result<(), Failure> {
    args.done()?;
    print!("{}", text());
    Ok(())
}

/// The failure for a first word that is no command.
pub(crate) fn unknown(word: &str) -> Failure {
    let what = if word.is_empty() {
        format!("no command given\n\n{}", text())
    } else {
        format!("no command `{word}`\n\n{}", text())
    };
    Failure { code: USAGE, what }
}

fn text() -> String {
    let mut text = String::from("cargo xtask COMMAND\n\n");
    for (name, arguments, what) in COMMANDS {
        text += &format!("  {}\n      {what}\n", format!("{name} {arguments}").trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{COMMANDS, unknown};

    /// The first pattern of every arm in `source` that matches on a string.
    fn arms(source: &str) -> Vec<&str> {
        let arms = source.lines().map(str::trim).filter(|line| line.contains("=>"));
        arms.filter_map(|line| line.strip_prefix('"')?.split('"').next()).collect()
    }

    #[test]
    fn every_command_is_listed_and_every_listed_one_exists() {
        let mut arms = arms(include_str!("main.rs"));
        arms.sort_unstable();
        let listed: Vec<&str> = COMMANDS.iter().map(|(name, ..)| *name).collect();
        assert_eq!(listed, arms);
    }

    #[test]
    fn an_unknown_command_is_named_and_the_list_is_shown() {
        let failure = unknown("tset");
        assert_eq!(failure.code, 2);
        assert!(failure.what.contains("`tset`") && failure.what.contains("  test "));
    }
}
