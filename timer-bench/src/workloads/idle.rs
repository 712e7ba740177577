//! W5 and W6: the cost of an idle timer over 10 s. W5 has one timer of an hour, and W6 has a
//! million of 600 to 3600 s.
//!
//! `switches/s` is the number of times that the threads went to sleep, and so had been awake.
//! `cpu-ms/s` is the CPU time of the process.

use super::Stop;
use super::caller::{Counter, run_here};
use super::out::{Out, millis};
use crate::peers::{Peer, TICK};
use crate::process;
use crate::random::{SplitMix64, seconds};
use crate::row::short;
use crate::settings::Settings;
use std::thread;
use std::time::{Duration, Instant};

/// Runs W5.
pub(super) fn one<P: Peer>(settings: &Settings, out: &Out) -> Result<(), Stop> {
    let peer = P::build(TICK);
    let hour = Duration::from_secs(3600);
    let handle = run_here(&peer, |caller| caller.schedule(hour, &P::work(Counter::leak())));
    rest(settings, "n=1", out);
    drop(handle);
    peer.stop();
    Ok(())
}

/// Runs W6.
pub(super) fn standing<P: Peer>(settings: &Settings, out: &Out) -> Result<(), Stop> {
    let n = settings.number("n", 1_000_000, 100_000);
    let peer = P::build(TICK);
    let handles = run_here(&peer, |caller| {
        let (work, mut random, delays) = (P::work(Counter::leak()), SplitMix64::delays(0), seconds(600, 3600));
        let handles = (0..n).map(|_| caller.schedule(random.duration(&delays), &work));
        handles.collect::<Vec<_>>()
    });
    rest(settings, &format!("n={}", short(n)), out);
    drop(handles);
    peer.stop();
    Ok(())
}

/// Sleeps, and reports the resources that the process used meanwhile.
fn rest(settings: &Settings, params: &str, out: &Out) {
    let time = Duration::from_millis(settings.number("ms", 10_000, 1_000) as u64);
    process::until_quiet(Duration::from_secs(3));
    let switches = process::voluntary_switches();
    let (begin, cpu) = (Instant::now(), process::cpu());
    thread::sleep(time);
    let (cpu, seconds) = (process::cpu() - cpu, begin.elapsed().as_secs_f64());
    match switches.zip(process::voluntary_switches()) {
        Some((before, after)) => out.figure(params, after.saturating_sub(before) as f64 / seconds, "switches/s"),
        None => out.unavailable(params, "switches/s", "known on Linux only"),
    }
    out.figure(params, millis(cpu) / seconds, "cpu-ms/s");
}
