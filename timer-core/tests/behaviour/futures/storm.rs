//! Many tasks on two threads. The counters must be exact when all tasks have ended.

use crate::support::wakers::{Bell, accounts, poll, poll_once};
use crate::support::*;
use std::pin::Pin;
use std::task::{Poll, Waker};
use std::time::Instant;
use timer_core::{Sleep, Timer};

const TASKS: u64 = 200;
const ROUNDS: u64 = if cfg!(debug_assertions) { 300 } else { 3_000 };

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap()
}

#[track_caller]
fn exact(timer: &Timer) {
    let (scheduled, pending, expired, cancelled) = accounts(timer);
    assert_eq!((pending, expired + cancelled), (0, scheduled));
    assert_eq!(timer.stats().task_panics, 0);
}

async fn work(timer: Timer, seed: u64, rounds: u64) {
    let mut kept = timer.sleep(MILLI);
    let mut random = Rng::with_seed(seed);
    for _ in 0..rounds {
        timer.timeout(30 * SECOND, tokio::task::yield_now()).await.unwrap();
        match random.u8(..16) {
            0 => {
                let due = Instant::now() + random.micros(2_000);
                timer.sleep_until(due).await;
                assert!(Instant::now() >= due, "the sleep ended early");
            }
            1 => {
                kept.reset_after(random.micros(500));
                (&mut kept).await;
            }
            2 => {
                // The sleep is near its end when it is dropped.
                let short = timer.sleep(random.micros(300));
                let _ = timer.timeout(200 * MICRO, short).await;
            }
            3 => {
                // The sleep moves to another task and its waker.
                let mut moved = timer.sleep(random.micros(1_000));
                let _ = poll_once(&mut moved).await;
                tokio::spawn(moved).await.unwrap();
            }
            4 => {
                // The sleep is moved while it is about to run.
                kept.reset_after(100 * MICRO);
                let _ = poll_once(&mut kept).await;
                spin(90 * MICRO);
                kept.reset_after(random.micros(100));
                (&mut kept).await;
            }
            _ => {}
        }
    }
}

fn storm(timer: &Timer, tasks: u64, rounds: u64) {
    let runtime = runtime();
    let tasks: Vec<_> = (0..tasks).map(|seed| runtime.spawn(work(timer.clone(), seed, rounds))).collect();
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
    drop(runtime);
    exact(timer);
}

#[test]
fn a_storm_leaves_exact_accounts() {
    let timer = Timer::new();
    storm(&timer, TASKS, ROUNDS);
    assert!(timer.stats().scheduled >= TASKS * ROUNDS);
}

#[test]
fn a_storm_on_one_shard_leaves_exact_accounts() {
    let timer = Timer::builder().shards(1).tick_duration(10 * MICRO).build().unwrap();
    storm(&timer, TASKS, ROUNDS / 3);
}

#[test]
fn a_storm_below_the_bound_is_never_rejected() {
    let timer = Timer::builder().max_pending_timeouts(4 * TASKS as usize).build().unwrap();
    storm(&timer, TASKS, ROUNDS / 3);
    assert_eq!(timer.stats().rejected, 0);
}

#[test]
fn wakers_may_change_while_a_sleep_expires() {
    let timer = Timer::builder().tick_duration(MICRO).build().unwrap();
    let mut changes = 0_u64;
    for round in 0..ROUNDS {
        let mut sleep = timer.sleep(50 * MICRO + round as u32 % 97 * MICRO);
        let begun = Instant::now();
        loop {
            let (bell, waker) = Bell::new();
            if poll(&mut sleep, &waker).is_ready() {
                break;
            }
            changes += 1;
            if begun.elapsed() > MILLI {
                // The sleep is linked now, and its current waker must be woken.
                while bell.rung() == 0 {
                    assert!(begun.elapsed() < MAX_WAIT, "the wake-up was lost");
                    std::hint::spin_loop();
                }
            }
        }
    }
    assert!(changes > 0);
    exact(&timer);
}

#[test]
fn stop_in_a_storm_ends_all_tasks() {
    for round in 0..20_u32 {
        let timer = Timer::builder().tick_duration(MICRO).build().unwrap();
        let runtime = runtime();
        let tasks: Vec<_> = (0..20)
            .map(|seed| {
                let timer = timer.clone();
                runtime.spawn(async move {
                    let mut kept = timer.sleep(MICRO);
                    let mut random = Rng::with_seed(seed);
                    loop {
                        kept.reset_after(random.micros(50));
                        // The wakers change in between.
                        let _ = Pin::new(&mut kept).poll(&mut std::task::Context::from_waker(Waker::noop()));
                        if random.bool() {
                            (&mut kept).await
                        } else {
                            timer.sleep(random.micros(100)).await
                        }
                        if timer.is_stopped() {
                            return;
                        }
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        spin(round * 100 * MICRO);
        assert!(timer.stop().unwrap().is_empty());
        runtime.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
        });
        exact(&timer);
    }
}

#[test]
fn drops_race_the_turn_on_another_thread() {
    let timer = Timer::builder().tick_duration(MICRO).build().unwrap();
    let (sender, sleeps) = std::sync::mpsc::channel::<Sleep>();
    let dropper = std::thread::spawn(move || sleeps.into_iter().for_each(drop));
    let mut ready = 0;
    let mut random = Rng::with_seed(30);
    for _ in 0..10 * ROUNDS {
        let mut sleep = timer.sleep(random.micros(30));
        if poll(&mut sleep, Waker::noop()) == Poll::Pending {
            sender.send(sleep).unwrap();
        } else {
            ready += 1;
        }
    }
    drop(sender);
    dropper.join().unwrap();
    exact(&timer);
    let (scheduled, ..) = accounts(&timer);
    assert!(scheduled + ready >= 10 * ROUNDS);
}
