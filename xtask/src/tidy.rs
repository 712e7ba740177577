//! `cargo xtask tidy`, which checks the rules of the architecture. They are also a test, so
//! `cargo test` enforces them.
//!
//! Clippy sees types, and `timer-core/clippy.toml` keeps threads, locks and atomics behind the
//! facade `sync`. The rules here see text. They rely on rustfmt's layout and on authors who do not
//! try to evade them. A rule whose subject is gone fails, because it could not be broken any more.

mod circles;
mod file;
mod width;

use std::fs;

use xshell::{Shell, cmd};

use self::file::{Exceptions, File, bare, code, words};
use crate::crates::{arrows, metadata, wrong_counts};
use crate::mutants;
use crate::run::{Failure, Result, report, root};

/// The wheels, which are plain data structures that know ticks and values.
const WHEEL: &str = "timer-core/src/wheel/";

/// Names that a wheel does not use. Its time is a tick, and its owner locks it.
const NOT_IN_WHEEL: &[&str] =
    &["std::sync", "std::thread", "std::time", "loom", "parking_lot", "crossbeam_queue", "timer_executor", "tracing"];

/// The handles that callers hold.
const HANDLES: &str = "timer-core/src/handle/";
/// The builder, which chooses the wheel.
const MAY_NAME_WHEELS: Exceptions = &["timer-core/src/handle/builder.rs"];

/// Programs that run on the real clock, and the system's clock itself.
const MAY_SLEEP: Exceptions = &["examples/", "timer-bench/", "timer-core/src/sync/system.rs"];

/// The numbers of lines that a source file and a decision may have.
const MOST_LINES: usize = 400;
const MOST_LINES_OF_DECISION: usize = 25;

/// The number of lines of code that may stand between an atomic operation and its reason above.
const REACH: usize = 8;
/// Code for tests only, and the chores, which have no atomics but a command `release`.
const WITHOUT_ORDERINGS: Exceptions = &["timer-core/src/loom_models/", "timer-core/src/sync/model", "xtask/"];
const ORDERINGS: &[&str] = &["Acquire", "Release", "AcqRel", "Relaxed", "SeqCst"];

/// Marks of unfinished work. Each is in two pieces, so that this file does not contain it.
const MARKS: &[&str] = &["to|do!", "unimpl|emented!", "TO|DO", "FIX|ME", "X|XX"];

/// A rule has the prefix of the paths it applies to, the prefixes it does not apply to, the
/// function that returns the lines (from 1) of a file that break it, and the advice.
type Rule = (&'static str, Exceptions, fn(&File) -> Vec<usize>, &'static str);

const RULES: &[Rule] = &[
    (
        "",
        WITHOUT_ORDERINGS,
        orderings,
        "an ordering without a reason; say in an `ORDERING:` comment what it pairs with",
    ),
    (WHEEL, &[], wheel, "a wheel names another part of the timer; pass it ticks and values"),
    (HANDLES, MAY_NAME_WHEELS, handle, "a handle names a wheel; it reaches its entry through the shard"),
    ("", &[], length, "too long; give the next concept its own file"),
    ("", &[], marks, "a mark of unfinished work; finish it, or write an issue"),
    ("", MAY_SLEEP, sleeps, "a sleep; use virtual time, a channel or a park"),
    ("", &[], pairs, "a tuple for several statements; write each by itself"),
    ("", &[], width::wide_lines, "too wide; wrap comments and Markdown at 100 columns"),
];

pub(crate) fn command(sh: &Shell) -> Result {
    // Lists the files that git tracks or would add. A file that was deleted but not yet removed
    // from git's index cannot be read.
    let list = cmd!(sh, "git ls-files --cached --others --exclude-standard").quiet().read()?;
    let read = |path: &str| Some(File { path: path.to_owned(), text: fs::read_to_string(root().join(path)).ok()? });
    let files: Vec<File> = list.lines().filter_map(read).collect();
    let mut faults = arrows(&metadata(sh)?);
    faults.extend(RULES.iter().flat_map(|rule| check(rule, &files)));
    faults.extend(circles::circles(&files));
    let readme = files.iter().find(|file| file.path == "README.md").map_or("", |readme| &readme.text);
    faults.extend(wrong_counts(sh, readme)?);
    faults.extend(mutants::stale()?);
    report(&format!("tidy: {} rules, {} files, {} faults\n", RULES.len() + 3, files.len(), faults.len()));
    if faults.is_empty() { Ok(()) } else { Err(Failure::new(format!("\n{}", faults.join("\n")))) }
}

fn check((subject, except, breaches, advice): &Rule, files: &[File]) -> Vec<String> {
    let gone = |prefix: &&str| !files.iter().any(|file| file.path.starts_with(prefix));
    let gone = except.iter().copied().chain([*subject]).filter(gone);
    let mut faults: Vec<_> =
        gone.map(|prefix| format!("`{prefix}` is gone; remove it from xtask/src/tidy.rs")).collect();
    for file in files.iter().filter(|file| file.path.starts_with(subject)) {
        if !except.iter().any(|prefix| file.path.starts_with(prefix)) {
            faults.extend(breaches(file).iter().map(|line| format!("{}:{line}: {advice}", file.path)));
        }
    }
    faults
}

fn lines_with(lines: impl Iterator<Item = (usize, String)>, bad: impl Fn(&str) -> bool) -> Vec<usize> {
    lines.filter(|(_, line)| bad(line)).map(|(at, _)| at).collect()
}

/// Finds atomic operations without a reason for their ordering. One reason may serve several in a
/// row.
fn orderings(file: &File) -> Vec<usize> {
    let lines: Vec<&str> = file.text.lines().collect();
    let names_one = |line: &str| words(line).any(|word| ORDERINGS.contains(&word)) && !line.trim().starts_with("use ");
    let mut found = lines_with(code(file), names_one);
    found.retain(|at| !is_argued(&lines[..*at]));
    found
}

/// Returns `true` if the last line has its reason on it or above. Above the signature of a function
/// only attached comments count, because the others belong to the function before.
fn is_argued(lines: &[&str]) -> bool {
    let mut left = REACH;
    let mut above_fn = false;
    for line in lines.iter().rev() {
        if line.split_once("//").is_some_and(|(_, comment)| comment.contains("ORDERING:")) {
            return true;
        }
        let code = bare(line);
        let attached = line.trim().starts_with("//") || code.trim().starts_with("#[");
        if !attached && (above_fn || left == 0) {
            return false;
        }
        // The function is built for tests only.
        if above_fn && code.contains("#[cfg(") && words(&code).any(|word| word == "test") {
            return true;
        }
        left -= usize::from(!attached);
        above_fn |= words(&code).any(|word| word == "fn");
    }
    false
}

/// Finds lines in which a wheel names another module of the crate, a thread, a lock or a clock.
fn wheel(file: &File) -> Vec<usize> {
    let inside = file.path.trim_start_matches(WHEEL).trim_end_matches("mod.rs").trim_end_matches('/');
    // `wheel` itself is one level below the crate.
    let up = "super::".repeat(inside.split('/').filter(|name| !name.is_empty()).count() + 1);
    let leaves = |line: &str| line.split("crate::").skip(1).any(|rest| words(rest).next() != Some("wheel"));
    let foreign = |line: &str| NOT_IN_WHEEL.iter().any(|bad| line.replace("not(timer_loom)", "").contains(bad));
    lines_with(code(file), |line| leaves(line) || foreign(line) || line.contains(&up))
}

fn handle(file: &File) -> Vec<usize> {
    lines_with(code(file), |line| words(line).any(|word| word == "wheel" || word.contains("Wheel")))
}

fn length(file: &File) -> Vec<usize> {
    let lines = file.text.lines().count();
    let most = match &file.path {
        path if path.ends_with(".rs") => MOST_LINES,
        path if path.starts_with("docs/decisions/") => MOST_LINES_OF_DECISION,
        _ => usize::MAX,
    };
    if lines > most { vec![lines] } else { Vec::new() }
}

/// Finds statements such as `let (a, b) = (x, y);`, which bind or assign several values at once.
fn pairs(file: &File) -> Vec<usize> {
    let has_one = |values: &str| {
        let mut depth = 1_usize;
        let mut has_comma = false;
        for (at, c) in values.char_indices() {
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth -= 1,
                _ => has_comma |= c == ',' && depth == 1,
            }
            if depth == 0 {
                return has_comma && &values[at..] == ");";
            }
        }
        // The statement goes on in the next line.
        values.is_empty()
    };
    let starts = |line: &str| line.starts_with("let (") || line.starts_with('(');
    lines_with(code(file), |line| {
        let line = line.trim();
        starts(line) && line.split_once(") = (").is_some_and(|(_, values)| has_one(values))
    })
}

/// Finds marks of unfinished work. A mark is a word, or a word with `!` behind it. Lock files are
/// generated.
fn marks(file: &File) -> Vec<usize> {
    let marks: Vec<_> = MARKS.iter().map(|mark| mark.replace('|', "")).collect();
    let is_in =
        |line: &str, mark: &str| line.contains(mark) && words(line).any(|word| word == mark.trim_end_matches('!'));
    let lines = file.text.lines().filter(|_| !file.path.ends_with(".lock"));
    lines_with((1..).zip(lines.map(str::to_owned)), |line| marks.iter().any(|mark| is_in(line, mark)))
}

/// Finds sleeps in libraries, their tests and their doctests. Doc comments count, because doctests
/// are code; other comments do not.
fn sleeps(file: &File) -> Vec<usize> {
    let lines = file.text.lines().filter(|_| file.path.ends_with(".rs"));
    let lines = lines.map(|line| bare(&line.replace("///", "").replace("//!", "")));
    let imports = |line: &str| line.contains("thread::{") && words(line).any(|word| word == "sleep");
    let calls = |line: &str| line.contains("thread::sleep(") || line.contains("thread::sleep;");
    lines_with((1..).zip(lines), |line| calls(line) || imports(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn the_tree_keeps_the_architecture() {
        command(&crate::run::shell().unwrap()).unwrap();
    }

    #[test]
    fn a_rule_fails_without_its_subject() {
        for rule in RULES {
            let subjects = rule.1.iter().chain([&rule.0]);
            let all: Vec<File> = subjects.map(|path| file(path, "")).collect();
            assert!(check(rule, &all).is_empty() && check(rule, &[]).len() == all.len(), "{}", rule.3);
        }
        let sleepers = ["examples/a.rs", "timer-bench/a.rs", "timer-core/src/sync/system.rs", "a.rs"];
        let sleepers = sleepers.map(|path| file(path, "\nthread::sleep(A)"));
        assert_eq!(check(&RULES[5], &sleepers), [format!("a.rs:2: {}", RULES[5].3)]);
    }

    #[test]
    fn every_ordering_has_its_reason() {
        let bad = |text: &str| orderings(&file("a.rs", text));
        let call = "a\n    .compare_exchange_weak(\n        1,\n        2,\n        AcqRel,\n    );";
        for text in ["a.load(Ordering::Acquire);", "a.store(b.len(), Release);", "fence(SeqCst);", call] {
            assert!(bad(text).len() == 1 && bad(&format!("// ORDERING: it pairs.\n{text}")).is_empty(), "{text}");
        }
        for text in ["use Relaxed;", "// Relaxed", "f(\"Relaxed\");", "Ordering::Less", "mod tests {\nRelaxed"] {
            assert!(bad(text).is_empty(), "{text}");
        }
        assert!(bad(&format!("// ORDERING: counts.\n{}a.load(Relaxed);", "// and more\n".repeat(12))).is_empty());
        assert_eq!(bad(&format!("// ORDERING: counts.\n{}", "a.load(Relaxed);\n".repeat(9))), [10]);
        assert_eq!(bad("fn f() {\n    // ORDERING: counts.\n    Relaxed;\n}\nfn g() {\n    Relaxed;\n}"), [6]);
        assert!(bad("/// ORDERING: counts.\n#[inline]\nfn g() {\n    Relaxed;\n}").is_empty());
        assert!(bad("#[cfg(all(test, a))]\nfn f() {\n    Relaxed;").is_empty());
    }

    #[test]
    fn a_wheel_names_itself_only() {
        let bad = |path: &str, text: &str| wheel(&file(&format!("{WHEEL}{path}"), text));
        assert_eq!(bad("mod.rs", "use super::clock::Clock;\nfn f() { crate::worker::f() }"), [1, 2]);
        assert_eq!(bad("a/b.rs", "use super::super::Key;\nuse super::super::super::Clock;"), [2]);
        assert!(bad("a.rs", "use crate::wheel::Key;\nuse super::Key;\nuse std::mem;\n//! crate::clock").is_empty());
        assert_eq!(bad("a.rs", "use crate::{wheel::Key, queue::Inbox};\nuse super::super::clock::Clock;"), [1, 2]);
        assert_eq!(bad("a.rs", "use std::sync::Arc;\nuse core::mem;\ntracing::warn!(\"late\");"), [1, 3]);
        assert!(bad("a.rs", "#[cfg(test)]\nmod tests {\n    use std::time::Instant;\n}").is_empty());
    }

    #[test]
    fn a_handle_names_no_wheel() {
        let text = "/// Leaves the wheel.\nfn f(w: &HashedWheel<u8>) {}\nuse crate::wheel::Key;\nself.shard.unlink(a)";
        assert_eq!(handle(&file("timer-core/src/handle/timeout.rs", text)), [2, 3]);
    }

    #[test]
    fn files_are_short() {
        let bad = |path: &str, lines| length(&file(path, &"\n".repeat(lines)));
        assert_eq!((bad("a.rs", 400), bad("a.rs", 401), bad("a.csv", 401)), (vec![], vec![401], vec![]));
        assert_eq!([bad("docs/decisions/1.md", 25), bad("docs/decisions/1.md", 26)], [vec![], vec![26]]);
    }

    #[test]
    fn each_statement_stands_by_itself() {
        let bad = |line: &str| pairs(&file("a.rs", line)) == [1];
        for line in
            ["let (a, b) = (1, f(2, 3));", "    (self.a, b) = (b, \",)\");", "let (mut a, b) = (", "(a, b) = ([c], d);"]
        {
            assert!(bad(line), "{line}");
        }
        for line in ["let (a, b) = f(1, 2);", "let (a, b) = (1, 2).swap();", "let (a, b) = (f)(1);", "f(a) == (b, c);"]
        {
            assert!(!bad(line), "{line}");
        }
    }

    #[test]
    fn nothing_is_unfinished() {
        for mark in MARKS.iter().map(|mark| mark.replace('|', "")) {
            assert_eq!(marks(&file("a.md", &format!("{mark}(): c\nb{mark} x\ntodo = \"deny\""))), [1]);
        }
    }

    #[test]
    fn libraries_tests_and_doctests_do_not_sleep() {
        let text = "/// thread::sleep(A);\nfn f() { std::thread::sleep(A); }\nuse std::thread::{park, sleep};";
        let good = "/// No `thread::sleep` here.\nthread::park(); timer.sleep(a);";
        assert_eq!((sleeps(&file("a.rs", text)), sleeps(&file("a.rs", good))), (vec![1, 2, 3], vec![]));
    }
}
