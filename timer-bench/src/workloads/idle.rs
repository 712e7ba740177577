//! A timer with nothing due, first with one timer of an hour, then with a million of 600 to 3600 s.
//!
//! `switches/s` is the number of times that the threads went to sleep, and so had been awake.
//! `cpu-ms/s` is the CPU time of the process.

use crate::caller::{Counter, run_here};
use crate::out::{Run, Stop, millis};
use crate::peer::{Peer, TICK};
use crate::process;
use crate::random::{SplitMix64, seconds};
use crate::row::short;
use std::thread;
use std::time::{Duration, Instant};

pub(crate) fn run<P: Peer>(run: &Run) -> Result<(), Stop> {
    let time = run.settings.millis("ms", 3_000);
    for n in [1, run.settings.number("n", 1_000_000)] {
        let peer = P::build(TICK);
        let params = format!("n={}", short(n));
        let handles = run_here(&peer, |caller| {
            let work = P::work(Counter::leak());
            let mut random = SplitMix64::delays(0);
            let delays = seconds(600, 3600);
            (0..n).map(|_| caller.schedule(random.duration(&delays), &work)).collect::<Vec<_>>()
        });
        process::until_quiet(Duration::from_secs(3));
        let begin = Instant::now();
        let switches = process::voluntary_switches();
        let cpu = process::cpu();
        thread::sleep(time);
        let cpu = process::cpu() - cpu;
        let seconds = begin.elapsed().as_secs_f64();
        let switches = switches.zip(process::voluntary_switches());
        let rate = switches.map(|(before, after)| after.saturating_sub(before) as f64 / seconds);
        run.known(&params, rate, "switches/s");
        run.figure(&params, millis(cpu) / seconds, "cpu-ms/s");
        drop(handles);
        peer.stop();
    }
    Ok(())
}
