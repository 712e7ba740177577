//! Wake-ups between two threads that use one shard at the same moment and then fall silent.
//!
//! The tests guard against tokio-rs/tokio#6682 and tokio-rs/tokio#849. If both the unlocking thread
//! and the arriving thread overlooked a request, the next caller would still find it. Therefore no
//! further caller comes here, and each round waits for its own timeout.

use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use timer_core::{Timer, TimerBuilder};

// Guards against tokio-rs/tokio#6682, in which the next wake-up was written without regard to a
// timeout being inserted. The delay is as short as a turn, so it hits the moments around the
// worker's going to sleep.
#[test]
fn a_timeout_beside_a_worker_going_to_sleep_runs() {
    let timer = Timer::builder().tick_duration(MICRO).build().unwrap();
    accepted(timer.new_timeout(HOUR, |_| {}));
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let timer = &timer;
            scope.spawn(move || {
                let mut random = Rng::with_seed(seed);
                let (ran, received) = channel();
                for _ in 0..1_500 {
                    let ran = ran.clone();
                    accepted(timer.new_timeout(random.duration(20 * MICRO), move |_| ran.send(()).unwrap()));
                    if random.bool() {
                        spin(random.duration(30 * MICRO));
                    }
                    next(&received);
                }
            });
        }
    });
}

// Guards against tokio-rs/tokio#6682 for drivers. The loop sleeps until the reported instant or
// until its waker is called.
#[test]
fn a_loop_that_sleeps_as_told_misses_nothing() {
    let (timer, mut driver) = Timer::builder().tick_duration(10 * MICRO).build_driven().unwrap();
    let (call, called) = channel::<()>();
    driver.on_wake(move || call.send(()).unwrap());
    let (ran, received) = channel();
    let caller = timer.clone();
    let other = std::thread::spawn(move || {
        let mut random = Rng::with_seed(33);
        for _ in 0..300 {
            let ran = ran.clone();
            accepted(caller.new_timeout(random.duration(200 * MICRO), move |_| ran.send(()).unwrap()));
            next(&received);
        }
        // This timeout ends the loop below.
        accepted(caller.new_timeout(Duration::ZERO, |_| {}));
    });
    let mut expired = 0;
    while expired < 301 {
        let turn = driver.turn();
        expired += turn.expired;
        let pause =
            turn.next_deadline.map_or(MAX_WAIT, |next| next.saturating_duration_since(std::time::Instant::now()));
        if expired < 301 && !pause.is_zero() {
            let woken = called.recv_timeout(pause);
            assert!(woken.is_ok() || pause < MAX_WAIT, "the loop slept for a minute and nothing woke it");
        }
    }
    other.join().unwrap();
}

#[test]
fn a_loop_without_a_waker_is_not_sent_to_sleep() {
    // With a shard for each CPU the threads may never meet.
    for builder in [Timer::builder(), Timer::builder().shards(1)] {
        never_sent_to_sleep(builder);
    }
}

fn never_sent_to_sleep(builder: TimerBuilder) {
    let (timer, mut driver) = builder.build_driven().unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let others: Vec<_> = (0..2)
        .map(|_| {
            let timer = timer.clone();
            let over = over.clone();
            std::thread::spawn(move || {
                while !over.load(SeqCst) {
                    accepted(timer.new_timeout(HOUR, |_| {})).cancel();
                }
            })
        })
        .collect();
    for _ in 0..20_000 {
        let due = accepted(timer.new_timeout(Duration::ZERO, |_| {}));
        while !due.is_expired() {
            let turn = driver.turn();
            let soon = turn.next_deadline.is_some_and(|next| next <= Instant::now());
            assert!(turn.expired > 0 || soon, "{due:?} waits, and the loop would sleep: {turn:?}");
        }
    }
    over.store(true, SeqCst);
    others.into_iter().for_each(|other| other.join().unwrap());
}
