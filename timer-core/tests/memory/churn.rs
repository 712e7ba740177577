//! Timeouts of 30 s that are cancelled at once. The peak of the heap depends on the live timeouts
//! and not on the traffic.
//!
//! If each were kept until its deadline, it would cost about 400 bytes. The smallest case here
//! would take half a gigabyte in release.

use crate::heap::*;
use crate::support::*;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use timer_core::{ManualDriver, Timeout, Timer, WheelKind};

/// Bytes that a timeout may take while it is churned.
const PER_TIMEOUT: usize = 1 << 10;

/// Bytes that churning may add per standing timeout. The array of a shared bucket may grow or
/// cascade to finer buckets, and for a moment the old and the new array both exist. At most
/// one bucket in twenty is affected at a time.
const PER_STANDING: usize = 8;

/// Bytes of requests. While the holder of a shard's lock is off the CPU, other threads leave
/// requests of 16 bytes, each with an entry of 40 bytes. An inbox has at most 16,384 of them (0.9
/// MB), so this is a generous bound for all shards.
const REQUESTS: usize = 48 << 20;

/// Numbers of standing timeouts, none or many. Their deadlines are before, among and after those of
/// the traffic.
const STANDING: [usize; 2] = [0, MILLION];

fn limit(standing: usize, shards: usize) -> usize {
    shards * (TABLES + PER_TIMEOUT) + standing * PER_STANDING + NOISE
}

fn churn(timer: &Timer, count: usize) {
    for _ in 0..count {
        assert!(schedule(timer, 30 * SECOND).cancel());
    }
}

fn churn_on_virtual_time(wheel: WheelKind, standing: usize, timer: &Timer, driver: &mut ManualDriver) {
    let each_milli = if cfg!(debug_assertions) { 1 } else { 20 };
    let held = schedule_many(timer, standing, 61 * SECOND, 60 * SECOND);
    let mark = Mark::set();
    for _ in 0..60_000 {
        churn(timer, each_milli);
        assert_eq!(driver.advance(MILLI), 0);
    }
    assert_eq!(timer.pending_timeouts(), standing);
    let label = format!("a minute of virtual time, {} cancelled among {standing}, {wheel:?}", 60_000 * each_milli);
    assert_at_most(&format!("{label}, peak"), mark.peak(), limit(standing, 1));
    assert_at_most(&format!("{label}, left"), mark.grown(), limit(standing, 1));
    drop(held);
}

// Guards against B52, in which cancelled timeouts were kept for up to two years.
#[test]
fn timeouts_are_churned_while_time_stands_still() {
    let _alone = exclusive();
    let amount = if cfg!(debug_assertions) { 60_000 } else { 1_200_000 };
    for wheel in [DEFAULT_WHEELS[0], DEFAULT_WHEELS[1], WHEELS[2]] {
        let (timer, driver) = manual(wheel);
        let mark = Mark::set();
        churn(&timer, amount);
        assert_at_most(
            &format!("{amount} cancelled while time stands still, {wheel:?}, peak"),
            mark.peak(),
            limit(0, 1),
        );
        assert_eq!((timer.pending_timeouts(), driver.next_expiry()), (0, None));
    }
}

#[test]
fn timeouts_are_churned_for_a_virtual_minute() {
    let _alone = exclusive();
    for wheel in DEFAULT_WHEELS {
        for standing in STANDING {
            let (timer, mut driver) = manual(wheel);
            churn_on_virtual_time(wheel, standing, &timer, &mut driver);
        }
    }
}

/// Runs `work`, which returns the number of cancelled timeouts, on `threads` threads.
fn churn_beside_worker(wheel: WheelKind, standing: usize, threads: usize, work: impl Fn(&Timer) -> usize + Sync) {
    let timer = Timer::builder().wheel(wheel).build().unwrap();
    timer.start().unwrap();
    let held = schedule_many(&timer, standing, 25 * SECOND, 90 * SECOND);
    let mark = Mark::set();
    let done: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(|| work(&timer))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let peak = mark.peak();
    assert!(timer.pending_timeouts() <= standing);
    let stats = timer.stats();
    let label =
        format!("{threads} threads, {done} cancelled among {standing}, {wheel:?}, {} requests", stats.inbox_handovers);
    let limit = limit(standing, threads.min(stats.shards as usize));
    assert_at_most(&format!("{label}, peak"), peak, if threads > 1 { limit + REQUESTS } else { limit });
    // The worker frees the entries that callers handed over.
    assert_at_most(&format!("{label}, left"), mark.falls_to(limit), limit);
    drop(held);
}

/// A thread alone on its shard, and more threads than shards, some of which meet at a lock and
/// leave requests.
const THREADS: [usize; 2] = [1, 12];

#[test]
fn timeouts_are_churned_while_the_worker_runs() {
    let _alone = exclusive();
    let amount = if cfg!(debug_assertions) { 30_000 } else { 1_200_000 };
    for wheel in DEFAULT_WHEELS {
        for standing in STANDING {
            for threads in THREADS {
                churn_beside_worker(wheel, standing, threads, |timer| {
                    churn(timer, amount / threads);
                    amount / threads
                });
            }
        }
    }
}

#[test]
#[ignore = "four minutes of real time"]
fn timeouts_are_churned_for_a_real_minute() {
    let _alone = exclusive();
    for wheel in DEFAULT_WHEELS {
        for standing in STANDING {
            churn_beside_worker(wheel, standing, 4, |timer| {
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

/// One thread accepts connections, and others serve and end them. All meet at the shard of the
/// first.
#[test]
fn timeouts_are_cancelled_by_other_threads() {
    const WAITING: usize = 1_000;
    let _alone = exclusive();
    let amount = if cfg!(debug_assertions) { 30_000 } else { 1_200_000 };
    for wheel in DEFAULT_WHEELS {
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
        let peak = mark.peak();
        assert_eq!(timer.pending_timeouts(), 0);
        let label = format!("{amount} cancelled by others, {wheel:?}, {} requests", timer.stats().inbox_handovers);
        assert_at_most(&format!("{label}, peak"), peak, limit(0, 1) + WAITING * PER_TIMEOUT + REQUESTS);
        assert_at_most(&format!("{label}, left"), mark.falls_to(limit(0, 1)), limit(0, 1));
    }
}
