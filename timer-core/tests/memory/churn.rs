//! Timeouts of 30 s that are cancelled at once. The peak of the heap depends on the live timeouts
//! and not on the traffic.
//!
//! If each were kept until its deadline, it would cost about 400 bytes. The smallest case here
//! would take half a gigabyte in release.

use crate::heap::*;
use crate::support::*;
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex};
use timer_core::{Timeout, Timer, WheelKind};
use timer_executor::{RayonExecutor, TaskExecutor, ThreadPoolExecutor};

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

// Guards against tokio-rs/tokio#8252, in which cancelled timeouts were kept for up to two years.
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
        assert_eq!((timer.pending_timeouts(), driver.next_deadline()), (0, None));
    }
}

/// A thread alone on its shard, and more threads than shards, some of which meet at a lock and
/// leave requests.
const THREADS: [usize; 2] = [1, 12];

#[test]
fn timeouts_are_churned_while_the_worker_runs() {
    let _alone = exclusive();
    let amount = if cfg!(debug_assertions) { 30_000 } else { 1_200_000 };
    for wheel in DEFAULT_WHEELS {
        for (standing, threads) in STANDING.into_iter().flat_map(|standing| THREADS.map(|threads| (standing, threads)))
        {
            churn_beside_worker(wheel, standing, threads, amount);
        }
    }
}

/// Cancels `amount` timeouts on `threads` threads, beside `standing` timeouts that stay.
fn churn_beside_worker(wheel: WheelKind, standing: usize, threads: usize, amount: usize) {
    let timer = Timer::builder().wheel(wheel).build().unwrap();
    timer.start().unwrap();
    let held = schedule_many(&timer, standing, 25 * SECOND, 90 * SECOND);
    let mark = Mark::set();
    std::thread::scope(|scope| {
        (0..threads).for_each(|_| _ = scope.spawn(|| churn(&timer, amount / threads)));
    });
    let peak = mark.peak();
    assert!(timer.pending_timeouts() <= standing);
    let stats = timer.stats();
    let label = format!("{threads} threads, {amount} cancelled among {standing}, {wheel:?}");
    let limit = limit(standing, threads.min(stats.shards as usize));
    assert_at_most(&format!("{label}, peak"), peak, if threads > 1 { limit + REQUESTS } else { limit });
    // The worker frees the entries that callers handed over.
    assert_at_most(&format!("{label}, left"), mark.falls_to(limit), limit);
    drop(held);
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

/// Timeouts that are cancelled or moved while they wait for a busy pool leave nothing behind.
#[test]
fn timeouts_that_leave_the_queue_of_a_busy_pool_are_freed() {
    let _alone = exclusive();
    let cpus = std::thread::available_parallelism().unwrap().get();
    let pools: [(usize, Arc<dyn TaskExecutor>); 2] =
        [(1, Arc::new(ThreadPoolExecutor::new(1))), (cpus, Arc::new(RayonExecutor::global()))];
    for (threads, pool) in pools {
        let (timer, mut driver) = Timer::builder().executor(pool).build_manual().unwrap();
        let (open, gate) = channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let (begun, inside) = channel();
        for _ in 0..threads {
            let begun = begun.clone();
            let gate = gate.clone();
            accepted(timer.new_timeout(MILLI, move |_| {
                begun.send(()).unwrap();
                let _ = gate.lock().unwrap().recv();
            }));
        }
        driver.advance(MILLI);
        (0..threads).for_each(|_| next(&inside));
        let mark = Mark::set();
        for round in 0..MILLION / 1_000 {
            let timeouts = schedule_many(&timer, 1_000, MILLI, MILLI);
            driver.advance(2 * MILLI);
            assert!(round % 2 == 0 || timeouts.iter().all(|timeout| timeout.reset(HOUR)));
            assert!(timeouts.iter().all(Timeout::cancel));
        }
        assert_at_most("left the queue", mark.grown(), TABLES);
        assert_eq!((timer.stats().runs, timer.stats().pending), (threads as u64, 0));
        drop(open);
    }
}
