//! `cargo xtask sanitize`, which runs the tests under programs that watch memory.
//!
//! - The address sanitizer finds uses after free, accesses out of bounds, double frees and leaks.
//!   It runs the code as it ships, and knows the memory that a thread keeps for its next timeouts.
//! - The thread sanitizer finds data races.
//! - Valgrind's memcheck finds accesses to freed or uninitialized memory, also in the standard
//!   library.
//! - Miri interprets the tests of the modules with unsafe code, and finds undefined behavior that
//!   has no effect yet, such as a wrong alias or too weak an ordering.
//!
//! The last two also watch the first programs of the crates, as users watch theirs.
//!
//! Helgrind is absent, because it models locks but no atomics, and all its reports would be false.

use std::path::Path;

use xshell::{Shell, cmd};

use crate::flags;
use crate::recipes::MANIFEST;
use crate::run::{Failure, Result, first_failure, flags_and, need, report, run, target_dir};
use crate::steps::{self, Phase, Step, Work::Call};

/// Frees the memory of each entry at once, so that a watcher sees a use after that.
const NO_SPARES: &str = "--cfg timer_no_spares";

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Tests that judge the clock or measure memory, because a watcher slows everything down and keeps
/// freed memory to catch late uses. Also the drop of a key that panics, because the hash table of
/// the standard library then leaks its memory.
const LEFT_OUT: &[&str] =
    &["p07_idle", "p11_slow_task", "executor_are_traced", "lateness_shows", "drop_of_a_key_has_panicked"];

/// The only leak on purpose, the payload of a panic in the drop of another panic's payload.
const LEAKED: &str = "leak:timer_executor::panics::drop_payload\n";
const LEAKED_FOR_VALGRIND: &str = "{\n  leaked-on-purpose\n  Memcheck:Leak\n  ...\n  fun:*drop_payload*\n  ...\n}\n";

/// The channel of a durable timer's answers, which orders its messages by fences. The thread
/// sanitizer does not know fences.
const FENCES: &str = "race:oneshot::\n";

/// Counts only blocks that nothing points to as leaks, because the standard library keeps some for
/// threads that still run. Threads take fair turns, because a spinning one would starve the others.
const VALGRIND: &str = "valgrind --quiet --error-exitcode=9 --fair-sched=yes --num-callers=30 --leak-check=full \
                        --show-leak-kinds=definite --errors-for-leak-kinds=definite";

const EXECUTORS: &str = "-p timer-executor --all-features --lib --test executors";
const CORE: &str = "-p timer-core --lib --test behaviour --test model --test many_timers --test stress";
const BOUNDS: &str = "-p timer-core --test memory p16_bounded"; // The rest of it counts the heap.
/// Tests that end in a few minutes although valgrind is thirty times slower and runs one thread at
/// a time.
const CORE_FOR_VALGRIND: &str = "-p timer-core --lib --test behaviour";
const TOO_SLOW: &[&str] = &["futures::", "wake_ups::", "worker_thread::", "bound::"];
/// Tests in which races could occur. The standard library is rebuilt, because without the sanitizer
/// in it each dropped `Arc` looks like a race.
const RACES: &str = "-p timer-core --lib --test stress -Zbuild-std";

/// Modules whose tests Miri finishes within a minute, with all unsafe code among them.
const UNSAFE_MODULES: &[&str] = &["entry::", "future::", "sync::"];

pub(crate) const ASAN: Step = ("address sanitizer", Call(asan));
pub(crate) const TSAN: Step = ("thread sanitizer", Call(tsan));
pub(crate) const MEMCHECK: Step = ("valgrind memcheck", Call(memcheck));
pub(crate) const MIRI: Step = ("miri", Call(miri));

pub(crate) fn command(flags: &flags::Sanitize) -> Result {
    let parts = [(flags.asan, ASAN), (flags.tsan, TSAN), (flags.valgrind, MEMCHECK), (flags.miri, MIRI)];
    let all = !parts.iter().any(|(wanted, _)| *wanted);
    let wanted: Vec<Step> = parts.into_iter().filter(|(wanted, _)| all || *wanted).map(|(_, step)| step).collect();
    steps::run(&[Phase { steps: wanted, ..Phase::default() }], usize::MAX, f64::INFINITY)
}

fn asan(sh: &Shell) -> Result {
    need("rustup run nightly rustc --version", "nightly compiler (rustup toolchain install nightly)")?;
    let mut leaks = format!("suppressions={}", write(sh, "lsan.supp", LEAKED)?);
    if let Err(skipped) =
        need("addr2line --version", "addr2line (binutils), which finds the name of the leak on purpose")
    {
        report(&format!("no search for leaks: {}\n", skipped.message));
        leaks = "detect_leaks=0".to_owned();
    }
    sh.set_var("LSAN_OPTIONS", leaks);
    sh.set_var("ASAN_OPTIONS", "detect_stack_use_after_return=1");
    // The suppression of a leak names a function, which the stack shows only with frame pointers.
    sh.set_var("RUSTFLAGS", flags_and("RUSTFLAGS", "-Zsanitizer=address -Cforce-frame-pointers=yes --cfg timer_asan"));
    sh.set_var("RUSTUP_TOOLCHAIN", "nightly");
    each(sh, "asan", &[EXECUTORS, CORE, BOUNDS], &[])
}

fn tsan(sh: &Shell) -> Result {
    need("rustup run nightly rustc --version", "nightly compiler (rustup toolchain install nightly)")?;
    let sysroot = cmd!(sh, "rustup run nightly rustc --print sysroot").quiet().read()?;
    if !Path::new(&sysroot).join("lib/rustlib/src/rust/library").is_dir() {
        return Err(Failure::skipped("source of nightly (rustup component add rust-src --toolchain nightly)"));
    }
    sh.set_var("RUSTFLAGS", flags_and("RUSTFLAGS", "-Zsanitizer=thread"));
    sh.set_var("RUSTUP_TOOLCHAIN", "nightly");
    each(sh, "tsan", &[RACES], &[])?;
    sh.set_var("TSAN_OPTIONS", format!("suppressions={}", write(sh, "tsan.supp", FENCES)?));
    let folder = target_dir().join("sanitize").join("tsan");
    run(cmd!(sh, "cargo run --manifest-path {MANIFEST} -Zbuild-std --target {TARGET} --target-dir {folder}"))
}

fn memcheck(sh: &Shell) -> Result {
    need("valgrind --version", "valgrind (apt-get install valgrind)")?;
    let suppressions = write(sh, "valgrind.supp", LEAKED_FOR_VALGRIND)?;
    sh.set_var("RUSTFLAGS", flags_and("RUSTFLAGS", NO_SPARES));
    sh.set_var("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", format!("{VALGRIND} --suppressions={suppressions}"));
    each(sh, "valgrind", &[EXECUTORS, CORE_FOR_VALGRIND, BOUNDS, "-p timer-core --test model wheel_keys"], TOO_SLOW)
}

fn miri(sh: &Shell) -> Result {
    need("cargo +nightly miri --version", "Miri (rustup component add miri rust-src --toolchain nightly)")?;
    let folder = &target_dir().join("sanitize").join("miri");
    let programs = || cmd!(sh, "cargo +nightly miri run --manifest-path {MANIFEST} --target-dir {folder}");
    run(programs())?;
    // The tests read the clock.
    sh.set_var("MIRIFLAGS", flags_and("MIRIFLAGS", "-Zmiri-disable-isolation"));
    run(programs())?;
    let modules = UNSAFE_MODULES;
    run(cmd!(sh, "cargo +nightly miri test -p timer-core --lib --target-dir {folder} -- {modules...}"))
}

/// Runs lines of tests, slightly optimized because the watchers are slow, with all assertions.
fn each(sh: &Shell, folder: &str, lines: &[&str], too_slow: &[&str]) -> Result {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(Failure::skipped("Linux on x86-64"));
    }
    sh.set_var("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    sh.set_var("PROPTEST_CASES", "16");
    let folder = &target_dir().join("sanitize").join(folder);
    first_failure(lines.iter().map(|line| {
        let line = line.split_whitespace();
        let skip = LEFT_OUT.iter().chain(too_slow).flat_map(|name| ["--skip", name]);
        run(cmd!(sh, "cargo test --no-fail-fast {line...} --target {TARGET} --target-dir {folder} -- {skip...}"))
    }))
}

/// Writes a file for a watcher and returns its absolute path, because each test runs in the folder
/// of its crate.
fn write(sh: &Shell, name: &str, text: &str) -> Result<String> {
    let path = target_dir().join("sanitize").join(name);
    sh.write_file(&path, text)?;
    Ok(path.display().to_string())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_suppressed_function_exists() {
        let source = include_str!("../../timer-executor/src/panics.rs");
        assert!(super::LEAKED.contains("::panics::drop_payload") && source.contains("fn drop_payload("));
    }
}
