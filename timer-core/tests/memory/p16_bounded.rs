//! Promise 16. All resources are bounded under any load. More threads than cores schedule timeouts
//! of 1 to 3 ms at full speed and cancel nine in ten. `stop` returns soon although they continue,
//! tasks start soon after their deadlines, and few captures are alive at a time.
//!
//! The tests use the real clock with generous limits. A busy machine may delay a round, so it has
//! three attempts.

use crate::heap::exclusive;
use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};
use timer_core::{Timer, TimerBuilder};

/// The time for which callers use the timer.
const LOAD: Duration = Duration::from_millis(300);
/// The limit for `stop` while callers continue.
const STOP_WITHIN: Duration = SECOND;
/// The latest hand-over of a task, with 24 threads for each core.
const LATE_BY: Duration = Duration::from_secs(2);
/// Captures that may be alive at once, as many as a million timeouts a second make in 100 ms.
const ALIVE: usize = 100_000;

/// Schedules and cancels at full speed until the timer is stopped. Returns the largest number of
/// captures that it saw alive.
fn call(timer: &Timer, alive: &Arc<()>, seed: u64) -> usize {
    let mut random = Rng::with_seed(seed);
    let mut most = 0;
    loop {
        let captured = alive.clone();
        most = most.max(Arc::strong_count(alive));
        match timer.new_timeout(MILLI + random.duration(2 * MILLI), move |_| drop(captured)) {
            Ok(timeout) if random.u64(..10) > 0 => _ = timeout.cancel(),
            Ok(_) => {}
            Err(_) => return most,
        }
    }
}

/// Measures `stop`, the largest lag and the largest number of captures while `threads` threads use
/// a timer.
fn load(timer: &Timer, threads: u64) -> (Duration, Duration, usize) {
    let alive = Arc::new(());
    let (stop, most) = std::thread::scope(|scope| {
        let alive = &alive;
        let callers: Vec<_> = (0..threads).map(|seed| scope.spawn(move || call(timer, alive, seed))).collect();
        watch_for(LOAD);
        // A busy machine may start the threads late.
        wait_until(|| timer.stats().expired > 0 && timer.stats().scheduled > 2_000);
        let begun = Instant::now();
        drop(timer.stop().unwrap());
        (begun.elapsed(), callers.into_iter().map(|caller| caller.join().unwrap()).max())
    });
    let stats = timer.stats();
    assert_eq!((stats.pending, stats.scheduled), (0, stats.expired + stats.cancelled));
    assert_eq!(Arc::strong_count(&alive), 1, "every capture is dropped");
    (stop, stats.timeout_lag.max(), most.unwrap_or_default())
}

/// Checks that a timer keeps the limits in one of three attempts.
fn is_bounded(build: impl Fn() -> TimerBuilder, threads: u64) {
    let mut seen = Vec::new();
    for _ in 0..3 {
        let (stop, late, alive) = load(&build().build().unwrap(), threads);
        if stop <= STOP_WITHIN && late <= LATE_BY && alive <= ALIVE {
            return;
        }
        seen.push((stop, late, alive));
    }
    panic!("stop, lag and captures with {threads} threads: {seen:?}");
}

#[test]
fn a_timer_is_bounded_under_load() {
    let _alone = exclusive();
    for threads in [4, 12, 48, 200] {
        is_bounded(Timer::builder, threads);
    }
    for wheel in &WHEELS[1..] {
        is_bounded(|| Timer::builder().wheel(*wheel), 12);
    }
}

#[test]
fn one_shard_is_bounded_under_load() {
    let _alone = exclusive();
    for threads in [4, 12, 48] {
        is_bounded(|| Timer::builder().shards(1), threads);
    }
}

#[test]
fn shards_chosen_by_thread_are_bounded_under_load() {
    let _alone = exclusive();
    Timer::spread_by_thread(true);
    for threads in [4, 12, 48] {
        is_bounded(Timer::builder, threads);
    }
    Timer::spread_by_thread(false);
}

// The requests of callers that find a shard locked cost the worker at most one turn per two
// milliseconds, and one each tick.
#[test]
fn turns_under_load_are_bounded_by_time() {
    let _alone = exclusive();
    for build in [Timer::builder, || Timer::builder().shards(1)] {
        let timer = build().build().unwrap();
        let over = AtomicBool::new(false);
        let begun = Instant::now();
        let calls: u64 = std::thread::scope(|scope| {
            let callers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut calls = 0;
                        while !over.load(SeqCst) {
                            assert!(accepted(timer.new_timeout(HOUR, |_| {})).cancel());
                            calls += 1;
                        }
                        calls
                    })
                })
                .collect();
            watch_for(LOAD);
            wait_until(|| timer.stats().scheduled > 10_000);
            over.store(true, SeqCst);
            callers.into_iter().map(|caller| caller.join().unwrap()).sum()
        });
        let turns = timer.stats().turns;
        let millis = begun.elapsed().as_millis() as u64;
        assert!(turns <= 2 * millis + 100, "{turns} turns for {calls} timeouts in {millis} ms, of which none was due");
        assert!(calls > 10_000, "the load was only {calls} calls");
    }
}
