//! What one run of a target has found, read from what libFuzzer prints.

use std::path::PathBuf;

use super::KEPT;
use crate::cargo::Failure;

/// What libFuzzer says of one run.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    target: String,
    log: PathBuf,
    /// The command that runs one input; its path is to follow.
    again: String,
    executions: u64,
    per_second: u64,
    /// Inputs, edges of the code.
    corpus: u64,
    coverage: u64,
    /// The line of the first panic and the one after it, or what libFuzzer says of a run that is too long or too large.
    what: Vec<String>,
    /// The input that has found something.
    input: Option<String>,
    pub(super) failed: bool,
}

impl Outcome {
    pub(super) fn new(target: &str, log: PathBuf, again: String) -> Self {
        Self { target: target.to_owned(), log, again, ..Self::default() }
    }

    /// Reads one line. Whether it is worth showing.
    pub(super) fn see(&mut self, line: &str) -> bool {
        let number = |after: &str| {
            let rest = line.split_once(after)?.1.trim_start();
            rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok()
        };
        let keep = |field: &mut u64, seen: Option<u64>| *field = seen.unwrap_or(*field);
        if line.starts_with('#') {
            keep(&mut self.executions, number("#"));
            keep(&mut self.per_second, number("exec/s:"));
            keep(&mut self.corpus, number("corp:"));
            keep(&mut self.coverage, number("cov:"));
            return line.contains("pulse");
        }
        keep(&mut self.executions, number("stat::number_of_executed_units:"));
        keep(&mut self.per_second, number("stat::average_exec_per_sec:"));
        if let Some((_, path)) = line.split_once("Test unit written to ") {
            self.input = Some(path.trim().to_owned());
        }
        let panics = line.starts_with("thread ") && line.contains("panicked at");
        let goes_on = matches!(&self.what[..], [first] if first.starts_with("thread "));
        let shown = goes_on || self.what.is_empty() && (panics || line.starts_with("SUMMARY"));
        if shown {
            self.what.push(line.to_owned());
        }
        shown
    }

    fn text(&self) -> String {
        let Self { target, executions, per_second, corpus, coverage, .. } = self;
        let line = format!(
            "{target:<20} {executions:>12} executions {per_second:>7}/s   corpus {corpus:>5}   coverage {coverage:>5}   "
        );
        let log = self.log.display();
        match (&self.input, self.failed) {
            (None, false) => line + "clean\n",
            // It did not come to fuzzing, or was ended from outside.
            (None, true) => format!("{line}FAILED: see {log}\n"),
            (Some(input), _) => {
                let what = self.what.join("\n    ");
                let again = format!("{} {input}", self.again);
                format!(
                    "{line}FOUND\n    {what}\n  input:   {input}\n  log:     {log}\n  again:   {again}\n  \
                     smaller: {}\n  to keep: copy it to {KEPT}/{target}\n",
                    again.replace("fuzz run", "fuzz tmin")
                )
            }
        }
    }
}

/// One line for each target, and how to see a finding again.
pub(super) fn judge(outcomes: &[Outcome]) -> Result<(), Failure> {
    println!();
    outcomes.iter().for_each(|outcome| print!("{}", outcome.text()));
    let bad: Vec<&str> = outcomes.iter().filter(|it| it.failed).map(|it| it.target.as_str()).collect();
    if bad.is_empty() { Ok(()) } else { Err(Failure::new(format!("not clean: {}", bad.join(", ")))) }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, judge};

    const CLEAN: &str = "#16384\tpulse  cov: 600 ft: 3000 corp: 500/117Kb lim: 512 exec/s: 8192 rss: 29Mb\n\
        #98410\tDONE   cov: 689 ft: 3717 corp: 804/212Kb lim: 512 exec/s: 8946 rss: 30Mb\n\
        stat::number_of_executed_units: 98410\nstat::average_exec_per_sec:     8946\n";
    const FOUND: &str = "#12\tNEW    cov: 3 ft: 4 corp: 2/9b lim: 512 exec/s: 0 rss: 30Mb L: 8/8 MS: 1 CopyPart-\n\
        thread '<unnamed>' (7) panicked at a.rs:1:2:\nassertion failed\nnote: more\n\
        artifact_prefix='a/'; Test unit written to a/crash-1\n";

    fn outcome(text: &str, failed: bool) -> Outcome {
        let mut outcome = Outcome { failed, ..Outcome::new("wheel", "wheel.log".into(), "fuzz run wheel".to_owned()) };
        for line in text.lines() {
            outcome.see(line);
        }
        outcome
    }

    #[test]
    fn a_run_without_a_finding_is_clean() {
        let outcome = outcome(CLEAN, false);
        let seen = (outcome.executions, outcome.per_second, outcome.corpus, outcome.coverage);
        assert_eq!(seen, (98410, 8946, 804, 689));
        assert!(outcome.text().ends_with("clean\n"));
        assert!(judge(&[outcome]).is_ok());
    }

    #[test]
    fn a_finding_is_shown_with_the_way_to_see_it_again() {
        let outcome = outcome(FOUND, true);
        let text = outcome.text();
        assert!(text.contains("a.rs:1:2:\n    assertion failed\n") && !text.contains("note"));
        assert!(text.contains("fuzz run wheel a/crash-1\n") && text.contains("fuzz tmin wheel a/crash-1\n"));
        assert!(judge(&[outcome]).unwrap_err().what.contains("wheel"));
    }

    #[test]
    fn a_run_that_does_not_end_is_a_finding() {
        let text = "artifact_prefix='a/'; Test unit written to a/timeout-1\nSUMMARY: libFuzzer: timeout\n";
        let text = outcome(text, true).text();
        assert!(text.contains("FOUND\n    SUMMARY: libFuzzer: timeout\n  input:   a/timeout-1\n"));
    }

    #[test]
    fn a_run_that_ends_otherwise_is_not_clean() {
        assert!(outcome("", true).text().contains("FAILED"));
        assert!(judge(&[outcome(CLEAN, false), outcome("", true)]).is_err());
    }
}
