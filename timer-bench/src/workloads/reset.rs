//! Each thread has a thousand connections, or `--live` many, and each packet moves its connection's
//! timeout to 30 s from now. The connections of a thread get their packets in turn.
//!
//! `ns/reset` is wall time / N, and `cpu-ns/reset` is the CPU time of the process.

use crate::caller::{Counter, in_parallel, share};
use crate::out::{Run, Stop};
use crate::peer::{Peer, TICK};
use crate::row::short;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) fn run<P: Peer>(run: &Run) -> Result<(), Stop> {
    if let Some(why) = P::NO_RESET {
        return Err(Stop::because(why));
    }
    let packets = run.settings.number("n", 2_000_000);
    let live = run.settings.choice("live", 1_000).max(1);
    for threads in run.settings.list("threads", &[1, 2]) {
        let peer = P::build(TICK);
        let prepare = |caller: &mut P, index| {
            let work = P::work(Counter::leak());
            let connections: Vec<_> = (0..live).map(|_| caller.schedule(TIMEOUT, &work)).collect();
            (connections, share(packets, index, threads).0)
        };
        let calls = in_parallel(&peer, threads, prepare, |caller, (mut connections, count)| {
            let mut next = 0;
            for _ in 0..count {
                caller.reset(&mut connections[next], TIMEOUT);
                next = if next + 1 == live { 0 } else { next + 1 };
            }
            connections
        });
        let params = format!("n={},threads={threads},live={}", short(packets), short(live));
        run.each(&params, calls.wall, packets, "ns/reset");
        run.each(&params, calls.cpu, packets, "cpu-ns/reset");
        drop(calls);
        peer.stop();
    }
    Ok(())
}
