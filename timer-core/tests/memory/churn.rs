//! Timeouts of 30 s that are cancelled at once: the peak is that of the live set, however much
//! traffic there is.
//!
//! Kept until its deadline, each would cost about 400 bytes here: half a gigabyte for the least of
//! these cases in release.

use crate::heap::*;
use crate::support::*;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use timer_core::{ManualDriver, Timeout, Timer, WheelKind};

/// What one may cost while it is churned through: itself (below 1 KB).
const ONE: usize = 1 << 10;

/// What churning may add per standing timeout: the array of a bucket in which the two meet may
/// grow, or what is in it be carried down to finer buckets, and for a moment there are the old
/// array and the new one. One bucket in twenty or less at a time.
const PER_STANDING: usize = 8;

/// While the holder of a shard's lock is off the processor, what others do there are requests, of
/// 32 bytes each besides an entry's 64, until it is back: what a thread or two can write in some
/// milliseconds.
const REQUESTS: usize = 48 << 20;

/// Standing timeouts to churn among: none, or many with deadlines before, among and behind those of
/// the traffic.
const STANDING: [usize; 2] = [0, MILLION];

fn limit(standing: usize, shards: usize) -> usize {
    shards * (TABLES + ONE) + standing * PER_STANDING + NOISE
}

fn churn(timer: &Timer, count: usize) {
    for _ in 0..count {
        assert!(schedule(timer, 30 * SECOND).cancel());
    }
}

fn on_virtual_time(wheel: WheelKind, standing: usize, timer: &Timer, driver: &mut ManualDriver) {
    let each_milli = if cfg!(debug_assertions) { 1 } else { 20 };
    let held = many(timer, standing, 61 * SECOND, 60 * SECOND);
    let mark = Mark::set();
    for _ in 0..60_000 {
        churn(timer, each_milli);
        assert_eq!(driver.advance(MILLI), 0);
    }
    assert_eq!(timer.pending_timeouts(), standing);
    let what = format!("a minute of virtual time, {} cancelled among {standing}, {wheel:?}", 60_000 * each_milli);
    at_most(&format!("{what}, peak"), mark.peak(), limit(standing, 1));
    at_most(&format!("{what}, left"), mark.grown(), limit(standing, 1));
    drop(held);
}

// B52: cancelled ones were kept up to two years.
#[test]
fn time_stands_still() {
    let _alone = alone();
    let amount = if cfg!(debug_assertions) { 60_000 } else { 1_200_000 };
    for wheel in [BOTH[0], BOTH[1], WHEELS[2]] {
        let (timer, driver) = manual(wheel);
        let mark = Mark::set();
        churn(&timer, amount);
        at_most(&format!("{amount} cancelled while time stands still, {wheel:?}, peak"), mark.peak(), limit(0, 1));
        assert_eq!((timer.pending_timeouts(), driver.next_expiry()), (0, None));
    }
}

#[test]
fn a_minute_of_virtual_time() {
    let _alone = alone();
    for wheel in BOTH {
        for standing in STANDING {
            let (timer, mut driver) = manual(wheel);
            on_virtual_time(wheel, standing, &timer, &mut driver);
        }
    }
}

/// Runs `work` on so many threads, each to its end. It returns how many it has cancelled.
fn by_the_worker(wheel: WheelKind, standing: usize, threads: usize, work: impl Fn(&Timer) -> usize + Sync) {
    let timer = Timer::builder().wheel(wheel).build().unwrap();
    timer.start().unwrap();
    let held = many(&timer, standing, 25 * SECOND, 90 * SECOND);
    let mark = Mark::set();
    let done: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(|| work(&timer))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let (peak, left) = (mark.peak(), mark.grown());
    assert!(timer.pending_timeouts() <= standing);
    let stats = timer.stats();
    let what =
        format!("{threads} threads, {done} cancelled among {standing}, {wheel:?}, {} requests", stats.inbox_handovers);
    let limit = limit(standing, threads.min(stats.shards as usize));
    at_most(&format!("{what}, peak"), peak, if threads > 1 { limit + REQUESTS } else { limit });
    at_most(&format!("{what}, left"), left, limit);
    drop(held);
}

/// Alone on its shard, or more threads than shards, so that some meet at a lock and leave requests.
const THREADS: [usize; 2] = [1, 12];

#[test]
fn while_the_worker_runs() {
    let _alone = alone();
    let amount = if cfg!(debug_assertions) { 30_000 } else { 1_200_000 };
    for wheel in BOTH {
        for standing in STANDING {
            for threads in THREADS {
                by_the_worker(wheel, standing, threads, |timer| {
                    churn(timer, amount / threads);
                    amount / threads
                });
            }
        }
    }
}

#[test]
#[ignore = "four minutes of real time"]
fn a_minute_of_real_time() {
    let _alone = alone();
    for wheel in BOTH {
        for standing in STANDING {
            by_the_worker(wheel, standing, 4, |timer| {
                let (begun, mut done) = (Instant::now(), 0);
                while begun.elapsed() < Duration::from_secs(60) {
                    churn(timer, 1_000);
                    done += 1_000;
                }
                done
            });
        }
    }
}

/// One thread accepts connections, others serve and end them: all meet at the shard of the first.
#[test]
fn cancelled_by_other_threads() {
    const WAITING: usize = 1_000;
    let _alone = alone();
    let amount = if cfg!(debug_assertions) { 30_000 } else { 1_200_000 };
    for wheel in BOTH {
        let timer = Timer::builder().wheel(wheel).build().unwrap();
        timer.start().unwrap();
        let mark = Mark::set();
        std::thread::scope(|scope| {
            let (accept, accepted) = sync_channel::<Timeout>(WAITING);
            let accepted = Arc::new(Mutex::new(accepted));
            for _ in 0..6 {
                let accepted = accepted.clone();
                scope.spawn(move || {
                    let next = || accepted.lock().unwrap().recv();
                    while let Ok(timeout) = next() {
                        assert!(timeout.cancel());
                    }
                });
            }
            (0..amount).for_each(|_| accept.send(schedule(&timer, 30 * SECOND)).unwrap());
            drop(accept);
        });
        let (peak, left) = (mark.peak(), mark.grown());
        assert_eq!(timer.pending_timeouts(), 0);
        let what = format!("{amount} cancelled by others, {wheel:?}, {} requests", timer.stats().inbox_handovers);
        at_most(&format!("{what}, peak"), peak, limit(0, 1) + WAITING * ONE + REQUESTS);
        at_most(&format!("{what}, left"), left, limit(0, 1));
    }
}
