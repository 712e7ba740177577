//! More threads than cores at full speed. The heap is bounded because the requests for the worker
//! are.

use crate::heap::*;
use crate::support::*;
use std::time::{Duration, Instant};
use timer_core::{Timer, TimerBuilder};

/// A generous bound on the heap. A million timeouts a second, with their captures and the room of
/// their buckets, take far less in 20 ms.
const MAX_HEAP: usize = 64 << 20;

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
    assert_at_most(
        &format!("{calls} timeouts of {threads} threads, peak"),
        mark.peak(),
        MAX_HEAP + threads as usize * NOISE,
    );
    let begun = Instant::now();
    while timer.pending_timeouts() > 0 {
        assert!(begun.elapsed() < MAX_WAIT);
        watch_for(MILLI);
    }
    mark.falls_to(2 * shards * TABLES + MAX_HEAP / 8);
}

#[test]
fn storms_of_many_threads_keep_little() {
    let _alone = exclusive();
    for threads in [4, 12, 48] {
        storm(Timer::builder, threads);
        storm(|| Timer::builder().shards(1), threads);
        Timer::spread_by_thread(true);
        storm(Timer::builder, threads);
        Timer::spread_by_thread(false);
    }
}
