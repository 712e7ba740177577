//! The program: command line, run, and files.

use super::host::{CpuTime, undisturbed};
use super::machine::Machine;
use super::plan::{GROWTH, SLOW, STEPS, Step};
use super::results::Results;
use super::{bounds, growth, plots, process, summary};
use crate::peer::OURS;
use crate::registry::{PEERS, WORKLOADS};
use indicatif::{ProgressBar, ProgressStyle};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const USAGE: &str = "bench-report [--only WORKLOAD,..] [--peers PEER,..] [--quick] [--against FOLDER]
             [--growth]

Runs all workloads on all timers and keeps the results in timer-bench/results, in a folder with the
name of the CPU. With one of the first three options, only part of that is run, and the results are
in target/bench. Results of a run of which the host took 1 % of the CPU time are there, too. Ours
always takes part. --quick divides sizes and times by ten and has one round. --against compares with
the results in FOLDER. --growth measures instead how operations grow with the number of pending
timers and of rows, and draws that.";

/// A run is not kept if the host took this share of the CPU time or more.
const MAX_STOLEN: f64 = 0.01;

/// The command line.
#[derive(Debug, Default)]
struct Options {
    only: Vec<String>,
    peers: Vec<String>,
    is_quick: bool,
    is_growth: bool,
    against: Option<PathBuf>,
}

impl Options {
    fn parse(mut parser: lexopt::Parser) -> Result<Self, lexopt::Error> {
        let mut options = Self::default();
        let list = |text: std::ffi::OsString, known: &[&str]| -> Result<Vec<String>, lexopt::Error> {
            let text = text.to_string_lossy().into_owned();
            let words: Vec<String> = text.split(',').map(str::to_owned).collect();
            match words.iter().find(|word| !known.contains(&word.as_str())) {
                Some(word) => Err(format!("no `{word}`; there are {}", known.join(", ")).into()),
                None => Ok(words),
            }
        };
        while let Some(argument) = parser.next()? {
            match argument {
                lexopt::Arg::Long("only") => {
                    options.only = list(parser.value()?, &WORKLOADS.iter().map(|(name, _)| *name).collect::<Vec<_>>())?;
                }
                lexopt::Arg::Long("peers") => {
                    options.peers = list(parser.value()?, &PEERS.iter().map(|peer| peer.name).collect::<Vec<_>>())?;
                }
                lexopt::Arg::Long("quick") => options.is_quick = true,
                lexopt::Arg::Long("growth") => options.is_growth = true,
                lexopt::Arg::Long("against") => options.against = Some(parser.value()?.into()),
                other => return Err(other.unexpected()),
            }
        }
        Ok(options)
    }

    /// Returns the peers of a step that are wanted.
    fn peers<'a>(&'a self, step: &'a Step) -> impl Iterator<Item = &'static str> + 'a {
        let takes_part = |name: &str| {
            let is_wanted = self.peers.is_empty() || name.starts_with(OURS) || self.peers.iter().any(|one| one == name);
            is_wanted && step.includes(name)
        };
        PEERS.iter().filter(move |peer| takes_part(peer.name) && peer.does(step.workload)).map(|peer| peer.name)
    }

    fn is_complete(&self) -> bool {
        self.only.is_empty() && self.peers.is_empty() && !self.is_quick
    }

    /// Returns the steps that are wanted.
    fn steps(&self) -> impl Iterator<Item = &'static Step> {
        let all = if self.is_growth { GROWTH } else { STEPS };
        all.iter().filter(|step| self.only.is_empty() || self.only.iter().any(|one| one == step.workload))
    }

    fn rounds(&self, step: &Step) -> usize {
        if self.is_quick { 1 } else { step.rounds }
    }

    /// Returns the time in seconds that a step is expected to take.
    fn expected(&self, step: &Step) -> u64 {
        let processes = self.rounds(step) * self.peers(step).count();
        step.seconds_of(self.is_quick) * processes as u64
    }
}

/// The figures of a run, and the time that it took.
#[derive(Default)]
struct Measured {
    results: Results,
    /// The CPU time of the machine during the processes whose figures are kept.
    cpu: CpuTime,
    /// The name, the expected and the real seconds of each workload.
    seconds: Vec<(&'static str, u64, f64)>,
}

impl Measured {
    fn is_disturbed(&self) -> bool {
        self.cpu.stolen() >= MAX_STOLEN
    }

    /// Describes the time that the run took.
    fn text(&self) -> String {
        let warning = if self.is_disturbed() { ". Do not trust the figures." } else { "" };
        let expected: u64 = self.seconds.iter().map(|(_, expected, _)| expected).sum();
        let real: f64 = self.seconds.iter().map(|(.., real)| real).sum();
        let each: Vec<String> =
            self.seconds.iter().map(|(name, expected, real)| format!("{name} {real:.0} ({expected})")).collect();
        format!(
            "the host took {:.2} % of the CPU time{warning}\nseconds (expected): {real:.0} ({expected}), {}\n",
            self.cpu.stolen() * 100.0,
            each.join(", ")
        )
    }

    fn add_seconds(&mut self, workload: &'static str, expected: u64, real: f64) {
        match self.seconds.iter_mut().find(|(name, ..)| *name == workload) {
            Some(entry) => {
                entry.1 += expected;
                entry.2 += real;
            }
            None => self.seconds.push((workload, expected, real)),
        }
    }
}

/// Runs the program.
pub fn main() -> ExitCode {
    let options = match Options::parse(lexopt::Parser::from_env()) {
        Ok(options) => options,
        Err(what) => {
            eprintln!("{USAGE}\n{what}");
            return ExitCode::from(2);
        }
    };
    match report(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-report: {error}");
            ExitCode::FAILURE
        }
    }
}

fn report(options: &Options) -> io::Result<()> {
    // The kept results are read first, so that an error does not follow a long run.
    let read = |folder: &PathBuf| fs::read_to_string(folder.join("results.csv")).map(|text| Results::from_csv(&text));
    let kept = options.against.as_ref().map(read).transpose()?;
    let this = std::env::current_exe()?;
    let programs = this.parent().unwrap_or(Path::new("."));
    let machine = Machine::of_this();
    let expected: u64 = options.steps().map(|step| options.expected(step)).sum();
    println!("about {} min", expected.div_ceil(60));
    let measured = measure(options, programs);
    let results = &measured.results;
    let mut folder = if options.is_complete() && !measured.is_disturbed() {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("results").join(machine.folder())
    } else {
        programs.with_file_name("bench")
    };
    let machine = machine.text + &measured.text();
    if options.is_growth {
        folder.push("growth");
        save_growth(results, &machine, &folder)?;
        println!("\n{machine}\n{}\nwritten to {}", results.to_csv(), folder.display());
        return Ok(());
    }
    let table = format!("{}\n{}", summary::table(results), bounds::table(results));
    save(results, &machine, &table, &folder)?;
    print!("\n{machine}\n{table}");
    if let Some(kept) = kept {
        print!("\nours, before -> now\n{}", summary::comparison(&kept, results));
    }
    if options.is_complete() {
        // To be pasted, because no document changes by itself.
        print!("\nfigures of README.md, choosing.md and promises.md\n{}", summary::documents(results));
    }
    println!("\nwritten to {}", folder.display());
    Ok(())
}

/// Runs all steps.
fn measure(options: &Options, programs: &Path) -> Measured {
    // The length is in expected seconds. The bar draws nothing if standard error is no terminal.
    let bar = ProgressBar::new(options.steps().map(|step| options.expected(step)).sum());
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {msg} {elapsed}, {eta} left") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_secs(1));
    let mut measured = Measured::default();
    for step in options.steps() {
        let step_begin = Instant::now();
        let mut slow = Vec::new();
        let mut peers: Vec<_> = options.peers(step).collect();
        for round in 1..=options.rounds(step) {
            for &peer in &peers {
                if !slow.contains(&peer) {
                    bar.set_message(format!("{} {peer} {round}/{}", step.workload, options.rounds(step)));
                    let mut took = Duration::ZERO;
                    let (rows, cpu) = undisturbed(|| {
                        let begin = Instant::now();
                        let run = process::run(programs, step, peer, options.is_quick);
                        took = begin.elapsed();
                        run
                    });
                    measured.results.add(rows, cpu.stolen() * 100.0);
                    measured.cpu += cpu;
                    if took > SLOW && !peer.starts_with(OURS) {
                        slow.push(peer);
                    }
                }
                bar.inc(step.seconds_of(options.is_quick));
            }
            // The first process of a round may have to wait until the host provides memory.
            if !peers.is_empty() {
                peers.rotate_left(1);
            }
        }
        measured.add_seconds(step.workload, options.expected(step), step_begin.elapsed().as_secs_f64());
    }
    bar.finish_and_clear();
    measured
}

fn save(results: &Results, machine: &str, table: &str, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("results.csv"), results.to_csv())?;
    fs::write(folder.join("machine.txt"), machine)?;
    fs::write(folder.join("table.md"), table)?;
    for plot in ["timers", "durable"] {
        fs::write(folder.join(format!("{plot}.svg")), plots::bars(results, plot).map_err(io::Error::other)?)?;
    }
    fs::write(folder.join("overload.svg"), plots::overload(results).map_err(io::Error::other)?)
}

fn save_growth(results: &Results, machine: &str, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("results.csv"), results.to_csv())?;
    fs::write(folder.join("machine.txt"), machine)?;
    fs::write(folder.join("timers.svg"), growth::timers(results).map_err(io::Error::other)?)?;
    fs::write(folder.join("durable.svg"), growth::durable(results).map_err(io::Error::other)?)
}

#[cfg(test)]
mod tests {
    use super::{CpuTime, Measured, Options};

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(lexopt::Parser::from_args(line.split_whitespace())).map_err(|error| error.to_string())
    }

    #[test]
    fn a_run_without_options_is_complete() {
        assert!(parse("").unwrap().is_complete() && parse("--against a").unwrap().is_complete());
        let growth = parse("--growth --only growth").unwrap();
        assert_eq!(growth.steps().map(|step| step.workload).collect::<Vec<_>>(), ["growth"]);
        assert!(!parse("--quick").unwrap().is_complete() && !parse("--only pair").unwrap().is_complete());
    }

    #[test]
    fn a_run_tells_its_time_and_what_the_host_took() {
        let mut measured = Measured::default();
        measured.add_seconds("pair", 10, 4.4);
        measured.add_seconds("cancel", 5, 7.0);
        measured.add_seconds("pair", 2, 1.0);
        let text = "the host took 0.00 % of the CPU time\nseconds (expected): 12 (17), pair 5 (12), cancel 7 (5)\n";
        assert_eq!((measured.text().as_str(), measured.is_disturbed()), (text, false));
        measured.cpu = CpuTime::of(200, 2);
        assert!(measured.is_disturbed() && measured.text().contains("took 1.00 % of the CPU time. Do not trust"));
    }

    #[test]
    fn a_wrong_word_is_named() {
        for (line, named) in
            [("--only parr", "`parr`"), ("--peers btrie", "`btrie`"), ("--loud", "--loud"), ("pair", "pair")]
        {
            assert!(parse(line).unwrap_err().contains(named), "{line}");
        }
    }

    #[test]
    fn ours_always_takes_part() {
        let step = super::STEPS.iter().find(|step| step.workload == "pair").unwrap();
        let options = parse("--peers btree").unwrap();
        assert_eq!(options.peers(step).collect::<Vec<_>>(), ["timer", "timer-hashed", "btree"]);
    }
}
