//! Running steps, with a table of their times and verdicts at the end.
//!
//! The steps of a phase run one after the other. A second row of steps runs beside them, because
//! many steps wait or use one core. Its output goes to files, which are printed between the steps
//! of the first row.

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use xshell::Shell;

use crate::cargo::cargo;
use crate::run::{Failure, Result, into_file, report, shell, target_dir, with_cpu};

/// A name and its work: lines for [`cargo`], or a function with a shell whose variables it may set.
pub(crate) type Step = (&'static str, Work);

#[derive(Clone, Copy)]
pub(crate) enum Work {
    Cargo(&'static [&'static str]),
    Call(fn(&Shell) -> Result),
}

/// A phase begins when the one before has ended.
#[derive(Default)]
pub(crate) struct Phase {
    pub(crate) steps: Vec<Step>,
    /// The steps that run beside the others.
    pub(crate) second_row: Vec<Step>,
}

/// Runs the phases until `max_failures` steps have failed. Returns the exit code of the first
/// failure with an empty message, because the message is printed already.
///
/// More seconds of CPU than the budget are a warning, because machines differ.
pub(crate) fn run(phases: &[Phase], max_failures: usize, budget: f64) -> Result {
    let begun = Instant::now();
    let all = phases.iter().map(|phase| phase.steps.len() + phase.second_row.len()).sum();
    let run = Run { all, max_failures, results: Mutex::default() };
    let mut first = 0;
    for phase in phases {
        let second = first + phase.steps.len();
        thread::scope(|scope| {
            scope.spawn(|| (second..).zip(&phase.second_row).for_each(|(at, step)| run.step_into_file(at, step)));
            (first..).zip(&phase.steps).for_each(|(at, step)| run.step(at, step));
        });
        run.print_files();
        first = second + phase.second_row.len();
    }
    let mut results = run.results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.lines.sort_unstable();
    let table: String = results.lines.into_iter().map(|(_, line)| line).collect();
    let [passed, failed, skipped] = [results.passed, results.failed, results.skipped];
    let verdict = format!("{passed} passed, {failed} failed, {skipped} skipped");
    report(&format!("\n{table}{}", line("total", begun, results.cpu, &verdict)));
    if results.cpu > budget {
        report(&format!("The budget is {budget:.0} s of CPU. CONTRIBUTING.md says what to do.\n"));
    }
    results.code.map_or(Ok(()), |code| Err(Failure { code, message: String::new() }))
}

/// Returns a line of the table.
fn line(name: &str, start: Instant, cpu: f64, verdict: &str) -> String {
    format!("{name:<18} {:>7.1} s {cpu:>7.1} s CPU   {verdict}\n", start.elapsed().as_secs_f64())
}

struct Run {
    /// The number of steps.
    all: usize,
    max_failures: usize,
    results: Mutex<Results>,
}

#[derive(Default)]
struct Results {
    /// The lines of the table with the numbers of their steps.
    lines: Vec<(usize, String)>,
    passed: usize,
    failed: usize,
    skipped: usize,
    /// The seconds of CPU of all steps.
    cpu: f64,
    /// The exit code of the first failure.
    code: Option<u8>,
    /// The files of ended steps that are not printed yet.
    files: Vec<PathBuf>,
}

impl Run {
    /// Runs a step of the first row.
    fn step(&self, at: usize, step: &Step) {
        if self.can_start(at, step) {
            self.execute(at, step);
        }
        self.print_files();
    }

    /// Runs a step and keeps its output in a file until it has ended.
    fn step_into_file(&self, at: usize, step: &Step) {
        if self.can_start(at, step) {
            let folder = target_dir().join("steps");
            let path = folder.join(format!("{}.log", step.0));
            let created = fs::create_dir_all(&folder).map_err(Failure::from);
            match created.and_then(|()| into_file(&path, || self.execute(at, step))) {
                Ok(()) => self.change(|results| results.files.push(path)),
                Err(failure) => self.record(at, step, Instant::now(), (Err(failure), 0.0)),
            }
        }
    }

    fn can_start(&self, at: usize, (name, _): &Step) -> bool {
        self.change(|results| {
            let can_start = results.failed < self.max_failures;
            if !can_start {
                results.lines.push((at, format!("{name:<18} not run\n")));
            }
            can_start
        })
    }

    fn execute(&self, at: usize, step: &Step) {
        let (name, work) = step;
        report(&format!("\n== {name} ({} of {})\n", at + 1, self.all));
        let start = Instant::now();
        let work = || {
            let sh = shell()?;
            // Files for incremental builds would take a third of the folder and help only the next
            // change.
            sh.set_var("CARGO_INCREMENTAL", "0");
            match work {
                Work::Cargo(lines) => cargo(&sh, lines),
                Work::Call(call) => call(&sh),
            }
        };
        self.record(at, step, start, with_cpu(work));
    }

    fn record(&self, at: usize, (name, _): &Step, start: Instant, (done, cpu): (Result, f64)) {
        self.change(|results| {
            let (count, verdict) = match done {
                Ok(()) => (&mut results.passed, "ok".to_owned()),
                Err(failure) if failure.code == 0 => (&mut results.skipped, failure.message),
                Err(failure) => {
                    results.code.get_or_insert(failure.code);
                    (&mut results.failed, format!("FAILED: {}", failure.message))
                }
            };
            *count += 1;
            results.cpu += cpu;
            let line = line(name, start, cpu, &verdict);
            report(&format!("== {line}"));
            results.lines.push((at, line));
        });
    }

    fn print_files(&self) {
        for path in self.change(|results| std::mem::take(&mut results.files)) {
            report(&fs::read(&path).map_or_else(|error| error.to_string(), |it| String::from_utf8_lossy(&it).into()));
        }
    }

    fn change<R>(&self, change: impl FnOnce(&mut Results) -> R) -> R {
        change(&mut self.results.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};
    use std::time::Duration;

    use super::{Failure, Phase, Step, Work::Call, run};

    const NO_BUDGET: f64 = f64::INFINITY;

    fn step(call: fn(&xshell::Shell) -> super::Result) -> Step {
        ("a step", Call(call))
    }

    #[test]
    fn the_first_failure_gives_the_exit_code() {
        let in_turn = |steps: &[Step]| [Phase { steps: steps.to_vec(), second_row: Vec::new() }];
        let good = step(|_| Ok(()));
        let absent = step(|_| Err(Failure::skipped("no")));
        let bad = step(|_| Err(Failure { code: 7, message: "broken".to_owned() }));
        let unreached = step(|_| panic!("a step after the one that failed"));
        assert_eq!(run(&in_turn(&[good, bad, unreached]), 1, NO_BUDGET).unwrap_err().code, 7);
        assert_eq!(run(&in_turn(&[bad, good, bad]), usize::MAX, NO_BUDGET).unwrap_err().code, 7);
        assert!(run(&in_turn(&[good, absent]), 1, NO_BUDGET).is_ok(), "a skipped step is no failure");
        let [phase] = in_turn(&[bad]);
        let unreached = Phase { steps: vec![unreached], second_row: vec![unreached] };
        assert_eq!(run(&[phase, unreached], 1, NO_BUDGET).unwrap_err().code, 7);
    }

    #[test]
    fn two_rows_of_steps_run_at_the_same_time() {
        static MET: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());
        let meet = step(|_| {
            let mut met = MET.0.lock().unwrap();
            *met += 1;
            MET.1.notify_all();
            let (_met, result) = MET.1.wait_timeout_while(met, Duration::from_secs(60), |met| *met < 2).unwrap();
            if result.timed_out() { Err(Failure::new("the other row did not run")) } else { Ok(()) }
        });
        let bad = step(|_| Err(Failure { code: 9, message: "broken".to_owned() }));
        assert!(run(&[Phase { steps: vec![meet], second_row: vec![meet] }], 1, NO_BUDGET).is_ok());
        assert_eq!(run(&[Phase { steps: Vec::new(), second_row: vec![bad] }], 1, NO_BUDGET).unwrap_err().code, 9);
    }
}
