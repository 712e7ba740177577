//! N pending timers of 10 s to an hour are cancelled by one thread in random order.
//!
//! `ns/cancel` is wall time / N. `cpu-ns/cancel` is the CPU time of the process until its threads
//! are at rest, because some timers leave work to them. The threads are woken after the last cancel
//! for the work that they would do much later. `left` is the number of timers that the timer holds
//! then.

use crate::caller::{Counter, room, run_here};
use crate::out::{Run, Stop};
use crate::peer::{Peer, TICK};
use crate::process::{cpu, until_quiet};
use crate::random::{SEED, SplitMix64, seconds};
use crate::row::short;
use std::time::{Duration, Instant};

pub(crate) fn run<P: Peer>(run: &Run) -> Result<(), Stop> {
    let n = run.settings.number("n", 1_000_000);
    let params = format!("n={}", short(n));
    let peer = P::build(TICK);
    let mut handles = room(n);
    let (wall, used) = run_here(&peer, |caller| {
        let work = P::work(Counter::leak());
        let mut random = SplitMix64::delays(0);
        let delays = seconds(10, 3600);
        for handle in &mut handles {
            *handle = Some(caller.schedule(random.duration(&delays), &work));
        }
        until_quiet(Duration::from_secs(5));
        SplitMix64::new(SEED + 1).shuffle(&mut handles);
        let begin = Instant::now();
        let before = cpu();
        for handle in handles.iter_mut().filter_map(Option::take) {
            caller.cancel(handle);
        }
        (begin.elapsed(), cpu() - before)
    });
    let before = cpu();
    peer.wake();
    until_quiet(Duration::from_secs(5));
    run.each(&params, wall, n, "ns/cancel");
    run.each(&params, used + (cpu() - before), n, "cpu-ns/cancel");
    if let Some(left) = peer.pending() {
        run.figure(&params, left as f64, "left");
    }
    peer.stop();
    Ok(())
}
