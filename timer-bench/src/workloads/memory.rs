//! The memory of a pending timer whose task captures one pointer, for N timers of 600 to 3600 s, in
//! a process that counts its allocations.
//!
//! `B-heap` is the memory requested from the allocator, without the handle (`B-handle`).
//! `B-left` is the heap memory per timer after all were cancelled in random order.

use crate::caller::{Counter, room, run_here};
use crate::out::{Heap, Run, Stop};
use crate::peer::{Peer, TICK};
use crate::process::until_quiet;
use crate::random::{SEED, SplitMix64, seconds};
use crate::row::short;
use std::time::Duration;

pub(crate) fn run<P: Peer>(run: &Run) -> Result<(), Stop> {
    let Heap::Counting(heap) = run.heap else { return Err(Stop::because("needs the program workload-mem")) };
    let n = run.settings.number("n", 1_000_000);
    let params = format!("n={}", short(n));
    let peer = P::build(TICK);
    let mut handles = room(n);
    let before = heap();
    let figure = |unit| {
        until_quiet(Duration::from_secs(3));
        run.figure(&params, heap().saturating_sub(before) as f64 / n.max(1) as f64, unit);
    };
    run_here(&peer, |caller| {
        let work = P::work(Counter::leak());
        let mut random = SplitMix64::delays(0);
        let delays = seconds(600, 3600);
        for handle in &mut handles {
            *handle = Some(caller.schedule(random.duration(&delays), &work));
        }
    });
    figure("B-heap");
    run.figure(&params, size_of::<P::Handle>() as f64, "B-handle");
    SplitMix64::new(SEED + 1).shuffle(&mut handles);
    run_here(&peer, |caller| handles.iter_mut().filter_map(Option::take).for_each(|handle| caller.cancel(handle)));
    figure("B-left");
    peer.stop();
    Ok(())
}
