//! The program: command line, run, and files.

use super::machine::Machine;
use super::plan::{SLOW, STEPS, Step};
use super::results::Results;
use super::{plots, process, summary};
use crate::peer::OURS;
use crate::registry::{PEERS, WORKLOADS};
use indicatif::{ProgressBar, ProgressStyle};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const USAGE: &str = "bench-report [--only WORKLOAD,..] [--peers PEER,..] [--quick] [--against FOLDER]

Runs all workloads on all timers and keeps the results in timer-bench/results, in a folder with the
name of the CPU. With one of the first three options, only part of that is run, and the results are
in target/bench. Ours always takes part. --quick divides sizes and times by ten and has one round.
--against compares with the results in FOLDER.";

/// The command line.
#[derive(Debug, Default)]
struct Options {
    only: Vec<String>,
    peers: Vec<String>,
    is_quick: bool,
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
    let results = measure(options, programs);
    let folder = if options.is_complete() {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("results").join(machine.folder())
    } else {
        programs.with_file_name("bench")
    };
    let table = summary::table(&results);
    save(&results, &machine, &table, &folder)?;
    print!("\n{}\n{table}", machine.text);
    if let Some(kept) = kept {
        print!("\nours, before -> now\n{}", summary::comparison(&kept, &results));
    }
    if options.is_complete() {
        // To be pasted, because no document changes by itself.
        print!("\nfigures of README.md, choosing.md and promises.md\n{}", summary::documents(&results));
    }
    println!("\nwritten to {}", folder.display());
    Ok(())
}

/// Runs all steps.
fn measure(options: &Options, programs: &Path) -> Results {
    let is_wanted = |step: &&Step| options.only.is_empty() || options.only.iter().any(|one| one == step.workload);
    let rounds = |step: &Step| if options.is_quick { 1 } else { step.rounds };
    let steps: Vec<&Step> = STEPS.iter().filter(is_wanted).collect();
    // The length is in expected seconds. The bar draws nothing if standard error is no terminal.
    let bar = ProgressBar::new(
        steps.iter().map(|step| step.seconds * (rounds(step) * options.peers(step).count()) as u64).sum(),
    );
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {msg} {elapsed}, {eta} left") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_secs(1));
    let mut results = Results::default();
    for step in steps {
        let mut slow = Vec::new();
        for round in 1..=rounds(step) {
            for peer in options.peers(step) {
                if !slow.contains(&peer) {
                    bar.set_message(format!("{} {peer} {round}/{}", step.workload, rounds(step)));
                    let begin = Instant::now();
                    results.add(process::run(programs, step, peer, options.is_quick));
                    if begin.elapsed() > SLOW && !peer.starts_with(OURS) {
                        slow.push(peer);
                    }
                }
                bar.inc(step.seconds);
            }
        }
    }
    bar.finish_and_clear();
    results
}

fn save(results: &Results, machine: &Machine, table: &str, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("results.csv"), results.to_csv())?;
    fs::write(folder.join("machine.txt"), &machine.text)?;
    fs::write(folder.join("table.md"), table)?;
    for plot in ["timers", "durable"] {
        fs::write(folder.join(format!("{plot}.svg")), plots::bars(results, plot).map_err(io::Error::other)?)?;
    }
    fs::write(folder.join("overload.svg"), plots::overload(results).map_err(io::Error::other)?)
}

#[cfg(test)]
mod tests {
    use super::Options;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(lexopt::Parser::from_args(line.split_whitespace())).map_err(|error| error.to_string())
    }

    #[test]
    fn a_run_without_options_is_complete() {
        assert!(parse("").unwrap().is_complete() && parse("--against a").unwrap().is_complete());
        assert!(!parse("--quick").unwrap().is_complete() && !parse("--only pair").unwrap().is_complete());
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
