//! W8: cancelling. A million pending timers of 10 s to an hour are cancelled from one thread in
//! random order.
//!
//! `ns/cancel` is wall time / N. `cpu-ns/cancel` is the CPU time of the process, including that of
//! the timer's threads after the last call, until they have come to rest. A timer to which callers
//! send messages does its work there. `ms-pending` is the time from the last call until the timer
//! holds none. The workload also runs with mimalloc. A separate process measures the memory that is
//! left.

use super::Stop;
use super::caller::{Counter, room, run_here};
use super::out::{Out, millis};
use crate::peers::{Peer, TICK};
use crate::process::{cpu, cpu_of_others, until_quiet};
use crate::random::{SEED, SplitMix64, seconds};
use crate::row::short;
use crate::settings::Settings;
use std::thread;
use std::time::{Duration, Instant};

pub(super) fn run<P: Peer>(settings: &Settings, more: &str, out: &Out) -> Result<(), Stop> {
    let n = settings.number("n", 1_000_000, 100_000);
    let limit = Duration::from_millis(settings.number("ms", 2_000, 1_000) as u64);
    let params = format!("n={}{more}", short(n));
    let peer = P::build(TICK);
    let mut handles = room(n);
    let (wall, used) = run_here(&peer, |caller| {
        let (work, mut random, delays) = (P::work(Counter::leak()), SplitMix64::delays(0), seconds(10, 3600));
        for handle in &mut handles {
            *handle = Some(caller.schedule(random.duration(&delays), &work));
        }
        until_quiet(Duration::from_secs(5));
        SplitMix64::new(SEED + 1).shuffle(&mut handles);
        let (begin, before) = (Instant::now(), cpu());
        for handle in handles.iter_mut().filter_map(Option::take) {
            caller.cancel(handle);
        }
        (begin.elapsed(), cpu() - before)
    });
    let (before, back) = (cpu_of_others(), until_empty(&peer, limit));
    let rest = until_quiet(Duration::from_secs(10)).map(|_| cpu_of_others().saturating_sub(before));
    out.each(&params, wall, n, "ns/cancel");
    out.cpu_with_rest(&params, used, rest, n, "cpu-ns/cancel");
    match back {
        Ok(back) => out.figure(&params, millis(back), "ms-pending"),
        Err(why) => out.unavailable(&params, "ms-pending", &why),
    }
    peer.stop();
    Ok(())
}

/// Returns the time from now until the timer holds none. Waits for at most `limit`.
fn until_empty<P: Peer>(peer: &P, limit: Duration) -> Result<Duration, String> {
    let begin = Instant::now();
    loop {
        match peer.pending() {
            None => return Err("does not say what is pending".to_owned()),
            Some(0) => return Ok(begin.elapsed()),
            Some(left) if begin.elapsed() > limit => return Err(format!("{left} are kept until they are due")),
            Some(_) => thread::sleep(Duration::from_micros(100)),
        }
    }
}
