//! The command line: what stands here is parsed, and is what `cargo xtask help` prints.

#![allow(unreachable_pub, reason = "the macro makes all it generates public")]

use std::ffi::OsString;

xflags::xflags! {
    /// The project's chores.
    cmd xtask {
        /// Compares the public API with the text kept in docs/api.
        cmd api {
            /// Replaces the kept text.
            optional --bless
        }
        /// The workloads side by side with other timers, or the benchmarks of single operations.
        cmd bench {
            /// Workloads, as W1,W2; with --criterion what is for the benchmarks, after `--`.
            repeated words: String
            optional --peers names: String
            optional --quick
            optional --save name: String
            optional --baseline name: String
            optional --criterion
        }
        /// Everything a change must pass, with the time of each step.
        cmd ci {
            /// And what takes longer: release, stress, fuzz, sanitizers, more of loom, peers,
            /// instruction counts.
            optional --long
            /// One step of either.
            optional --step name: String
            optional --keep-going
        }
        /// Replays half a day's log as sessions that time out, in half a minute, with metrics and a
        /// page at the end.
        cmd demo {
            /// For the example, after `--`; `--virtual` also without.
            repeated args: String
        }
        /// Builds the documentation, warnings denied.
        cmd docs {
            optional --open
        }
        /// Arbitrary operations on the wheels and on the timer against their models; needs nightly
        /// and cargo-fuzz.
        cmd fuzz {
            optional target: String
            /// For each target (1).
            optional --minutes n: u32
            /// Processes at a time (the number of cores).
            optional --jobs n: usize
            optional --address
        }
        /// Shows the live page of timer-metrics in a headless Chromium. Skipped without Chromium
        /// and chromedriver.
        cmd browser {}
        /// Checks the hand-overs between threads in every order that so many preemptions allow (2).
        cmd loom {
            optional filter: String
            optional --preemptions n: u32
            optional --compile-only
        }
        /// A real Prometheus scrapes a timer, and both are compared; promtool judges the rules.
        /// Skipped without them.
        cmd metrics-e2e {}
        /// The tests under sanitizers and valgrind, those that are named or all; what cannot run
        /// here is skipped.
        cmd sanitize {
            optional --asan
            optional --tsan
            optional --valgrind
        }
        /// Storms upon the timer (for 1 minute) with a ledger that must balance; or ten years of
        /// virtual time with a million timeouts.
        cmd stress {
            optional --minutes n: f64
            /// Where to begin; decimal, or after 0x.
            optional --seed s: String
            optional --round r: u32
            optional --ten-years
        }
        /// All features, each library without any, doctests, release.
        cmd test {
            /// For the test programs, after `--`.
            repeated args: String
            optional --keep-going
        }
        /// Checks the rules of the architecture.
        cmd tidy {}
    }
}

/// Reads the words after `cargo xtask`. `--name=value` is two words, and `help` is the flag of that
/// name.
pub(crate) fn parse(words: impl Iterator<Item = OsString>) -> xflags::Result<Xtask> {
    let (mut split, mut ours, mut late) = (Vec::new(), true, None);
    for word in words {
        ours &= word != "--";
        match word.to_str().and_then(|word| word.split_once('=')) {
            Some((name, value)) if ours && name.starts_with("--") => split.extend([name.into(), value.into()]),
            _ if split.is_empty() && word == "help" => split.push("--help".into()),
            // A keyword, which xflags cannot have for a name: it goes behind the `--`.
            _ if ours && word == "--virtual" => late = Some(word),
            _ => split.push(word),
        }
    }
    split.extend(late.iter().filter(|_| ours).map(|_| "--".into()));
    split.extend(late);
    Xtask::from_vec(split)
}

#[cfg(test)]
mod tests {
    use super::{XtaskCmd, parse};

    fn words(line: &str) -> xflags::Result<XtaskCmd> {
        parse(line.split_whitespace().map(Into::into)).map(|flags| flags.subcommand)
    }

    #[test]
    fn every_command_is_there_and_in_the_help() {
        let help = words("help").unwrap_err();
        for name in "api bench browser ci demo docs fuzz loom metrics-e2e sanitize stress test tidy".split(' ') {
            assert!(words(name).is_ok() && help.to_string().contains(&format!("xtask {name}")), "{name}");
        }
        assert!(help.is_help() && words("tset").is_err() && words("").is_err() && words("tidy --loud").is_err());
    }

    #[test]
    fn values_after_equals_the_rest_after_two_dashes() {
        for line in ["ci --step=fmt --keep-going", "ci --keep-going --step fmt"] {
            assert!(matches!(words(line), Ok(XtaskCmd::Ci(ci)) if ci.keep_going && ci.step.as_deref() == Some("fmt")));
        }
        for line in ["demo --virtual", "demo --virtual -- --quiet", "demo -- --quiet --virtual"] {
            assert!(matches!(words(line), Ok(XtaskCmd::Demo(demo)) if demo.args.contains(&"--virtual".into())));
        }
        let Ok(XtaskCmd::Test(test)) = words("test --keep-going -- --nocapture -- --a=b") else { panic!() };
        assert!(test.keep_going && test.args == ["--nocapture", "--", "--a=b"]);
    }
}
