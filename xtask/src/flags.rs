//! The command line. The macro parses it, and `cargo xtask help` prints its comments.

#![allow(unreachable_pub, reason = "the macro makes everything it generates public")]

use std::ffi::OsString;
use std::path::PathBuf;

xflags::xflags! {
    /// The project's chores.
    cmd xtask {
        /// Compares the public API with the text kept in docs/api.
        cmd api {
            /// Replaces the kept text.
            optional --bless
        }
        /// Runs the workloads on this timer and on others.
        cmd bench {
            /// Runs these workloads, as pair,cancel.
            optional --only workloads: String
            /// Compares with these timers, as tokio,btree.
            optional --peers names: String
            optional --quick
            /// Compares with the results in a folder.
            optional --against folder: String
            /// Measures operations with a thousand to ten million pending instead.
            optional --growth
        }
        /// Runs the checks that a change must pass and prints the time of each step.
        cmd ci {
            /// Adds the long steps, among them release, features, stress, fuzz, sanitizers, deeper
            /// models, peers and instruction counts. A step that fails does not end the run.
            optional --long
            /// Runs one step of either list.
            optional --step name: String
            /// Keeps the output of the steps in a file.
            optional --log path: PathBuf
            optional --keep-going
        }
        /// Replays half a day's log as sessions that time out, in 20 s, with metrics and a report
        /// at the end.
        cmd demo {
            /// Arguments of the example after `--`; `--virtual` needs no `--`.
            repeated args: String
        }
        /// Builds the documentation and denies warnings.
        cmd docs {
            optional --open
        }
        /// Runs arbitrary operations on the wheels and the timer against their models. Needs
        /// nightly and cargo-fuzz.
        cmd fuzz {
            optional target: String
            /// Minutes for the targets, which run at the same time (1).
            optional --minutes n: u32
            /// Processes for each target (the cores shared among the targets, at least one).
            optional --jobs n: usize
            optional --address
        }
        /// Shows the page of timer-live in a headless Chromium. Skipped without Chromium
        /// and chromedriver.
        cmd browser {}
        /// Explores the interleavings of the models with a bounded number of preemptions (2).
        cmd loom {
            optional filter: String
            optional --preemptions n: u32
            optional --compile-only
        }
        /// Compares the metrics with a real Prometheus, and tests the alert rules with promtool.
        /// Skipped without them.
        cmd metrics-e2e {}
        /// Changes the code in a copy of the sources, one change of `xtask/mutants` at a time, and
        /// expects a test to fail. A change that survives is a failure. Without a filter, then runs
        /// cargo-mutants on the code without atomics, if it is installed.
        cmd mutants {
            /// A part of the titles or files of the list, or with --plain of the files.
            optional filter: String
            /// Runs cargo-mutants alone.
            optional --plain
            /// Ends cargo-mutants after so many minutes (240).
            optional --minutes n: u32
        }
        /// Checks what a release needs, packs and builds each crate, and prints the commands for a
        /// person. Publishes nothing.
        cmd release {
            optional --dry-run
        }
        /// Runs the tests under the named sanitizers, or under all of them, valgrind and Miri. A
        /// tool that is not installed is skipped.
        cmd sanitize {
            optional --asan
            optional --tsan
            optional --valgrind
            optional --miri
        }
        /// Runs threads that use timers at random (for 1 minute), each timeout of which must end
        /// once.
        cmd stress {
            optional --minutes n: f64
            /// The first seed, decimal or hexadecimal after 0x.
            optional --seed s: String
            optional --round r: u32
        }
        /// Checks the rules of the architecture.
        cmd tidy {}
    }
}

/// Parses the words after `cargo xtask`. `--name=value` counts as two words, and `help` as
/// `--help`.
pub(crate) fn parse(words: impl Iterator<Item = OsString>) -> xflags::Result<Xtask> {
    let mut split = Vec::new();
    let mut ours = true;
    let mut late = None;
    for word in words {
        ours &= word != "--";
        match word.to_str().and_then(|word| word.split_once('=')) {
            Some((name, value)) if ours && name.starts_with("--") => split.extend([name.into(), value.into()]),
            _ if split.is_empty() && word == "help" => split.push("--help".into()),
            // xflags cannot have a keyword as a name, so this option moves behind the `--`.
            _ if ours && word == "--virtual" => late = Some(word),
            _ => split.push(word),
        }
    }
    split.extend(late.iter().filter(|_| ours).map(|_| "--".into()));
    split.extend(late);
    Xtask::from_vec(split)
}

/// Ends the process with the help, or with an error that says what is allowed. `chore` is the first
/// word of the command line.
pub(crate) fn exit(error: xflags::Error, chore: Option<&str>) -> ! {
    let all = Xtask::from_vec(vec!["--help".into()]).err().map(|help| help.to_string()).unwrap_or_default();
    let chores = chores(&all);
    match chores.iter().find(|(name, _)| Some(*name) == chore) {
        Some((_, help)) if error.is_help() => {
            println!("{}", help.trim_end());
            std::process::exit(0);
        }
        Some((name, _)) => {
            eprintln!("xtask: {error}; see `cargo xtask {name} --help`");
            std::process::exit(2);
        }
        None if !error.is_help() => {
            let names: Vec<&str> = chores.iter().map(|(name, _)| *name).collect();
            let given = chore.map_or("no chore given".to_owned(), |name| format!("no chore `{name}`"));
            eprintln!("xtask: {given}; there are {}; see `cargo xtask help`", names.join(", "));
            std::process::exit(2);
        }
        _ => error.exit(),
    }
}

/// Returns the chores with their parts of the help.
fn chores(help: &str) -> Vec<(&str, &str)> {
    let parts = help.split("\n\nxtask ").skip(1);
    parts.map(|part| (part.lines().next().unwrap_or_default(), part)).collect()
}

#[cfg(test)]
mod tests {
    use super::{XtaskCmd, chores, parse};

    fn words(line: &str) -> xflags::Result<XtaskCmd> {
        parse(line.split_whitespace().map(Into::into)).map(|flags| flags.subcommand)
    }

    #[test]
    fn the_help_lists_every_command() {
        let help = words("help").unwrap_err();
        let names = "api bench ci demo docs fuzz browser loom metrics-e2e mutants release sanitize stress tidy";
        names.split(' ').for_each(|name| assert!(words(name).is_ok(), "{name}"));
        let help_text = help.to_string();
        let listed: Vec<&str> = chores(&help_text).iter().map(|(name, _)| *name).collect();
        assert_eq!(listed.join(" "), names);
        assert!(chores(&help_text)[7].1.contains("--preemptions"), "each chore has its part of the help");
        assert!(help.is_help() && words("tset").is_err() && words("").is_err() && words("tidy --loud").is_err());
    }

    #[test]
    fn values_follow_an_equals_sign_or_a_blank() {
        for line in ["ci --step=fmt --keep-going", "ci --keep-going --step fmt"] {
            assert!(matches!(words(line), Ok(XtaskCmd::Ci(ci)) if ci.keep_going && ci.step.as_deref() == Some("fmt")));
        }
        for line in ["demo --virtual", "demo --virtual -- --quiet", "demo -- --quiet --virtual"] {
            assert!(matches!(words(line), Ok(XtaskCmd::Demo(demo)) if demo.args.contains(&"--virtual".into())));
        }
        let Ok(XtaskCmd::Demo(demo)) = words("demo -- --quiet -- --a=b") else { panic!() };
        assert_eq!(demo.args, ["--quiet", "--", "--a=b"]);
    }
}
