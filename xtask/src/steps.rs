//! Running steps one after the other, with a table of their times and verdicts at the end.

use std::time::Instant;

use xshell::Shell;

use crate::run::{Failure, Result, cargo, report, shell};

/// A name and its work: lines for [`cargo`], or a function with a shell whose variables it may set.
pub(crate) type Step = (&'static str, Work);

#[derive(Clone, Copy)]
pub(crate) enum Work {
    Cargo(&'static [&'static str]),
    Call(fn(&Shell) -> Result),
}

/// Runs the steps until `max_failures` of them have failed, and returns the failure of the first.
pub(crate) fn run(steps: &[Step], max_failures: usize) -> Result {
    let (mut table, mut code, begun) = (String::new(), None, Instant::now());
    let [mut passed, mut failed, mut skipped] = [0; 3];
    for (at, (name, work)) in steps.iter().enumerate() {
        if failed >= max_failures {
            table += &format!("{name:<18}     not run\n");
            continue;
        }
        report(&format!("\n== {name} ({} of {})\n", at + 1, steps.len()));
        let start = Instant::now();
        let sh = shell()?;
        // Files for incremental builds would take a third of the folder and help only the next
        // change.
        sh.set_var("CARGO_INCREMENTAL", "0");
        let done = match work {
            Work::Cargo(lines) => cargo(&sh, lines),
            Work::Call(call) => call(&sh),
        };
        let (count, verdict) = match done {
            Ok(()) => (&mut passed, "ok".to_owned()),
            Err(failure) if failure.code == 0 => (&mut skipped, failure.message),
            Err(failure) => {
                code.get_or_insert(failure.code);
                (&mut failed, format!("FAILED: {}", failure.message))
            }
        };
        *count += 1;
        let line = format!("{name:<18} {:>7.1} s   {verdict}\n", start.elapsed().as_secs_f64());
        report(&format!("== {line}"));
        table += &line;
    }
    let total = begun.elapsed().as_secs_f64();
    let line = format!("{:<18} {total:>7.1} s   {passed} passed, {failed} failed, {skipped} skipped\n", "total");
    report(&format!("\n{table}{line}"));
    code.map_or(Ok(()), |code| Err(Failure { code, message: String::new() }))
}

#[cfg(test)]
mod tests {
    use super::{Failure, Step, Work::Call, run};

    #[test]
    fn the_first_failure_gives_the_exit_code() {
        let step = |call| -> Step { ("a step", Call(call)) };
        let (good, absent) = (step(|_| Ok(())), step(|_| Err(Failure::skipped("no"))));
        let bad = step(|_| Err(Failure { code: 7, message: "broken".to_owned() }));
        let unreached = step(|_| panic!("a step after the one that failed"));
        assert_eq!(run(&[good, bad, unreached], 1).unwrap_err().code, 7);
        assert_eq!(run(&[bad, good, bad], usize::MAX).unwrap_err().code, 7);
        assert!(run(&[good, absent], 1).is_ok(), "a skipped step is no failure");
    }
}
