//! W7 and W8: memory, in a process that counts its allocations. W7 measures the bytes of a pending
//! timer with a task that captures one pointer, for a million timers of 600 to 3600 s. W8 measures
//! the rest of a million timers after all were cancelled.
//!
//! `B-heap` is the memory requested from the allocator, and `B-rss` is the growth of resident
//! memory. Neither includes the handle itself, which is `B-handle`. `B-left` is the heap memory per
//! timer right after the last cancel, and `ms-back` is the time until at most a twentieth is left.

use super::caller::{Counter, room, run_here};
use super::out::{Out, millis};
use super::{HeapSize, Stop};
use crate::peers::{Peer, TICK};
use crate::process::{resident, until_quiet};
use crate::random::{SEED, SplitMix64, seconds};
use crate::row::short;
use crate::settings::Settings;
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

/// The longest time for which the timer may work on queued requests.
const DRAIN: Duration = Duration::from_secs(3);

/// Runs W7.
pub(super) fn pending<P: Peer>(settings: &Settings, heap: HeapSize, out: &Out) -> Result<(), Stop> {
    let n = settings.number("n", 1_000_000, 100_000);
    let params = format!("n={}", short(n));
    let peer = P::build(TICK);
    let mut handles = room(n);
    let before = (heap(), resident());
    fill(&peer, &mut handles, seconds(600, 3600));
    until_quiet(DRAIN);
    let after = (heap(), resident());
    out.figure(&params, per_timer(before.0, after.0, n), "B-heap");
    match before.1.zip(after.1) {
        Some((before, after)) => out.figure(&params, per_timer(before as usize, after as usize, n), "B-rss"),
        None => out.unavailable(&params, "B-rss", "known on Linux only"),
    }
    out.figure(&params, size_of::<P::Handle>() as f64, "B-handle");
    drop(handles);
    peer.stop();
    Ok(())
}

/// Runs W8.
pub(super) fn cancelled<P: Peer>(settings: &Settings, heap: HeapSize, out: &Out) -> Result<(), Stop> {
    let n = settings.number("n", 1_000_000, 100_000);
    let params = format!("n={}", short(n));
    let peer = P::build(TICK);
    let mut handles = room(n);
    let before = heap();
    fill(&peer, &mut handles, seconds(10, 3600));
    until_quiet(DRAIN);
    let full = heap();
    SplitMix64::new(SEED + 1).shuffle(&mut handles);
    run_here(&peer, |caller| {
        for handle in &mut handles {
            handle.take().into_iter().for_each(|handle| caller.cancel(handle));
        }
    });
    let (left, begin) = (heap(), Instant::now());
    out.figure(&params, per_timer(before, left, n), "B-left");
    let limit = Duration::from_millis(settings.number("ms", 3_000, 1_000) as u64);
    let enough = before + full.saturating_sub(before) / 20;
    while heap() > enough && begin.elapsed() < limit {
        thread::sleep(Duration::from_micros(100));
    }
    if heap() <= enough {
        let back = if left <= enough { Duration::ZERO } else { begin.elapsed() };
        out.figure(&params, millis(back), "ms-back");
    } else {
        let kept = per_timer(before, heap(), n);
        out.unavailable(&params, "ms-back", &format!("{kept:.0} bytes per timer are kept"));
    }
    peer.stop();
    Ok(())
}

fn fill<P: Peer>(peer: &P, handles: &mut [Option<P::Handle>], delays: Range<Duration>) {
    run_here(peer, |caller| {
        let (work, mut random) = (P::work(Counter::leak()), SplitMix64::delays(0));
        for handle in handles {
            *handle = Some(caller.schedule(random.duration(&delays), &work));
        }
    });
}

fn per_timer(before: usize, after: usize, n: usize) -> f64 {
    after.saturating_sub(before) as f64 / n.max(1) as f64
}
