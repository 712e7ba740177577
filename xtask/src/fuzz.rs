//! `cargo xtask fuzz`, which turns arbitrary bytes into operations on the wheels and the timer and
//! compares the results with the models of the tests.
//!
//! The address sanitizer is off by default. The models notice a fault by its effect, so four times
//! as many executions are worth more.
//!
//! All targets run at the same time, so together they take as long as one. Each writes its output
//! to its own file, and the files are printed one after the other at the end.

use std::fs::{self, File};
use std::path::PathBuf;
use std::thread;

use xshell::{Cmd, Shell, cmd};

use crate::flags;
use crate::run::{Failure, Result, first_failure, need, report, root, run, run_with, shell, target_dir};

const FOLDER: &str = "timer-core/fuzz";

/// Inputs that once found a fault. The tests replay them. Copy a new one there.
const KEPT: &str = "timer-core/tests/model/fuzz_inputs";

/// An input of 512 bytes is about 150 operations on a wheel, 60 on a timer.
const LIMITS: &str = "-max_len=512 -len_control=0 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1";

pub(crate) fn run_all(flags: &flags::Fuzz) -> Result {
    let minutes = flags.minutes.unwrap_or(1);
    if minutes == 0 || flags.jobs == Some(0) {
        return Err(Failure::usage("`--minutes` and `--jobs` must be at least 1"));
    }
    let targets = targets(flags.target.as_deref().unwrap_or_default())?;
    need("cargo +nightly --version", "nightly toolchain (rustup toolchain install nightly --profile minimal)")?;
    need("cargo fuzz --version", "cargo-fuzz (cargo install cargo-fuzz --locked)")?;
    let jobs =
        flags.jobs.unwrap_or_else(|| jobs(thread::available_parallelism().map_or(1, usize::from), targets.len()));
    let fuzzer = Fuzzer { jobs, minutes, sanitizer: if flags.address { "address" } else { "none" } };
    if let [target] = &targets[..] {
        return fuzzer.fuzz(target, run);
    }
    // The targets would wait for each other's builds.
    let sh = shell()?;
    run(fuzzer.cargo(&sh, "build"))?;
    let results: Vec<Result> = thread::scope(|scope| {
        let fuzzer = &fuzzer;
        let running: Vec<_> = targets.iter().map(|target| scope.spawn(|| fuzzer.fuzz_into_file(target))).collect();
        let ended = running.into_iter().map(|thread| thread.join());
        ended.map(|result| result.unwrap_or_else(|_| Err(Failure::new("a thread panicked")))).collect()
    });
    for target in &targets {
        let output = fs::read(fuzzer.output(target))?;
        report(&format!("\n-- {target}\n{}", String::from_utf8_lossy(&output)));
    }
    first_failure(results)
}

/// Returns the number of processes for each target, so that together they occupy the cores.
fn jobs(cores: usize, targets: usize) -> usize {
    (cores / targets.max(1)).max(1)
}

struct Fuzzer {
    jobs: usize,
    minutes: u32,
    sanitizer: &'static str,
}

impl Fuzzer {
    /// Returns the folder of the programs. Each sanitizer has its own, because other compiler flags
    /// would rebuild everything.
    fn built(&self) -> PathBuf {
        target_dir().join(format!("fuzz-{}", self.sanitizer))
    }

    fn output(&self, target: &str) -> PathBuf {
        self.built().join(format!("{target}.log"))
    }

    fn cargo<'a>(&self, sh: &'a Shell, verb: &str) -> Cmd<'a> {
        let sanitizer = self.sanitizer;
        let cmd =
            cmd!(sh, "cargo +nightly fuzz {verb} --fuzz-dir {FOLDER} --sanitizer {sanitizer} --no-trace-compares");
        cmd.arg("--target-dir").arg(self.built())
    }

    /// Passes the command that fuzzes a target to `run`.
    fn fuzz(&self, target: &str, run: impl FnOnce(Cmd<'_>) -> Result) -> Result {
        // A shell belongs to one thread.
        let sh = shell()?;
        // libFuzzer puts new inputs into the first folder.
        let corpus = sh.create_dir(format!("{FOLDER}/corpus/{target}"))?;
        let kept = Some(root().join(KEPT).join(target)).filter(|path| path.is_dir());
        let fuzz = self.cargo(&sh, "run").arg("--jobs").arg(self.jobs.to_string()).arg(target).arg(corpus).args(kept);
        run(fuzz.arg("--").args(LIMITS.split(' ')).arg(format!("-max_total_time={}", self.minutes * 60)))
    }

    fn fuzz_into_file(&self, target: &str) -> Result {
        let (out, err) = File::create(self.output(target)).and_then(|file| Ok((file.try_clone()?, file)))?;
        self.fuzz(target, |cmd| run_with(cmd, |command| _ = command.stdout(out).stderr(err)))
    }
}

/// Returns the targets whose names contain `filter`. Each is a file.
fn targets(filter: &str) -> Result<Vec<String>> {
    let files = fs::read_dir(root().join(FOLDER).join("fuzz_targets"))?;
    let names = files.filter_map(|file| Some(file.ok()?.file_name().to_str()?.strip_suffix(".rs")?.to_owned()));
    let (mut found, others): (Vec<_>, Vec<_>) = names.partition(|name| name.contains(filter));
    found.sort();
    if found.is_empty() {
        return Err(Failure::usage(format!("no target has `{filter}` in its name; there are {}", others.join(", "))));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #[test]
    fn targets_share_the_cores() {
        assert_eq!([super::jobs(8, 3), super::jobs(2, 3), super::jobs(4, 1)], [2, 1, 4]);
    }

    #[test]
    fn an_unknown_target_lists_the_targets() {
        assert_eq!(super::targets("wheel").unwrap(), ["wheel_hashed", "wheel_hierarchical"]);
        assert!(super::targets("wheels").unwrap_err().message.contains("timer_virtual"));
    }
}
