//! Several things to do one after the other, with the time of each and what was skipped and why.

use std::time::Instant;

use xshell::Shell;

use crate::run::{Failure, Result, cargo, shell};

/// A name, and what to do: lines for [`cargo`], or what may set variables in its shell.
pub(crate) type Step = (&'static str, Work);

#[derive(Clone, Copy)]
pub(crate) enum Work {
    Cargo(&'static [&'static str]),
    Call(fn(&Shell) -> Result),
}

/// Runs them until so many have failed; the exit code is that of the first that did.
pub(crate) fn run(steps: &[Step], failures: usize) -> Result {
    let (mut table, mut code, begun) = (String::new(), None, Instant::now());
    let [mut passed, mut failed, mut skipped] = [0; 3];
    for (at, (name, work)) in steps.iter().enumerate() {
        if failed >= failures {
            table += &format!("{name:<18}     not run\n");
            continue;
        }
        eprintln!("\n== {name} ({} of {})", at + 1, steps.len());
        let start = Instant::now();
        let sh = shell()?;
        // Incremental files are for the next change, and would be a third of the folder.
        sh.set_var("CARGO_INCREMENTAL", "0");
        let done = match work {
            Work::Cargo(lines) => cargo(&sh, lines),
            Work::Call(call) => call(&sh),
        };
        let (count, verdict) = match done {
            Ok(()) => (&mut passed, "ok".to_owned()),
            Err(failure) if failure.code == 0 => (&mut skipped, failure.what),
            Err(failure) => {
                code.get_or_insert(failure.code);
                (&mut failed, format!("FAILED: {}", failure.what))
            }
        };
        *count += 1;
        let line = format!("{name:<18} {:>7.1} s   {verdict}\n", start.elapsed().as_secs_f64());
        eprint!("== {line}");
        table += &line;
    }
    let total = begun.elapsed().as_secs_f64();
    print!("\n{table}{:<18} {total:>7.1} s   {passed} passed, {failed} failed, {skipped} skipped\n", "total");
    code.map_or(Ok(()), |code| Err(Failure { code, what: String::new() }))
}

#[cfg(test)]
mod tests {
    use super::{Failure, Step, Work::Call, run};

    #[test]
    fn a_failure_stops_the_rest_and_gives_its_exit_code() {
        let step = |call| -> Step { ("a step", Call(call)) };
        let (good, absent) = (step(|_| Ok(())), step(|_| Err(Failure::skipped("no"))));
        let bad = step(|_| Err(Failure { code: 7, what: "broken".to_owned() }));
        let unreached = step(|_| panic!("a step after the one that failed"));
        assert_eq!(run(&[good, bad, unreached], 1).unwrap_err().code, 7);
        assert_eq!(run(&[bad, good, bad], usize::MAX).unwrap_err().code, 7);
        assert!(run(&[good, absent], 1).is_ok(), "what is skipped is no failure");
    }
}
