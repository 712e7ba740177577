//! Threads schedule N timers of 10 s to an hour, none of which expires in that time.
//!
//! `ns/call` is wall time / N, and `cpu-ns/call` is the CPU time of the process until it is at
//! rest, because some timers leave work to other threads. Both include the page faults of memory
//! that is new to the process.

use crate::caller::{Counter, in_parallel, room, run_here, share};
use crate::out::{Run, Stop};
use crate::peer::{Peer, TICK};
use crate::process::{cpu, until_quiet};
use crate::random::{SplitMix64, seconds};
use crate::row::short;
use std::time::Duration;

pub(crate) fn run<P: Peer>(run: &Run) -> Result<(), Stop> {
    let n = run.settings.number("n", 1_000_000);
    for threads in run.settings.list("threads", &[1, 2]) {
        let peer = P::build(TICK);
        let params = format!("n={},threads={threads}", short(n));
        let (wall, cpu) = once(&peer, n, threads);
        run.each(&params, wall, n, "ns/call");
        run.each(&params, cpu, n, "cpu-ns/call");
        peer.stop();
    }
    Ok(())
}

/// Schedules all timers, then cancels them. Returns wall time and CPU time of the former.
fn once<P: Peer>(peer: &P, n: usize, threads: usize) -> (Duration, Duration) {
    let delays = seconds(10, 3600);
    let prepare = |_: &mut P, index| {
        let (count, before) = share(n, index, threads);
        (P::work(Counter::leak()), SplitMix64::delays(before), room(count))
    };
    let calls = in_parallel(peer, threads, prepare, |caller, (work, mut random, mut handles)| {
        for handle in &mut handles {
            *handle = Some(caller.schedule(random.duration(&delays), &work));
        }
        handles
    });
    let before = cpu();
    until_quiet(Duration::from_secs(5));
    let rest = cpu() - before;
    run_here(peer, |caller| {
        calls.results.into_iter().flatten().flatten().for_each(|handle| caller.cancel(handle));
    });
    until_quiet(Duration::from_secs(5));
    (calls.wall, calls.cpu + rest)
}
