//! W2: churn, the pattern of request timeouts. Each thread keeps a window of 1,000 timers of 30 s,
//! first in, first out. It repeatedly schedules one and cancels the oldest, 5 M pairs in all. The
//! workload runs with nothing else pending, and with a million other timers of 600 to 3600 s.
//!
//! The pairs are made in five turns, and after each turn the floor makes as many.
//! `cpu-ns/pair-floor` is the figure of the floor, and `of-the-floor` is the ratio of the timer to
//! it.
//!
//! `ns/pair` is wall time / pairs, and `cpu-ns/pair` is the CPU time of the process. `ms-drain` is
//! the time for which the timer works after the end of a turn, summed over the turns. `MiB-peak` is
//! the greatest growth of resident memory since before the churn.

use super::Stop;
use super::caller::{Counter, Run, in_parallel, room, run_here, share};
use super::floor_comparison::{FloorComparison, TURNS};
use super::out::Out;
use crate::peers::floor::Floor;
use crate::peers::{Peer, TICK};
use crate::process::{peak, reset_peak, resident, until_quiet};
use crate::random::{SplitMix64, seconds};
use crate::row::short;
use crate::settings::Settings;
use std::time::Duration;

const WINDOW: usize = 1_000;
const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn run<P: Peer>(settings: &Settings, out: &Out) -> Result<(), Stop> {
    let pairs = settings.number("n", 5_000_000, 300_000);
    for standing in settings.list("standing", &[0, 1_000_000], &[0, 100_000]) {
        for threads in settings.list("threads", &[1, 2, 4], &[1, 2, 4]) {
            once::<P>(pairs, threads, standing, out);
        }
    }
    Ok(())
}

fn once<P: Peer>(pairs: usize, threads: usize, standing: usize, out: &Out) {
    let params = format!("n={},P={threads},standing={}", short(pairs), short(standing));
    let peer = P::build(TICK);
    let others = run_here(&peer, |caller| {
        let (work, mut random, delays) = (P::work(Counter::leak()), SplitMix64::delays(0), seconds(600, 3600));
        let others = (0..standing).map(|_| caller.schedule(random.duration(&delays), &work));
        others.collect::<Vec<_>>()
    });
    until_quiet(Duration::from_secs(5));
    reset_peak();
    let before = resident();
    let floor = Floor::build(TICK);
    let (mut wall, mut cpu, mut drain, mut comparison) =
        (Duration::ZERO, Duration::ZERO, Some(Duration::ZERO), FloorComparison::default());
    for turn in 0..TURNS {
        let (count, _) = share(pairs, turn, TURNS);
        let run = churned(&peer, count, threads);
        drain = drain.zip(until_quiet(Duration::from_secs(10))).map(|(sum, drain)| sum + drain);
        run_here(&peer, |caller| run.results.into_iter().flatten().flatten().for_each(|left| caller.cancel(left)));
        until_quiet(Duration::from_secs(5));
        let of_floor = churned(&floor, count, threads);
        comparison.add(run.cpu, of_floor.cpu, count);
        wall += run.wall;
        cpu += run.cpu;
    }
    out.each(&params, wall, pairs, "ns/pair");
    out.each(&params, cpu, pairs, "cpu-ns/pair");
    comparison.report(&params, "cpu-ns/pair", out);
    out.drain(&params, drain);
    match peak().zip(before) {
        Some((peak, before)) => out.figure(&params, peak.saturating_sub(before) as f64 / 1_048_576.0, "MiB-peak"),
        None => out.unavailable(&params, "MiB-peak", "known on Linux only"),
    }
    drop(others);
    peer.stop();
}

/// Makes `pairs` pairs and returns the remaining windows.
fn churned<P: Peer>(peer: &P, pairs: usize, threads: usize) -> Run<Vec<Option<P::Handle>>> {
    let prepare = |caller: &mut P, index| {
        let work = P::work(Counter::leak());
        let mut window = room(WINDOW);
        window.fill_with(|| Some(caller.schedule(TIMEOUT, &work)));
        (work, window, share(pairs, index, threads).0)
    };
    in_parallel(peer, threads, prepare, |caller, (work, mut window, count)| {
        let mut oldest = 0;
        for _ in 0..count {
            let newest = caller.schedule(TIMEOUT, &work);
            if let Some(handle) = window[oldest].replace(newest) {
                caller.cancel(handle);
            }
            oldest = if oldest + 1 == WINDOW { 0 } else { oldest + 1 };
        }
        window
    })
}
