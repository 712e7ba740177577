//! Several things to do one after the other, with the time of each and what was skipped and why.

use std::time::Instant;

use xshell::Shell;

use crate::run::{Failure, Result};

/// What became of a step that did not fail.
pub(crate) enum Outcome {
    Passed,
    /// Why, and how to get what is missing.
    Skipped(String),
}

pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&Shell) -> Result<Outcome>,
}

/// Runs them, up to the first that fails or all; the exit code is that of the first that failed.
pub(crate) fn run(sh: &Shell, steps: &[&Step], keep_going: bool) -> Result {
    let (mut lines, mut code, begun) = (String::new(), None, Instant::now());
    let [mut passed, mut failed, mut skipped] = [0; 3];
    for (at, step) in steps.iter().enumerate() {
        if code.is_some() && !keep_going {
            lines += &format!("{:<18}    not run\n", step.name);
            continue;
        }
        eprintln!("\n== {} ({} of {})", step.name, at + 1, steps.len());
        let start = Instant::now();
        let (count, verdict) = match (step.run)(sh) {
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
        lines += &line;
    }
    let total = begun.elapsed().as_secs_f64();
    print!("\n{lines}{:<18} {total:>7.1} s   {passed} passed, {failed} failed, {skipped} skipped\n", "total");
    // All has been told.
    code.map_or(Ok(()), |code| Err(Failure { code, what: String::new() }))
}

#[cfg(test)]
mod tests {
    use super::{Failure, Outcome, Step, run};
    use crate::run::shell;

    const GOOD: Step = Step { name: "good", run: |_| Ok(Outcome::Passed) };
    const ABSENT: Step = Step { name: "absent", run: |_| Ok(Outcome::Skipped("not here".to_owned())) };
    const BAD: Step = Step { name: "bad", run: |_| Err(Failure { code: 7, what: "broken".to_owned() }) };
    const UNREACHED: Step = Step { name: "unreached", run: |_| panic!("a step after the one that failed") };

    #[test]
    fn a_failure_stops_the_rest_and_gives_its_exit_code() {
        let sh = &shell().unwrap();
        assert_eq!(run(sh, &[&GOOD, &BAD, &UNREACHED], false).unwrap_err().code, 7);
        assert_eq!(run(sh, &[&BAD, &GOOD, &BAD], true).unwrap_err().code, 7);
        assert!(run(sh, &[&GOOD, &ABSENT], false).is_ok(), "what is skipped is no failure");
    }
}
