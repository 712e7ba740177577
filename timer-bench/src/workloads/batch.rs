//! W14: batches. A million pending timers of 10 s to an hour are cancelled from one thread in
//! random order, a thousand with each call. A peer without such a call cancels them one by one. The
//! workload also runs with mimalloc.
//!
//! `ns/cancel` is wall time / N. `cpu-ns/cancel` is the CPU time of the process until the timer's
//! threads have come to rest, as in W8.

use super::Stop;
use super::caller::{Counter, run_here};
use super::out::Out;
use crate::peers::{Peer, TICK};
use crate::process::{cpu, cpu_of_others, until_quiet};
use crate::random::{SEED, SplitMix64, seconds};
use crate::row::short;
use crate::settings::Settings;
use std::time::{Duration, Instant};

const GROUP: usize = 1_000;

pub(super) fn run<P: Peer>(settings: &Settings, allocator: &str, out: &Out) -> Result<(), Stop> {
    let n = settings.number("n", 1_000_000, 100_000);
    let params = format!("n={},group={},alloc={allocator}", short(n), short(GROUP));
    let peer = P::build(TICK);
    let (wall, used) = run_here(&peer, |caller| {
        let (work, mut random, delays) = (P::work(Counter::leak()), SplitMix64::delays(0), seconds(10, 3600));
        let mut handles: Vec<_> = (0..n).map(|_| caller.schedule(random.duration(&delays), &work)).collect();
        until_quiet(Duration::from_secs(5));
        SplitMix64::new(SEED + 1).shuffle(&mut handles);
        let groups = in_groups(handles);
        let (begin, before) = (Instant::now(), cpu());
        for group in groups {
            caller.cancel_batch(group);
        }
        (begin.elapsed(), cpu() - before)
    });
    let before = cpu_of_others();
    let rest = until_quiet(Duration::from_secs(10)).map(|_| cpu_of_others().saturating_sub(before));
    out.each(&params, wall, n, "ns/cancel");
    out.cpu_with_rest(&params, used, rest, n, "cpu-ns/cancel");
    peer.stop();
    Ok(())
}

/// Splits `all` into groups with separate memory, so that each can be moved.
fn in_groups<T>(all: Vec<T>) -> Vec<Vec<T>> {
    let mut groups = Vec::with_capacity(all.len().div_ceil(GROUP));
    let mut all = all.into_iter();
    loop {
        let group: Vec<T> = all.by_ref().take(GROUP).collect();
        if group.is_empty() {
            return groups;
        }
        groups.push(group);
    }
}

#[cfg(test)]
mod tests {
    use super::in_groups;

    #[test]
    fn groups_hold_all_items_in_order() {
        for count in [0, 1, 999, 1_000, 1_001, 2_000] {
            let all: Vec<usize> = (0..count).collect();
            let groups = in_groups(all.clone());
            assert!(groups.iter().rev().skip(1).all(|group| group.len() == 1_000));
            assert_eq!(groups.concat(), all);
        }
    }
}
