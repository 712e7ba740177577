//! The commands that are little more than command lines of cargo.

use std::time::{SystemTime, UNIX_EPOCH};

use xshell::{Shell, cmd};

use crate::crates::{LIBRARIES, features, metadata};
use crate::flags;
use crate::run::{Failure, Result, flags as variable, has, run, target_dir};
use crate::steps::{Outcome, Step};

/// The timers that are built without the feature `peers`, which brings the crates of the others.
const WITHOUT_PEERS: &[&str] = &["timer", "timer-hashed", "btree", "heap"];

pub(crate) fn bench(sh: &Shell, flags: flags::Bench) -> Result {
    let words = &flags.words;
    if flags.criterion {
        return run(cmd!(sh, "cargo bench -p timer-bench -- {words...}"));
    }
    if words.len() > 1 {
        return Err(Failure::usage(format!("unexpected `{}`: workloads are written as W1,W2", words[1])));
    }
    let needed = |names: &String| names.split(',').any(|name| !WITHOUT_PEERS.contains(&name));
    let peers: &[&str] = if flags.peers.as_ref().is_none_or(needed) { &["--features", "peers"] } else { &[] };
    let mut args: Vec<String> = flags.quick.then(|| "--quick".to_owned()).into_iter().collect();
    for (name, value) in [("--peers", flags.peers), ("--save", flags.save), ("--baseline", flags.baseline)] {
        args.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
    }
    // All at once: the report starts the others.
    run(cmd!(sh, "cargo build --release -p timer-bench --bins {peers...}"))?;
    run(cmd!(sh, "cargo run --quiet --release -p timer-bench --bin bench-report {peers...} -- {args...} {words...}"))
}

/// The log's 46,321 s and the idle tail of 1,800 s take 30 s at this speed; metrics are served on whatever port is free.
pub(crate) fn demo(sh: &Shell, args: &[String]) -> Result {
    let page = target_dir().join("sessions.html").display().to_string();
    let defaults = demo_defaults(args, &page);
    run(cmd!(sh, "cargo run --release -p examples --bin sessions -- {defaults...} {args...}"))
}

/// A default gives way to the caller's own choice; virtual time has no speed, and is over before one can look.
fn demo_defaults<'a>(args: &[String], page: &'a str) -> Vec<&'a str> {
    let given = |name: &str| args.iter().any(|arg| arg == name || arg.starts_with(&format!("{name}=")));
    let defaults = [("--speed", "1600"), ("--executor", "rayon"), ("--metrics", "127.0.0.1:0"), ("--report", page)];
    let wanted = |name: &str| !given(name) && (name == "--report" || !given("--virtual"));
    defaults.into_iter().filter(|(name, _)| wanted(name)).flat_map(<[_; 2]>::from).collect()
}

/// Once with the private items, for the links in their pages, and once without, for links from a public page to a private
/// one; the public pages are the ones that stay.
pub(crate) fn docs(sh: &Shell, open: bool) -> Result {
    let (features, (name, value)) = (features(&metadata(sh)?), variable("RUSTDOCFLAGS", "-D warnings"));
    let doc = || cmd!(sh, "cargo doc --workspace --no-deps --features {features}").env(&name, &value);
    run(doc().arg("--document-private-items"))?;
    run(doc().args(open.then_some("--open")))
}

/// What needs the programs is called by their name; the test that cannot do without them is ignored elsewhere.
pub(crate) const METRICS_E2E: Step = Step { name: "metrics-e2e", run: metrics_e2e };

fn metrics_e2e(sh: &Shell) -> Result<Outcome> {
    for program in ["prometheus", "promtool"] {
        if !has(program, &["--version"]) {
            let why =
                format!("no `{program}` here; it comes with the package `prometheus` (apt-get install prometheus)");
            return Ok(Outcome::Skipped(why));
        }
    }
    run(cmd!(sh, "cargo test -p timer-metrics --all-features --tests -- --include-ignored promtool --nocapture")
        .env("RUST_BACKTRACE", "0"))?;
    Ok(Outcome::Passed)
}

/// The storms are a test; this says where to begin and for how long. The seed is printed before anything else, so that every
/// run can be had again.
pub(crate) fn stress(sh: &Shell, flags: &flags::Stress) -> Result {
    let minutes = flags.minutes.unwrap_or(1.0);
    if flags.ten_years && (flags.minutes.is_some() || flags.round.is_some()) {
        return Err(Failure::usage("`--ten-years` takes as long as it takes, and `--seed` alone"));
    } else if flags.round.is_some() && flags.seed.is_none() {
        return Err(Failure::usage("`--round` is one of a seed: give `--seed` as well"));
    } else if minutes <= 0.0 || !minutes.is_finite() {
        return Err(Failure::usage(format!("`--minutes {minutes}`: a number above 0 is wanted")));
    }
    let seed = format!("{:#x}", flags.seed.as_deref().map_or_else(seed_from_the_clock, seed_of)?);
    let name = if flags.ten_years { "ten_years" } else { "stress" };
    let test =
        cmd!(sh, "cargo test --release -p timer-core --test {name} -- --nocapture").env("TIMER_STRESS_SEED", seed);
    if flags.ten_years {
        return run(test);
    }
    let test = test.env("TIMER_STRESS_MINUTES", minutes.to_string());
    let test = flags.round.iter().fold(test, |test, round| test.env("TIMER_STRESS_ROUND", round.to_string()));
    run(test.args(["--ignored", "long::a_long_storm", "--exact", "--quiet", "--test-threads", "1"]))
}

/// 32 bits are short enough to be typed again; the lower half of the clock changes fastest.
fn seed_from_the_clock() -> Result<u64> {
    Ok((SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64 >> 10) & 0xFFFF_FFFF)
}

fn seed_of(word: &str) -> Result<u64> {
    let seed = word.strip_prefix("0x").map_or_else(|| word.parse(), |digits| u64::from_str_radix(digits, 16));
    seed.map_err(|_| Failure::usage(format!("`--seed {word}`: a number is wanted, decimal or after 0x")))
}

/// The ways the tests are built. A line for each library without features: together, what one asks for would be on in all.
pub(crate) fn test(sh: &Shell, flags: &flags::Test) -> Result {
    let lines = ["--tests", "--doc", "--release --tests --exclude xtask"]
        .map(|line| format!("--workspace --all-features {line}"));
    let mut result = Ok(());
    for line in lines.into_iter().chain(LIBRARIES.map(without_features)) {
        result = result.and(test_line(sh, &line, flags.keep_going, &flags.args));
        if result.is_err() && !flags.keep_going {
            break;
        }
    }
    result
}

pub(crate) fn without_features(library: &str) -> String {
    format!("-p {library} --no-default-features --tests")
}

pub(crate) fn test_line(sh: &Shell, line: &str, keep_going: bool, args: &[String]) -> Result {
    let (line, going) = (line.split(' '), keep_going.then_some("--no-fail-fast"));
    run(cmd!(sh, "cargo test {line...} {going...} -- {args...}"))
}

#[cfg(test)]
mod tests {
    use super::{bench, demo_defaults, seed_of, stress};
    use crate::flags::{XtaskCmd, parse};
    use crate::run::{root, shell};

    #[test]
    fn defaults_give_way_to_what_is_asked_for() {
        let line =
            |args: &[&str]| demo_defaults(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>(), "a").join(" ");
        assert_eq!(line(&[]), "--speed 1600 --executor rayon --metrics 127.0.0.1:0 --report a");
        assert_eq!(line(&["--speed", "9", "--executor=immediate"]), "--metrics 127.0.0.1:0 --report a");
        assert_eq!(
            (line(&["--virtual"]), line(&["--virtual", "--report=b"])),
            ("--report a".to_owned(), String::new())
        );
    }

    #[test]
    fn a_wrong_line_is_told_before_anything_is_built() {
        let sh = &shell().unwrap();
        for line in
            "stress --minutes 0,stress --round 3,stress --ten-years --round 2,stress --seed x,bench W1 W2".split(',')
        {
            let result = match parse(line.split(' ').map(Into::into)).unwrap().subcommand {
                XtaskCmd::Stress(flags) => stress(sh, &flags),
                XtaskCmd::Bench(flags) => bench(sh, flags),
                _ => panic!("{line}"),
            };
            assert_eq!(result.unwrap_err().code, 2, "{line}");
        }
        assert_eq!((seed_of("0xff").unwrap(), seed_of("17").unwrap()), (255, 17));
    }

    #[test]
    fn the_storm_is_where_it_is_looked_for() {
        let text = std::fs::read_to_string(root().join("timer-core/tests/stress/long.rs")).unwrap();
        assert!(text.contains("fn a_long_storm()"));
    }
}
