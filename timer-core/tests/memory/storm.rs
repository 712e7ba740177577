//! Threads at full speed, more than there are cores: what waits for the worker is bounded, and so
//! is the heap.

use crate::heap::*;
use crate::support::*;
use std::time::{Duration, Instant};
use timer_core::{Timer, TimerBuilder};

/// Of 20 ms of a million timeouts a second each with its captures, and the room of their buckets:
/// 64 MB is far more.
const MOST: usize = 64 << 20;

fn storm(build: impl Fn() -> TimerBuilder, threads: u64) {
    let timer = build().build().unwrap();
    let shards = timer.stats().shards as usize;
    let mark = Mark::set();
    let begun = Instant::now();
    let calls: u64 = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..threads)
            .map(|seed| {
                let timer = &timer;
                scope.spawn(move || {
                    let (mut random, mut calls) = (Rng::with_seed(seed), 0);
                    while begun.elapsed() < Duration::from_millis(300) {
                        let timeout = schedule(timer, MILLI + random.duration(2 * MILLI));
                        if random.u64(..10) > 0 {
                            timeout.cancel();
                        }
                        calls += 1;
                    }
                    calls
                })
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).sum()
    });
    at_most(&format!("{calls} timeouts of {threads} threads, peak"), mark.peak(), MOST + threads as usize * NOISE);
    let begun = Instant::now();
    while timer.pending_timeouts() > 0 {
        assert!(begun.elapsed() < LONG);
        watch_for(MILLI);
    }
    mark.falls_to(2 * shards * TABLES + MOST / 8);
}

#[test]
fn storms_of_many_threads_keep_little() {
    let _alone = alone();
    for threads in [4, 12, 48] {
        storm(Timer::builder, threads);
        storm(|| Timer::builder().shards(1), threads);
        storm(|| Timer::builder().spread_by_thread(), threads);
    }
}
