//! The pattern of request timeouts. Each thread keeps a thousand timers of 30 s. It repeatedly
//! schedules one and cancels the oldest. With `--standing`, other timers of 600 to 3600 s are
//! pending.
//!
//! `ns/pair` is wall time / N, and `cpu-ns/pair` is the CPU time of the process.

use crate::caller::{Counter, in_parallel, room, run_here, share};
use crate::out::{Run, Stop};
use crate::peer::{Peer, TICK};
use crate::process::until_quiet;
use crate::random::{SplitMix64, seconds};
use crate::row::short;
use std::time::Duration;

const WINDOW: usize = 1_000;
const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) fn run<P: Peer>(run: &Run) -> Result<(), Stop> {
    let pairs = run.settings.number("n", 2_000_000);
    let standing = run.settings.choice("standing", 0);
    for threads in run.settings.list("threads", &[1, 2, 4]) {
        let peer = P::build(TICK);
        let others = run_here(&peer, |caller| {
            let work = P::work(Counter::leak());
            let mut random = SplitMix64::delays(0);
            let delays = seconds(600, 3600);
            (0..standing).map(|_| caller.schedule(random.duration(&delays), &work)).collect::<Vec<_>>()
        });
        until_quiet(Duration::from_secs(5));
        let prepare = |caller: &mut P, index| {
            let work = P::work(Counter::leak());
            let mut window = room(WINDOW);
            window.fill_with(|| Some(caller.schedule(TIMEOUT, &work)));
            (work, window, share(pairs, index, threads).0)
        };
        let calls = in_parallel(&peer, threads, prepare, |caller, (work, mut window, count)| {
            let mut oldest = 0;
            for _ in 0..count {
                let newest = caller.schedule(TIMEOUT, &work);
                if let Some(handle) = window[oldest].replace(newest) {
                    caller.cancel(handle);
                }
                oldest = if oldest + 1 == WINDOW { 0 } else { oldest + 1 };
            }
            window
        });
        let mut params = format!("n={},threads={threads}", short(pairs));
        if standing > 0 {
            params += &format!(",standing={}", short(standing));
        }
        run.each(&params, calls.wall, pairs, "ns/pair");
        run.each(&params, calls.cpu, pairs, "cpu-ns/pair");
        drop((calls, others));
        peer.stop();
    }
    Ok(())
}
