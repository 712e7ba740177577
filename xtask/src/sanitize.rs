//! `cargo xtask sanitize`: the tests under programs that watch memory.
//!
//! Three watchers: the address sanitizer (use after free, out of bounds, double free, and at the end leaks), the thread
//! sanitizer (data races), and valgrind's memcheck (the first and uninitialised memory, with the standard library watched
//! as well). Not covered: the orders of threads that did not happen (`cargo xtask loom` covers those). Helgrind is absent:
//! it knows locks and not atomics, which are what the hand-overs are made of, so all it says would be false.

use std::path::PathBuf;

use xshell::{Cmd, Shell, cmd};

use crate::flags;
use crate::run::{Result, flags as variable, has, run, target_dir};
use crate::steps::{self, Outcome, Step};

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Left out everywhere: tests that judge the clock or measure resident memory. Under a watcher all is slower, and freed memory
/// is kept to catch late uses.
const LEFT_OUT: &[&str] = &["grows_no_memory", "p07_idle", "p11_slow_task", "executor_are_traced", "lateness_shows"];

/// The only thing that is leaked on purpose: the payload of a panic in the drop of a panic's payload.
const LEAKED: &str = "leak:timer_executor::panics::drop_payload\n";
const LEAKED_FOR_VALGRIND: &str = "{\n  leaked-on-purpose\n  Memcheck:Leak\n  ...\n  fun:*drop_payload*\n  ...\n}\n";

/// Only blocks that nothing points to any more count as leaks: the standard library keeps some for threads that still run.
/// Threads take fair turns, since a spinning one would keep the rest out.
const VALGRIND: &str = "valgrind --quiet --error-exitcode=9 --fair-sched=yes --num-callers=30 --leak-check=full \
                        --show-leak-kinds=definite --errors-for-leak-kinds=definite";

const EXECUTORS: &str = "-p timer-executor --all-features --lib --test executors";

/// Everything but what counts the heap with an allocator of its own.
const ALL: &str = "-p timer-core --lib --test wheel_* --test found_faults --test many_timers --test lessons --test promises \
                   --test timer_model --test stress";

/// What ends in a few minutes though it is some thirty times slower, and runs one thread at a time.
const SOME: &str = "-p timer-core --lib --test wheel_keys --test found_faults --test promises";

/// Where data races could be.
const RACES: &str = "-p timer-core --lib --test stress";

pub(crate) const ASAN: Step = Step { name: "address sanitizer", run: asan };
pub(crate) const TSAN: Step = Step { name: "thread sanitizer", run: tsan };
pub(crate) const MEMCHECK: Step = Step { name: "valgrind memcheck", run: memcheck };

pub(crate) fn command(sh: &Shell, flags: &flags::Sanitize) -> Result {
    let all = !(flags.asan || flags.tsan || flags.valgrind);
    let parts = [(flags.asan, &ASAN), (flags.tsan, &TSAN), (flags.valgrind, &MEMCHECK)];
    let wanted: Vec<&Step> = parts.into_iter().filter(|(wanted, _)| all || *wanted).map(|(_, step)| step).collect();
    steps::run(sh, &wanted, true)
}

fn asan(sh: &Shell) -> Result<Outcome> {
    if let Some(why) = no_target().or_else(no_nightly) {
        return Ok(Outcome::Skipped(why));
    }
    let mut leaks = format!("suppressions={}", write(sh, "lsan.supp", LEAKED)?);
    if !has("llvm-symbolizer", &["--version"]) && !has("addr2line", &["--version"]) {
        println!(
            "leaks are not looked for: the one on purpose is known by its name, which needs `addr2line` (binutils)"
        );
        leaks = "detect_leaks=0".to_owned();
    }
    // With frame pointers, so that the stack of a leak reaches the name that excuses it.
    let (name, value) = variable("RUSTFLAGS", "-Zsanitizer=address -Cforce-frame-pointers=yes");
    for line in [EXECUTORS, ALL] {
        let test = test(sh, line, "asan").env(&name, &value).env("RUSTUP_TOOLCHAIN", "nightly");
        run(test.env("ASAN_OPTIONS", "detect_stack_use_after_return=1").env("LSAN_OPTIONS", &leaks))?;
    }
    Ok(Outcome::Passed)
}

fn tsan(sh: &Shell) -> Result<Outcome> {
    if let Some(why) = no_target().or_else(no_nightly) {
        return Ok(Outcome::Skipped(why));
    }
    let sysroot = PathBuf::from(cmd!(sh, "rustup run nightly rustc --print sysroot").quiet().read()?);
    if !sysroot.join("lib/rustlib/src/rust/library").is_dir() {
        let why = "the standard library comes compiled without it, so each `Arc` that is dropped looks like a race; its source \
                   is needed to build it anew (rustup component add rust-src --toolchain nightly)";
        return Ok(Outcome::Skipped(why.to_owned()));
    }
    let (name, value) = variable("RUSTFLAGS", "-Zsanitizer=thread");
    let test = test(sh, &format!("{RACES} -Zbuild-std"), "tsan").env(name, value);
    run(test.env("RUSTUP_TOOLCHAIN", "nightly"))?;
    Ok(Outcome::Passed)
}

fn memcheck(sh: &Shell) -> Result<Outcome> {
    if let Some(why) = no_target().or_else(no_valgrind) {
        return Ok(Outcome::Skipped(why));
    }
    let runner = format!("{VALGRIND} --suppressions={}", write(sh, "valgrind.supp", LEAKED_FOR_VALGRIND)?);
    for line in [EXECUTORS, SOME] {
        run(test(sh, line, "valgrind").env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", &runner))?;
    }
    Ok(Outcome::Passed)
}

/// A little optimised, since the watchers are slow; with all assertions.
fn test<'a>(sh: &'a Shell, line: &str, folder: &str) -> Cmd<'a> {
    let (line, folder) = (line.split_whitespace(), target_dir().join("sanitize").join(folder));
    let skip = LEFT_OUT.iter().flat_map(|name| ["--skip", name]);
    cmd!(sh, "cargo test --no-fail-fast {line...} --target {TARGET} --target-dir {folder} -- {skip...}")
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
        .env("PROPTEST_CASES", "16")
}

/// Writes a file for a watcher; returns its path from the top, since tests run in folders of their own.
fn write(sh: &Shell, name: &str, text: &str) -> Result<String> {
    let path = target_dir().join("sanitize").join(name);
    sh.write_file(&path, text)?;
    Ok(path.display().to_string())
}

fn no_target() -> Option<String> {
    let here = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    (!here).then(|| format!("only known to work on Linux on x86-64 ({TARGET})"))
}

fn no_nightly() -> Option<String> {
    let here = has("rustup", &["run", "nightly", "rustc", "--version"]);
    (!here).then(|| "sanitizers need a nightly compiler (rustup toolchain install nightly)".to_owned())
}

pub(crate) fn no_valgrind() -> Option<String> {
    (!has("valgrind", &["--version"])).then(|| "no `valgrind` here (apt-get install valgrind)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{LEAKED, LEAKED_FOR_VALGRIND};

    #[test]
    fn what_is_leaked_on_purpose_is_where_it_is_said_to_be() {
        let source = include_str!("../../timer-executor/src/panics.rs");
        assert!(LEAKED.contains("::panics::drop_payload") && LEAKED_FOR_VALGRIND.contains("drop_payload"));
        assert!(source.contains("fn drop_payload("));
    }
}
