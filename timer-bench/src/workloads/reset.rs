//! W9: resets. Each thread has 1,000 connections, and each packet moves its connection's timeout to
//! 30 s from now, 5 M packets in all. The connections of a thread get their packets in turn. The
//! workload also runs with a million connections.
//!
//! `ns/reset` is wall time / packets, and `cpu-ns/reset` is the CPU time of the process. The
//! packets come in five turns. After each turn the floor, with one clock reading and one atomic
//! addition, handles as many, which gives `cpu-ns/reset-floor` and `of-the-floor`.

use super::Stop;
use super::caller::{Counter, Run, in_parallel, share};
use super::floor_comparison::{FloorComparison, TURNS};
use super::out::Out;
use crate::peers::floor::Floor;
use crate::peers::{Peer, TICK};
use crate::row::short;
use crate::settings::Settings;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The default number of connections per thread.
const CONNECTIONS: usize = 1_000;
const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn run<P: Peer>(settings: &Settings, out: &Out) -> Result<(), Stop> {
    if let Some(why) = P::NO_RESET {
        return Err(Stop::Unavailable(why.to_owned()));
    }
    let packets = settings.number("n", 5_000_000, 300_000);
    for connections in settings.list("live", &[CONNECTIONS], &[CONNECTIONS]) {
        for threads in settings.list("threads", &[1, 2, 4], &[1, 2, 4]) {
            let live = if connections == CONNECTIONS { String::new() } else { format!(",live={}", short(connections)) };
            once::<P>(packets, threads, connections, &format!("n={},P={threads}{live}", short(packets)), out);
        }
    }
    Ok(())
}

fn once<P: Peer>(packets: usize, threads: usize, connections: usize, params: &str, out: &Out) {
    let (peer, floor) = (P::build(TICK), Floor::build(TICK));
    let (mut wall, mut cpu, mut comparison) = (Duration::ZERO, Duration::ZERO, FloorComparison::default());
    let mut live = connected(&peer, connections, threads);
    let mut live_floor = connected(&floor, connections, threads);
    for turn in 0..TURNS {
        let (count, _) = share(packets, turn, TURNS);
        let run = pushed(&peer, count, &mut live);
        let of_floor = pushed(&floor, count, &mut live_floor);
        comparison.add(run.cpu, of_floor.cpu, count);
        wall += run.wall;
        cpu += run.cpu;
    }
    out.each(params, wall, packets, "ns/reset");
    out.each(params, cpu, packets, "cpu-ns/reset");
    comparison.report(params, "cpu-ns/reset", out);
    drop(live);
    peer.stop();
}

/// The connections of each thread, and the index of the connection that gets the next packet.
type Connections<P> = Vec<(Vec<<P as Peer>::Handle>, usize)>;

fn connected<P: Peer>(peer: &P, connections: usize, threads: usize) -> Connections<P> {
    let schedule = |caller: &mut P, _| {
        let work = P::work(Counter::leak());
        (0..connections).map(|_| caller.schedule(TIMEOUT, &work)).collect()
    };
    let run = in_parallel(peer, threads, schedule, |_, handles: Vec<P::Handle>| (handles, 0));
    run.results
}

fn pushed<P: Peer>(peer: &P, packets: usize, live: &mut Connections<P>) -> Run<()> {
    let threads = live.len();
    let all: Vec<_> = std::mem::take(live).into_iter().map(|one| Mutex::new(Some(one))).collect();
    let take = |_: &mut P, index: usize| {
        let mut one = all[index].lock().unwrap_or_else(PoisonError::into_inner);
        (one.take().unwrap_or_default(), share(packets, index, threads).0)
    };
    let run = in_parallel(peer, threads, take, |caller, ((mut connections, mut next), count)| {
        for _ in 0..count {
            caller.reset(&mut connections[next], TIMEOUT);
            next = if next + 1 == connections.len() { 0 } else { next + 1 };
        }
        (connections, next)
    });
    *live = run.results;
    Run { results: Vec::new(), wall: run.wall, cpu: run.cpu }
}
