//! The program `bench-report`. It runs the workloads in separate processes, alternating over the
//! peers, and turns their output into tables, files and plots.
//!
//! The data flow as follows: [`options`] has the request, [`plan`] the processes that it takes,
//! [`run`] starts them and collects rows into [`results`], [`table`] and [`svg`] show the results,
//! and [`compare`] compares them with an earlier run.

pub mod compare;
pub mod goals;
pub mod machine;
pub mod options;
pub mod plan;
pub mod results;
pub mod run;
pub mod statistics;
pub mod svg;
pub mod table;
pub mod unit;

use crate::peers;
use crate::workloads;
use indicatif::{ProgressBar, ProgressStyle};
use options::Options;
use results::Results;
use run::Programs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

/// Runs the program.
pub fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let options = match Options::parse(words.iter().map(String::as_str)) {
        Ok(options) => options,
        Err(what) => {
            eprintln!("{what}\n\n{}", options::usage());
            return ExitCode::from(2);
        }
    };
    match report(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("bench-report: {what}");
            ExitCode::FAILURE
        }
    }
}

fn report(options: &Options) -> Result<(), String> {
    let folder = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("results").join(name);
    if let Some(name) = &options.redraw {
        let folder = folder(name);
        let redrawn = Results::load(&folder).and_then(|results| plots(&results, &folder));
        return redrawn.map_err(|error| format!("cannot redraw `{name}`: {error}"));
    }
    // The baseline is loaded first, so that an error does not follow a long run.
    let baseline = options.baseline.as_deref().map(|name| (name, Results::load(&folder(name))));
    let baseline = match baseline {
        Some((name, Ok(baseline))) => {
            compare::comparable(&baseline, options.size)?;
            Some((name, baseline))
        }
        Some((name, Err(error))) => return Err(format!("no baseline `{name}`: {error}")),
        None => None,
    };
    let programs = Programs::beside_this_one()?;
    let results = measure(options, &programs);
    if let Some((name, baseline)) = baseline {
        print!("{}", compare::report(name, &baseline, &results));
    }
    let name = options.save.as_deref().unwrap_or("latest");
    let folder = folder(name);
    save(&results, &folder).map_err(|error| format!("cannot write {}: {error}", folder.display()))?;
    eprintln!("written to timer-bench/results/{name}");
    Ok(())
}

/// Runs all steps. Prints the table of each workload as soon as it is complete.
fn measure(options: &Options, programs: &Programs) -> Results {
    let steps = plan::steps(options);
    let processes: usize =
        steps.iter().map(|step| step.peers(&options.peers).map(|peer| step.rounds(peer)).sum::<usize>()).sum();
    // The bar draws nothing if standard error is not a terminal.
    let bar = ProgressBar::new(processes as u64);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg} {elapsed} ({eta} left)") {
        bar.set_style(style);
    }
    let mut results = Results::new(machine::Machine::of_this(), options.size);
    let mut shown = table::header(&results.machine);
    for (name, what) in workloads::ALL {
        let mut any = false;
        for step in steps.iter().filter(|step| step.workload == *name) {
            any = true;
            for round in 1..=step.rounds {
                for peer in step.peers(&options.peers).filter(|peer| round <= step.rounds(peer)) {
                    bar.set_message(format!("{name} {peer} {round}/{}", step.rounds));
                    results.add(programs.run(step, peer, options.size));
                    bar.inc(1);
                }
            }
        }
        if any {
            shown += &table::workload(&results, name, what);
            bar.suspend(|| print!("{shown}"));
            shown.clear();
        }
    }
    bar.finish_and_clear();
    results
}

fn save(results: &Results, folder: &PathBuf) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("results.json"), results.to_json()?)?;
    fs::write(folder.join("results.csv"), results.to_csv())?;
    let mut tables = table::header(&results.machine);
    for (name, what) in workloads::ALL {
        let table = table::workload(results, name, what);
        if !table.is_empty() {
            tables += &table;
        }
    }
    plots(results, folder)?;
    fs::write(folder.join("tables.txt"), tables)
}

/// Writes a plot of each workload that was run.
fn plots(results: &Results, folder: &Path) -> io::Result<()> {
    for (name, what) in workloads::ALL.iter().filter(|(name, _)| results.of(name).next().is_some()) {
        let plot = svg::workload(results, name, what).map_err(io::Error::other)?;
        fs::write(folder.join(format!("{name}.svg")), plot)?;
    }
    Ok(())
}

/// Returns the names of all built-in peers.
fn all_peers() -> Vec<String> {
    peers::ALL.iter().map(|peer| peer.name.to_owned()).collect()
}
