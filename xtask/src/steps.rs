//! Several things to do one after the other, with the time of each and what was skipped and why.

use std::time::Instant;

use xshell::Shell;

use crate::run::{Failure, Result, shell};

/// A name, and what to do. It may set variables in its shell.
pub(crate) type Step = (&'static str, fn(&Shell) -> Result);

/// Runs them, up to the first that fails or all; the exit code is that of the first that failed.
pub(crate) fn run(steps: &[Step], keep_going: bool) -> Result {
    let (mut table, mut code, begun) = (String::new(), None, Instant::now());
    let [mut passed, mut failed, mut skipped] = [0; 3];
    for (at, (name, step)) in steps.iter().enumerate() {
        if code.is_some() && !keep_going {
            table += &format!("{name:<18}     not run\n");
            continue;
        }
        eprintln!("\n== {name} ({} of {})", at + 1, steps.len());
        let start = Instant::now();
        let (count, verdict) = match shell().and_then(|sh| step(&sh)) {
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
    // All has been told.
    code.map_or(Ok(()), |code| Err(Failure { code, what: String::new() }))
}

#[cfg(test)]
mod tests {
    use super::{Failure, Step, run};

    #[test]
    fn a_failure_stops_the_rest_and_gives_its_exit_code() {
        let (good, absent): (Step, Step) = (("good", |_| Ok(())), ("absent", |_| Err(Failure::skipped("no"))));
        let bad: Step = ("bad", |_| Err(Failure { code: 7, what: "broken".to_owned() }));
        let unreached: Step = ("unreached", |_| panic!("a step after the one that failed"));
        assert_eq!(run(&[good, bad, unreached], false).unwrap_err().code, 7);
        assert_eq!(run(&[bad, good, bad], true).unwrap_err().code, 7);
        assert!(run(&[good, absent], false).is_ok(), "what is skipped is no failure");
    }
}
