//! Several things to do one after the other, with the time of each and what was skipped and why.

use std::time::Instant;

use xshell::Shell;

use crate::run::{Failure, Result, cargo, shell};

/// What became of a step that did not fail.
pub(crate) enum Outcome {
    Passed,
    /// Why, and how to get what is missing.
    Skipped(String),
}

pub(crate) fn passed(result: Result) -> Result<Outcome> {
    result.map(|()| Outcome::Passed)
}

pub(crate) fn skipped(why: &str) -> Result<Outcome> {
    Ok(Outcome::Skipped(why.to_owned()))
}

pub(crate) struct Step {
    pub(crate) name: &'static str,
    lines: &'static [&'static str],
    call: fn(&Shell) -> Result<Outcome>,
}

/// A step that runs lines of cargo.
pub(crate) const fn lines(name: &'static str, lines: &'static [&'static str]) -> Step {
    Step { name, lines, call: |_| Ok(Outcome::Passed) }
}

pub(crate) const fn call(name: &'static str, call: fn(&Shell) -> Result<Outcome>) -> Step {
    Step { name, lines: &[], call }
}

/// Runs them, up to the first that fails or all; the exit code is that of the first that failed.
pub(crate) fn run(steps: &[&Step], keep_going: bool) -> Result {
    let (mut table, mut code, begun) = (String::new(), None, Instant::now());
    let [mut passed, mut failed, mut skipped] = [0; 3];
    for (at, step) in steps.iter().enumerate() {
        if code.is_some() && !keep_going {
            table += &format!("{:<18}     not run\n", step.name);
            continue;
        }
        eprintln!("\n== {} ({} of {})", step.name, at + 1, steps.len());
        // A shell of its own, since a step may set variables.
        let (start, sh) = (Instant::now(), &shell()?);
        let lines = step.lines.iter().try_for_each(|line| cargo(sh, line, &[]));
        let (count, verdict) = match lines.and_then(|()| (step.call)(sh)) {
            Ok(Outcome::Passed) => (&mut passed, "ok".to_owned()),
            Ok(Outcome::Skipped(why)) => (&mut skipped, format!("skipped: {why}")),
            Err(failure) => {
                code.get_or_insert(failure.code);
                (&mut failed, format!("FAILED: {}", failure.what))
            }
        };
        *count += 1;
        let line = format!("{:<18} {:>7.1} s   {verdict}\n", step.name, start.elapsed().as_secs_f64());
        eprint!("== {line}");
        table += &line;
    }
    let total = begun.elapsed().as_secs_f64();
    print!("\n{table}{:<18} {total:>7.1} s   {passed} passed, {failed} failed, {skipped} skipped\n", "total");
    // All has been told.
    code.map_or(Ok(()), |code| Err(Failure { code, what: String::new() }))
}

#[cfg(test)]
mod tests {
    use super::{Failure, call, passed, run, skipped};

    #[test]
    fn a_failure_stops_the_rest_and_gives_its_exit_code() {
        let (good, absent) = (call("good", |_| passed(Ok(()))), call("absent", |_| skipped("no")));
        let bad = call("bad", |_| Err(Failure { code: 7, what: "broken".to_owned() }));
        let unreached = call("unreached", |_| panic!("a step after the one that failed"));
        assert_eq!(run(&[&good, &bad, &unreached], false).unwrap_err().code, 7);
        assert_eq!(run(&[&bad, &good, &bad], true).unwrap_err().code, 7);
        assert!(run(&[&good, &absent], false).is_ok(), "what is skipped is no failure");
    }
}
