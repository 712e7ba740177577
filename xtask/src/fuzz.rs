//! `cargo xtask fuzz`, which turns arbitrary bytes into operations on the wheels and the timer and
//! compares the results with the models of the tests.
//!
//! The address sanitizer is off by default. The models notice a fault by its effect, so four times
//! as many executions are worth more.

use std::{fs, thread};

use xshell::{Shell, cmd};

use crate::flags;
use crate::run::{Failure, Result, first_failure, need, root, run, target_dir};

const FOLDER: &str = "timer-core/fuzz";

/// Inputs that once found a fault. The tests replay them. Copy a new one there.
const KEPT: &str = "timer-core/tests/model/fuzz_inputs";

/// An input of 512 bytes is about 150 operations on a wheel, 60 on a timer.
const LIMITS: &str = "-max_len=512 -len_control=0 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1";

pub(crate) fn run_all(sh: &Shell, flags: &flags::Fuzz) -> Result {
    let minutes = flags.minutes.unwrap_or(1);
    if minutes == 0 || flags.jobs == Some(0) {
        return Err(Failure::usage("`--minutes` and `--jobs` must be at least 1"));
    }
    let targets = targets(flags.target.as_deref().unwrap_or_default())?;
    need("cargo +nightly --version", "nightly toolchain (rustup toolchain install nightly --profile minimal)")?;
    need("cargo fuzz --version", "cargo-fuzz (cargo install cargo-fuzz --locked)")?;
    let jobs = flags.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from)).to_string();
    let time = format!("-max_total_time={}", minutes * 60);
    let sanitizer = if flags.address { "address" } else { "none" };
    // Each sanitizer has a folder of its own, because other compiler flags would rebuild
    // everything.
    let built = target_dir().join(format!("fuzz-{sanitizer}"));
    first_failure(targets.into_iter().map(|target| {
        // libFuzzer puts new inputs into the first folder.
        let corpus = sh.create_dir(format!("{FOLDER}/corpus/{target}"))?;
        let kept = Some(root().join(KEPT).join(&target)).filter(|path| path.is_dir());
        let fuzz = cmd!(sh, "cargo +nightly fuzz run --fuzz-dir {FOLDER} --sanitizer {sanitizer} --no-trace-compares");
        let fuzz = fuzz.arg("--target-dir").arg(&built).args(["--jobs", &jobs, &target]).arg(corpus).args(kept);
        run(fuzz.arg("--").args(LIMITS.split(' ')).arg(&time))
    }))
}

/// Returns the targets whose names contain `filter`. Each is a file of its own.
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
    fn an_unknown_target_lists_the_targets() {
        assert_eq!(super::targets("wheel").unwrap(), ["wheel_hashed", "wheel_hierarchical"]);
        assert!(super::targets("wheels").unwrap_err().message.contains("timer_virtual"));
    }
}
