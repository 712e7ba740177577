//! `cargo xtask mutants`, which changes the code and expects a test to fail.
//!
//! The list in `xtask/mutants` has changes that tools do not find, which concern atomics, wake-ups
//! and protocols. Each names the test or the loom model that must catch it, or the reason why it
//! makes no difference. The changes are applied one by one in a copy of the sources. If the named
//! test passes, the unit tests, `behaviour`, `model` and the loom models run for timer-core, and
//! all tests for another crate. A change that passes them too survives.
//!
//! The changes are grouped by test program. The named tests of a program first run without a
//! change, and each change then compiles that program alone.
//!
//! If there is no filter, cargo-mutants changes the code without atomics afterwards, if it is
//! installed.

mod list;
mod plain;
mod scratch;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io::{IsTerminal, stderr};

use xshell::Shell;

use self::list::{Mutant, Program, Test};
use self::plain::plain;
use self::scratch::{Outcome, Scratch};
use crate::flags;
use crate::run::{Failure, Result, first_failure, report};

pub(crate) use list::stale;

/// The fate of a mutation.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    Caught,
    /// The named test takes too long. It waits for an event that the mutation prevents.
    Hangs,
    /// The named test passes, and another one fails.
    CaughtElsewhere(String),
    Equivalent(String),
    Survives,
}

/// Runs the list and then cargo-mutants, or only one of them. A filter without `--plain` applies to
/// the list.
pub(crate) fn command(sh: &Shell, flags: &flags::Mutants) -> Result {
    let filter = flags.filter.as_deref().unwrap_or_default();
    if flags.plain {
        // A user who asks for cargo-mutants gets an error if it cannot run.
        return plain(sh, filter, flags.minutes).map_err(|it| Failure { code: it.code.max(1), ..it });
    }
    let listed = listed(sh, filter);
    if !filter.is_empty() {
        return listed;
    }
    if let Err(failure) = &listed {
        // cargo-mutants takes hours, and this failure may be the reason to end it.
        report(&format!("the list: {}\n", failure.message));
    }
    let plain = plain(sh, "", flags.minutes).or_else(|failure| {
        report(&format!("cargo-mutants: {}\n", failure.message));
        if failure.code == 0 { Ok(()) } else { Err(failure) }
    });
    first_failure([listed, plain])
}

/// Applies the changes of the list whose titles or files contain `filter`.
pub(crate) fn listed(sh: &Shell, filter: &str) -> Result {
    let stale = stale()?;
    if !stale.is_empty() {
        return Err(Failure::new(stale.join("\n")));
    }
    let mut mutants = list::read()?;
    mutants.retain(|mutant| mutant.title.contains(filter) || mutant.file.contains(filter));
    if mutants.is_empty() {
        return Err(Failure::usage(format!("no mutation has `{filter}` in its title or file")));
    }
    mutants.sort_by(|a, b| a.caught_by.cmp(&b.caught_by));
    let scratch = Scratch::new(sh)?;
    let mut verdicts = Vec::new();
    let mut checked = None;
    for (at, mutant) in mutants.iter().enumerate() {
        let program = mutant.caught_by.as_ref().map(|test| &test.program);
        if let Some(program) = program.filter(|program| checked != Some(*program)) {
            check_tests(&scratch, program, &mutants)?;
            checked = Some(program);
        }
        show_progress(at, mutants.len(), &mutant.title);
        let verdict = judge(&scratch, mutant)?;
        if matches!(verdict, Verdict::Survives | Verdict::CaughtElsewhere(_)) {
            report(&format!("\n{}: {verdict:?}\n", mutant.title));
        }
        verdicts.push((mutant, verdict));
    }
    show_progress(mutants.len(), mutants.len(), "");
    verdicts.sort_by_key(|(mutant, _)| (&mutant.file, &mutant.title));
    report(&format!("\n{}", table(&verdicts)));
    match verdicts.iter().filter(|(_, verdict)| *verdict == Verdict::Survives).count() {
        0 => Ok(()),
        count => Err(Failure::new(format!("{count} mutations survive"))),
    }
}

/// Checks that the named tests of a program exist and pass without a mutation.
fn check_tests(scratch: &Scratch, program: &Program, mutants: &[Mutant]) -> Result {
    let tests = mutants.iter().filter_map(|mutant| mutant.caught_by.as_ref());
    let names: BTreeSet<&str> = tests.filter(|test| test.program == *program).map(|test| test.name.as_str()).collect();
    report(&format!("{} tests of `{program}` without a mutation\n", names.len()));
    let names: Vec<&str> = names.into_iter().collect();
    // A failure that does not repeat is reported and must not end a run of an hour.
    for _ in 0..2 {
        let outcome = scratch.run(program, &names)?;
        if outcome == Outcome::Passed {
            return Ok(());
        }
        report(&format!("{outcome:?} without a mutation: {:?}\n", scratch.failed_tests()?));
    }
    Err(Failure::new(format!("a test of `{program}` fails without a mutation")))
}

fn judge(scratch: &Scratch, mutant: &Mutant) -> Result<Verdict> {
    if let Some(reason) = &mutant.equivalent {
        return Ok(Verdict::Equivalent(reason.clone()));
    }
    let Some(Test { program, name }) = &mutant.caught_by else { return Ok(Verdict::Survives) };
    scratch.with(mutant, || match scratch.run(program, &[name])? {
        Outcome::Failed => Ok(Verdict::Caught),
        Outcome::Hung => Ok(Verdict::Hangs),
        Outcome::Passed => {
            for program in others(mutant) {
                if scratch.run(&program, &[])? != Outcome::Passed {
                    return Ok(Verdict::CaughtElsewhere(program.to_string()));
                }
            }
            Ok(Verdict::Survives)
        }
    })
}

/// Returns the programs that may catch a mutation which its own test does not catch.
fn others(mutant: &Mutant) -> Vec<Program> {
    let name = mutant.file.split('/').next().unwrap_or_default();
    if name == "timer-durable" {
        // The tests of the stores run its engine on a real clock.
        let stores = "-p timer-durable -p timer-durable-sqlite -p timer-durable-postgres";
        return vec![Program::Tests(format!("{stores} --all-features --tests"))];
    }
    if name != "timer-core" {
        return vec![Program::Tests(format!("-p {name} --all-features --tests"))];
    }
    let tests = ["-p timer-core --lib", "-p timer-core --test behaviour --test model"];
    tests.map(|words| Program::Tests(words.to_owned())).into_iter().chain([Program::Models]).collect()
}

/// Shows a bar, or a line for each mutation if the output is not a terminal.
fn show_progress(done: usize, all: usize, title: &str) {
    const WIDTH: usize = 24;
    let bar = "#".repeat(done * WIDTH / all.max(1));
    let line = format!("[{bar:.<WIDTH$}] {done:>3} of {all}  {title:.80}");
    if stderr().is_terminal() { eprint!("\r{line:<120}") } else { report(&format!("{line}\n")) }
}

/// Returns the results, one line for each change, and their sum.
fn table(verdicts: &[(&Mutant, Verdict)]) -> String {
    let count = |is_counted: fn(&Verdict) -> bool| verdicts.iter().filter(|(_, it)| is_counted(it)).count();
    let mut text = String::new();
    for (mutant, verdict) in verdicts {
        let test = mutant.caught_by.as_ref().map_or("", |test| &test.name);
        let result = match verdict {
            Verdict::Caught => format!("caught by {test}"),
            Verdict::Hangs => format!("caught by {test}, which hangs"),
            Verdict::CaughtElsewhere(program) => format!("caught by a test of {program}, not by {test}"),
            Verdict::Equivalent(reason) => format!("equivalent, because {reason}"),
            Verdict::Survives => "SURVIVES".to_owned(),
        };
        let _ = writeln!(text, "{}: {}: {result}", mutant.file, mutant.title);
    }
    let equivalent = count(|it| matches!(it, Verdict::Equivalent(_)));
    let surviving = count(|it| *it == Verdict::Survives);
    let caught = verdicts.len() - equivalent - surviving;
    let _ = writeln!(text, "{caught} caught, {equivalent} equivalent, {surviving} survive");
    text
}
