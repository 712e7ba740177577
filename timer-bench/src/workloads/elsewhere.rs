//! W13: cancelling on another thread. One thread schedules timeouts of 30 s and hands each to
//! another thread, which cancels it, 5 M in all. The timeouts go through a bounded ring in groups
//! of 64, so that the ring costs little, and about a thousand are pending. The threads run on one
//! CPU, and then each on its own CPU.
//!
//! `ns/pair` is wall time / pairs, `cpu-ns/pair` is the CPU time of the two threads, and
//! `cpu-ns/pair-all` is that of the process.

use super::Stop;
use super::caller::Counter;
use super::out::Out;
use crate::peers::{Peer, TICK};
use crate::process;
use crate::row::short;
use crate::scheduling::{cpus, pin, thread_cpu};
use crate::settings::Settings;
use std::panic::resume_unwind;
use std::sync::Barrier;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

const GROUP: usize = 64;
const RING: usize = 16;
const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn run<P: Peer>(settings: &Settings, out: &Out) -> Result<(), Stop> {
    let pairs = settings.number("n", 5_000_000, 300_000).next_multiple_of(GROUP);
    let all = cpus();
    for count in settings.list("cpus", &[1, 2], &[1, 2]) {
        let params = format!("n={},cpus={count}", short(settings.number("n", 5_000_000, 300_000)));
        match (all.first(), all.get(count.max(1) - 1)) {
            (Some(first), Some(second)) => once::<P>(pairs, [*first, *second], &params, out),
            _ => out.unavailable(&params, "ns/pair", &format!("{} CPUs can be chosen", all.len())),
        }
    }
    Ok(())
}

fn once<P: Peer>(pairs: usize, [first, second]: [usize; 2], params: &str, out: &Out) {
    let peer = P::build(TICK);
    let (give, taken) = sync_channel::<Vec<P::Handle>>(RING);
    // The memory of a group is returned and reused. Otherwise the allocator would be measured as
    // well.
    let (give_back, empty) = sync_channel::<Vec<P::Handle>>(RING);
    for _ in 0..RING {
        // There is room for all of them, and the receiver is alive.
        let _sent = give_back.send(Vec::with_capacity(GROUP));
    }
    let gate = Barrier::new(2);
    let (gate, before) = (&gate, process::cpu());
    let (scheduling, cancelling) = thread::scope(|scope| {
        let (one, other) = (peer.clone(), peer.clone());
        let schedule = move || run_on(one, first, gate, |caller| schedule_all(caller, pairs, &empty, &give));
        let cancel = move || run_on(other, second, gate, |caller| cancel_all(caller, &taken, &give_back));
        let (one, other) = (scope.spawn(schedule), scope.spawn(cancel));
        let joined = [one, other].map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        let [one, other] = joined;
        (one, other)
    });
    let all = process::cpu() - before;
    let wall = scheduling.end.max(cancelling.end) - scheduling.begin.min(cancelling.begin);
    out.each(params, wall, pairs, "ns/pair");
    out.each(params, scheduling.cpu + cancelling.cpu, pairs, "cpu-ns/pair");
    out.each(params, all, pairs, "cpu-ns/pair-all");
    peer.stop();
}

/// The times of one of the two threads.
struct ThreadTimes {
    begin: Instant,
    end: Instant,
    cpu: Duration,
}

/// Runs `body` on this thread, confined to one CPU, when the other thread is ready as well.
fn run_on<P: Peer>(peer: P, cpu: usize, gate: &Barrier, body: impl FnOnce(&mut P)) -> ThreadTimes {
    // If the system refuses, the threads run on any CPU, as in most programs.
    pin(&[cpu]);
    let context = peer.clone();
    let mut caller = peer;
    context.on_thread(move || {
        gate.wait();
        let (begin, before) = (Instant::now(), thread_cpu());
        body(&mut caller);
        ThreadTimes { begin, end: Instant::now(), cpu: thread_cpu() - before }
    })
}

fn schedule_all<P: Peer>(
    caller: &mut P,
    pairs: usize,
    empty: &Receiver<Vec<P::Handle>>,
    give: &SyncSender<Vec<P::Handle>>,
) {
    let work = P::work(Counter::leak());
    for _ in 0..pairs / GROUP {
        let Ok(mut group) = empty.recv() else { return };
        group.extend((0..GROUP).map(|_| caller.schedule(TIMEOUT, &work)));
        if give.send(group).is_err() {
            return;
        }
    }
}

fn cancel_all<P: Peer>(caller: &mut P, taken: &Receiver<Vec<P::Handle>>, give_back: &SyncSender<Vec<P::Handle>>) {
    for mut group in taken {
        group.drain(..).for_each(|handle| caller.cancel(handle));
        // At the end the receiver is gone.
        let _sent = give_back.send(group);
    }
}
