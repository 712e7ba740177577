//! `cargo xtask sanitize`: the tests under programs that watch memory.
//!
//! Three watchers: the address sanitizer (use after free, out of bounds, double free, and at the end leaks), the thread
//! sanitizer (data races), and valgrind's memcheck (the same and uninitialised memory, with the standard library watched
//! as well). What cannot run here is skipped and says so; a skipped part is not a failure.
//!
//! Not covered: the orders of threads that did not happen (`cargo xtask loom` covers those), and under the address
//! sanitizer what goes wrong inside the standard library, which comes compiled without it. Left out everywhere are tests
//! that judge the clock or measure resident memory: here all is slower, and freed memory is kept to catch late uses.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::args::Args;
use crate::cargo::{Cargo, Failure, target_dir};

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Tests whose names contain one of these are left out.
const LEFT_OUT: &[&str] = &["grows_no_memory", "p07_idle", "p11_slow_task", "executor_are_traced", "lateness_shows"];

/// The only thing that is leaked on purpose: the payload of a panic in the drop of a panic's payload.
const LEAKED: &str = "timer_executor::panics::drop_payload";
const LEAKED_FOR_VALGRIND: &str = "{\n  leaked-on-purpose\n  Memcheck:Leak\n  ...\n  fun:*drop_payload*\n  ...\n}\n";

/// Only blocks that nothing points to any more count as leaks: the standard library keeps some for threads that still run.
/// Threads take fair turns, since a spinning one would keep the rest out.
const VALGRIND: &str = "valgrind --quiet --error-exitcode=9 --fair-sched=yes --num-callers=30 --leak-check=full \
                        --show-leak-kinds=definite --errors-for-leak-kinds=definite";

/// Everything but what counts the heap with an allocator of its own.
const ALL: &[&str] = &[
    "-p timer-executor --all-features --lib --test executors",
    "-p timer-core --lib --test wheel_* --test found_faults --test many_timers --test lessons --test promises \
     --test timer_model --test stress",
];

/// What ends in a few minutes though it is some thirty times slower, and runs one thread at a time.
const SOME: &[&str] = &[
    "-p timer-executor --all-features --lib --test executors",
    "-p timer-core --lib --test wheel_keys --test found_faults --test promises",
];

/// Where data races could be.
const RACES: &[&str] = &["-p timer-core --lib --test stress"];

/// A flag, a name, and what it runs.
struct Part {
    flag: &'static str,
    name: &'static str,
    run: fn() -> Result<Outcome, Failure>,
}

/// What became of a part that did not fail.
enum Outcome {
    Passed,
    /// Why, and how to get what is missing.
    Skipped(String),
}

const PARTS: &[Part] = &[
    Part { flag: "--asan", name: "address sanitizer", run: asan },
    Part { flag: "--tsan", name: "thread sanitizer", run: tsan },
    Part { flag: "--valgrind", name: "valgrind memcheck", run: memcheck },
    Part { flag: "--helgrind", name: "valgrind helgrind", run: helgrind },
];

pub(crate) fn command(mut args: Args) -> Result<(), Failure> {
    let wanted: Vec<&Part> = PARTS.iter().filter(|part| args.flag(part.flag)).collect();
    args.done()?;
    run(&if wanted.is_empty() { PARTS.iter().collect() } else { wanted })
}

/// Runs the parts, all of them, and fails if one has failed.
fn run(parts: &[&Part]) -> Result<(), Failure> {
    let (mut lines, mut passed, mut skipped, mut first) = (String::new(), 0, 0, None);
    let mut failed = 0;
    for part in parts {
        eprintln!("\n== {}", part.name);
        let begun = Instant::now();
        let verdict = match (part.run)() {
            Ok(Outcome::Passed) => {
                passed += 1;
                "passed".to_owned()
            }
            Ok(Outcome::Skipped(why)) => {
                skipped += 1;
                format!("skipped: {why}")
            }
            Err(failure) => {
                failed += 1;
                let verdict = format!("FAILED: {}", failure.what);
                first.get_or_insert(failure.code);
                verdict
            }
        };
        lines += &format!("{:<20} {:>6.1} s  {verdict}\n", part.name, begun.elapsed().as_secs_f64());
    }
    print!("\n{lines}{passed} passed, {failed} failed, {skipped} skipped\n");
    // All has been told.
    first.map_or(Ok(()), |code| Err(Failure { code, what: String::new() }))
}

fn asan() -> Result<Outcome, Failure> {
    if let Some(why) = no_sanitizer() {
        return Ok(Outcome::Skipped(why));
    }
    let mut leaks = format!("suppressions={}", write("lsan.supp", &format!("leak:{LEAKED}\n"))?.display());
    if !has("llvm-symbolizer") && !has("addr2line") {
        println!(
            "leaks are not looked for: what is leaked on purpose is known by name, and names need `addr2line` (binutils)"
        );
        leaks = "detect_leaks=0".to_owned();
    }
    // With frame pointers, so that the stack of a leak reaches the name that excuses it.
    let flags = "-Zsanitizer=address -Cforce-frame-pointers=yes";
    let build = |line: &str| sanitized(line, "asan", flags).env("ASAN_OPTIONS", "detect_stack_use_after_return=1");
    each(ALL, |line| build(line).env("LSAN_OPTIONS", leaks.clone()))
}

fn tsan() -> Result<Outcome, Failure> {
    if let Some(why) = no_sanitizer() {
        return Ok(Outcome::Skipped(why));
    }
    let source = nightly("rustc", &["--print", "sysroot"])
        .map(|root| PathBuf::from(root.trim()).join("lib/rustlib/src/rust/library"));
    if !source.is_some_and(|source| source.is_dir()) {
        let why = "the standard library comes compiled without it, so each `Arc` that is dropped and each `mpsc` looks like \
                   a race; its source is needed to build it anew (rustup component add rust-src --toolchain nightly)";
        return Ok(Outcome::Skipped(why.to_owned()));
    }
    each(RACES, |line| {
        sanitized(&format!("{line} -Zbuild-std"), "tsan", "-Zsanitizer=thread").env("RUSTC_BOOTSTRAP", "1")
    })
}

fn memcheck() -> Result<Outcome, Failure> {
    if let Some(why) = no_target() {
        return Ok(Outcome::Skipped(why));
    }
    if !has("valgrind") {
        return Ok(Outcome::Skipped("no `valgrind` here (apt-get install valgrind)".to_owned()));
    }
    let runner = format!("{VALGRIND} --suppressions={}", write("valgrind.supp", LEAKED_FOR_VALGRIND)?.display());
    each(SOME, |line| test(line, "valgrind").env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", runner.clone()))
}

fn helgrind() -> Result<Outcome, Failure> {
    let why = "it knows locks and not atomics, which are what the hand-overs are made of: all it says would be false; \
               for races there are `cargo xtask loom` and the thread sanitizer";
    Ok(Outcome::Skipped(why.to_owned()))
}

/// Runs each line; the first that fails ends it.
fn each(lines: &[&str], cargo: impl Fn(&str) -> Cargo) -> Result<Outcome, Failure> {
    let rest: Vec<String> = LEFT_OUT.iter().flat_map(|name| ["--skip".to_owned(), (*name).to_owned()]).collect();
    lines.iter().try_for_each(|line| cargo(line).rest(&rest).run())?;
    Ok(Outcome::Passed)
}

/// A little optimised, since the watchers are slow; with all assertions.
fn test(line: &str, folder: &str) -> Cargo {
    let cargo = Cargo::new("test --no-fail-fast").env("CARGO_PROFILE_DEV_OPT_LEVEL", "1").env("PROPTEST_CASES", "16");
    let cargo = line.split_whitespace().fold(cargo, Cargo::arg);
    cargo.arg("--target").arg(TARGET).arg("--target-dir").arg(folder_of(folder))
}

fn sanitized(line: &str, folder: &str, flag: &str) -> Cargo {
    test(line, folder).rustflags(flag).env("RUSTUP_TOOLCHAIN", "nightly")
}

fn folder_of(part: &str) -> PathBuf {
    target_dir().join("sanitize").join(part)
}

/// Writes a file for a watcher; returns its absolute path, since tests run in folders of their own.
fn write(name: &str, text: &str) -> Result<PathBuf, Failure> {
    let folder = folder_of("");
    let path = folder.join(name);
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(&path, text))
        .and_then(|()| path.canonicalize())
        .map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// Why there is nothing to run on, if so.
fn no_target() -> Option<String> {
    let here = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    (!here).then(|| format!("only known to work on Linux on x86-64 ({TARGET})"))
}

/// Why there is no compiler with sanitizers, if so.
fn no_sanitizer() -> Option<String> {
    let compiler = || nightly("rustc", &["--version"]).is_none();
    no_target().or_else(|| {
        compiler().then(|| "sanitizers need a nightly compiler (rustup toolchain install nightly)".to_owned())
    })
}

/// What a program of the nightly toolchain prints; `None` if there is none.
fn nightly(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new("rustup").args(["run", "nightly", program]).args(args).stderr(Stdio::null()).output();
    output.ok().filter(|output| output.status.success()).and_then(|output| String::from_utf8(output.stdout).ok())
}

/// Can `program` be started?
fn has(program: &str) -> bool {
    let version = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::{Failure, LEAKED, LEAKED_FOR_VALGRIND, Outcome, Part, run};

    const GOOD: Part = Part { flag: "--good", name: "good", run: || Ok(Outcome::Passed) };
    const ABSENT: Part = Part { flag: "--absent", name: "absent", run: || Ok(Outcome::Skipped("not here".to_owned())) };
    const BAD: Part = Part { flag: "--bad", name: "bad", run: || Err(Failure { code: 9, what: "leaks".to_owned() }) };

    #[test]
    fn what_is_skipped_is_no_failure_and_what_fails_is() {
        assert!(run(&[&GOOD, &ABSENT]).is_ok());
        assert_eq!(run(&[&BAD, &GOOD, &ABSENT]).unwrap_err().code, 9);
    }

    #[test]
    fn what_is_leaked_on_purpose_is_where_it_is_said_to_be() {
        let source = include_str!("../../timer-executor/src/panics.rs");
        let name = LEAKED.rsplit("::").next().unwrap();
        assert!(source.contains(&format!("fn {name}(")) && LEAKED_FOR_VALGRIND.contains(name));
    }
}
