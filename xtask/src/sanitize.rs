//! `cargo xtask sanitize`: the tests under programs that watch memory.
//!
//! Three watchers: the address sanitizer (use after free, out of bounds, double free, and at the
//! end leaks), the thread sanitizer (data races), and valgrind's memcheck (the first and
//! uninitialised memory, with the standard library watched as well). Helgrind is absent: it knows
//! locks and not atomics, so all it says would be false.

use std::path::Path;

use xshell::{Shell, cmd};

use crate::flags;
use crate::run::{Failure, Result, flags_and, need, run, target_dir};
use crate::steps::{self, Step, Work::Call};

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Tests that judge the clock or measure memory: under a watcher all is slower, and freed memory is
/// kept to catch late uses.
const LEFT_OUT: &[&str] = &["p07_idle", "p11_slow_task", "executor_are_traced", "lateness_shows"];

/// The only thing that is leaked on purpose: the payload of a panic in the drop of a panic's
/// payload.
const LEAKED: &str = "leak:timer_executor::panics::drop_payload\n";
const LEAKED_FOR_VALGRIND: &str = "{\n  leaked-on-purpose\n  Memcheck:Leak\n  ...\n  fun:*drop_payload*\n  ...\n}\n";

/// Only blocks that nothing points to any more count as leaks: the standard library keeps some for
/// threads that still run. Threads take fair turns, since a spinning one would keep the rest out.
const VALGRIND: &str = "valgrind --quiet --error-exitcode=9 --fair-sched=yes --num-callers=30 --leak-check=full \
                        --show-leak-kinds=definite --errors-for-leak-kinds=definite";

const EXECUTORS: &str = "-p timer-executor --all-features --lib --test executors";
const CORE: &str = "-p timer-core --lib --test behaviour --test model --test many_timers --test stress";
const STORMS: &str = "-p timer-core --test memory p16_bounded"; // The rest of it counts the heap.
/// What ends in a few minutes though it is some thirty times slower, and runs one thread at a time.
const CORE_FOR_VALGRIND: &str = "-p timer-core --lib --test behaviour";
const TOO_SLOW: &[&str] = &["futures::", "races::", "wake_ups::", "worker_thread::", "bound::"];
/// Where races could be. The standard library is built anew, since without the sanitizer each
/// dropped `Arc` looks like one.
const RACES: &str = "-p timer-core --lib --test stress -Zbuild-std";

pub(crate) const ASAN: Step = ("address sanitizer", Call(asan));
pub(crate) const TSAN: Step = ("thread sanitizer", Call(tsan));
pub(crate) const MEMCHECK: Step = ("valgrind memcheck", Call(memcheck));

pub(crate) fn command(flags: &flags::Sanitize) -> Result {
    let parts = [(flags.asan, ASAN), (flags.tsan, TSAN), (flags.valgrind, MEMCHECK)];
    let all = !parts.iter().any(|(wanted, _)| *wanted);
    let wanted: Vec<Step> = parts.into_iter().filter(|(wanted, _)| all || *wanted).map(|(_, step)| step).collect();
    steps::run(&wanted, usize::MAX)
}

fn asan(sh: &Shell) -> Result {
    need("rustup run nightly rustc --version", "nightly compiler (rustup toolchain install nightly)")?;
    let mut leaks = format!("suppressions={}", write(sh, "lsan.supp", LEAKED)?);
    if let Err(skipped) = need("addr2line --version", "addr2line (binutils), by which the leak on purpose is known") {
        println!("leaks are not looked for: {}", skipped.what);
        leaks = "detect_leaks=0".to_owned();
    }
    sh.set_var("LSAN_OPTIONS", leaks);
    sh.set_var("ASAN_OPTIONS", "detect_stack_use_after_return=1");
    // With frame pointers, so that the stack of a leak reaches the name that excuses it.
    sh.set_var("RUSTFLAGS", flags_and("RUSTFLAGS", "-Zsanitizer=address -Cforce-frame-pointers=yes"));
    sh.set_var("RUSTUP_TOOLCHAIN", "nightly");
    each(sh, "asan", &[EXECUTORS, CORE, STORMS], &[])
}

fn tsan(sh: &Shell) -> Result {
    need("rustup run nightly rustc --version", "nightly compiler (rustup toolchain install nightly)")?;
    let sysroot = cmd!(sh, "rustup run nightly rustc --print sysroot").quiet().read()?;
    if !Path::new(&sysroot).join("lib/rustlib/src/rust/library").is_dir() {
        return Err(Failure::skipped("source of nightly (rustup component add rust-src --toolchain nightly)"));
    }
    sh.set_var("RUSTFLAGS", flags_and("RUSTFLAGS", "-Zsanitizer=thread"));
    sh.set_var("RUSTUP_TOOLCHAIN", "nightly");
    each(sh, "tsan", &[RACES], &[])
}

fn memcheck(sh: &Shell) -> Result {
    need("valgrind --version", "valgrind (apt-get install valgrind)")?;
    let suppressions = write(sh, "valgrind.supp", LEAKED_FOR_VALGRIND)?;
    sh.set_var("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", format!("{VALGRIND} --suppressions={suppressions}"));
    each(sh, "valgrind", &[EXECUTORS, CORE_FOR_VALGRIND, STORMS, "-p timer-core --test model wheel_keys"], TOO_SLOW)
}

/// Runs lines of tests. A little optimised, since the watchers are slow; with all assertions.
fn each(sh: &Shell, folder: &str, lines: &[&str], too_slow: &[&str]) -> Result {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(Failure::skipped("Linux on x86-64 here"));
    }
    sh.set_var("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    sh.set_var("PROPTEST_CASES", "16");
    let folder = &target_dir().join("sanitize").join(folder);
    lines.iter().try_for_each(|line| {
        let (line, skip) = (line.split_whitespace(), LEFT_OUT.iter().chain(too_slow).flat_map(|name| ["--skip", name]));
        run(cmd!(sh, "cargo test --no-fail-fast {line...} --target {TARGET} --target-dir {folder} -- {skip...}"))
    })
}

/// Writes a file for a watcher; returns its path from the top, since tests run in folders of their
/// own.
fn write(sh: &Shell, name: &str, text: &str) -> Result<String> {
    let path = target_dir().join("sanitize").join(name);
    sh.write_file(&path, text)?;
    Ok(path.display().to_string())
}

#[cfg(test)]
mod tests {
    #[test]
    fn leaks_on_purpose_are_where_they_are_said_to_be() {
        let source = include_str!("../../timer-executor/src/panics.rs");
        assert!(super::LEAKED.contains("::panics::drop_payload") && source.contains("fn drop_payload("));
    }
}
