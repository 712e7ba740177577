//! W1: scheduling. P threads schedule N timers of 10 s to an hour, none of which expires meanwhile.
//!
//! `ns/schedule` is wall time / N, `cpu-ns/schedule` is the CPU time of the process, and `ms-drain`
//! is the time for which it works afterwards. `ns/schedule-again` repeats the work after all timers
//! were cancelled. The first time includes the page faults of memory that is new to the process.

use super::Stop;
use super::caller::{Counter, in_parallel, room, run_here, share};
use super::kept::HeapPin;
use super::out::Out;
use crate::peers::{Peer, TICK};
use crate::process::until_quiet;
use crate::random::{SplitMix64, seconds};
use crate::row::short;
use crate::settings::Settings;
use std::time::Duration;

pub(super) fn run<P: Peer>(settings: &Settings, out: &Out) -> Result<(), Stop> {
    let n = settings.number("n", 1_000_000, 100_000);
    for threads in settings.list("threads", &[1, 2, 4], &[1, 2, 4]) {
        let peer = P::build(TICK);
        let params = format!("n={},P={threads}", short(n));
        let mut pins = Vec::new();
        let first = once(&peer, n, threads, &mut pins);
        out.each(&params, first.wall, n, "ns/schedule");
        out.each(&params, first.cpu, n, "cpu-ns/schedule");
        out.drain(&params, first.drain);
        let again = once(&peer, n, threads, &mut pins);
        out.each(&params, again.wall, n, "ns/schedule-again");
        peer.stop();
    }
    Ok(())
}

struct RunTimes {
    wall: Duration,
    cpu: Duration,
    drain: Option<Duration>,
}

/// Schedules all timers, then cancels them.
fn once<P: Peer>(peer: &P, n: usize, threads: usize, pins: &mut Vec<HeapPin>) -> RunTimes {
    let delays = seconds(10, 3600);
    let prepare = |_: &mut P, index| {
        let (count, before) = share(n, index, threads);
        (P::work(Counter::leak()), SplitMix64::delays(before), room(count))
    };
    let run = in_parallel(peer, threads, prepare, |caller, (work, mut random, mut handles)| {
        for handle in &mut handles {
            *handle = Some(caller.schedule(random.duration(&delays), &work));
        }
        (handles, HeapPin::default())
    });
    let drain = until_quiet(Duration::from_secs(5));
    run_here(peer, |caller| {
        for (handles, pin) in run.results {
            pins.push(pin);
            handles.into_iter().flatten().for_each(|handle| caller.cancel(handle));
        }
    });
    until_quiet(Duration::from_secs(5));
    RunTimes { wall: run.wall, cpu: run.cpu, drain }
}
