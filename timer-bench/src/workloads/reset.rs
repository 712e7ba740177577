//! W9: each thread has 1,000 connections, and each packet pushes its connection's timeout back to 30 s; 5 M packets in all.
//!
//! `ns/reset` is wall time / packets; `cpu-ns/reset` is the CPU time of the process.

use super::Stop;
use super::caller::{Counter, in_parallel, share};
use super::out::Out;
use crate::peers::{Peer, TICK};
use crate::row::short;
use crate::settings::Settings;
use std::time::Duration;

const CONNECTIONS: usize = 1_000;
const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn run<P: Peer>(settings: &Settings, out: &Out) -> Result<(), Stop> {
    if let Some(why) = P::NO_RESET {
        return Err(Stop::Unavailable(why.to_owned()));
    }
    let packets = settings.number("n", 5_000_000, 300_000);
    for threads in settings.list("threads", &[1, 2, 4], &[1, 2, 4]) {
        let params = format!("n={},P={threads}", short(packets));
        let peer = P::build(TICK);
        let prepare = |caller: &mut P, index| {
            let work = P::work(Counter::leak());
            let connections = (0..CONNECTIONS).map(|_| caller.schedule(TIMEOUT, &work));
            (connections.collect::<Vec<_>>(), share(packets, index, threads).0)
        };
        let run = in_parallel(&peer, threads, prepare, |caller, (mut connections, count)| {
            let mut connection = 0;
            for _ in 0..count {
                caller.reset(&mut connections[connection], TIMEOUT);
                connection = if connection + 1 == CONNECTIONS { 0 } else { connection + 1 };
            }
            connections
        });
        out.each(&params, run.wall, packets, "ns/reset");
        out.each(&params, run.cpu, packets, "cpu-ns/reset");
        drop(run.results);
        peer.stop();
    }
    Ok(())
}
