//! What one thread leaves for another to do: two threads on one shard, at the same moment, and then
//! silence.
//!
//! B33, B37, B52: a request that neither the thread which unlocks nor the one which comes has seen
//! would be found by the next caller. So here there is none: each round waits for its own timeout.

use crate::support::*;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use timer_core::{Timeout, Timer, TimerBuilder};

/// Tells the other threads of a test that it is over, also if it fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Threads are lucky or not: so many rounds, or so much time.
fn rounds(most: u32, mut round: impl FnMut(u32)) {
    let begun = Instant::now();
    (0..most).take_while(|_| begun.elapsed() < 2 * SECOND).for_each(&mut round);
}

/// Meets the worker, which takes out what is due, with the lock held by a caller.
#[test]
fn a_timeout_runs_in_time_on_a_shard_always_in_use() {
    let timer = Timer::builder().tick_duration(MICRO).build().unwrap();
    let (ran, received) = channel();
    rounds(1_000, |_| {
        let ran = ran.clone();
        accepted(timer.new_timeout(20 * MICRO, move |_| ran.send(()).unwrap()));
        let begun = Instant::now();
        while received.try_recv().is_err() {
            accepted(timer.new_timeout(HOUR, |_| {})).cancel();
            assert!(begun.elapsed() < LONG, "slept over");
        }
    });
}

/// Meets another thread, which cancels on the same shard: the second to come leaves a request.
#[test]
fn scheduled_as_another_thread_unlocks_it_runs() {
    let timer = Timer::builder().tick_duration(MICRO).build().unwrap();
    let (victim, over) = (Mutex::new(None::<Timeout>), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let over_at_last = Over(&over);
        scope.spawn(|| {
            while !over.load(SeqCst) {
                let taken = victim.lock().unwrap().take();
                match taken {
                    Some(timeout) => assert!(timeout.cancel()),
                    None => std::hint::spin_loop(),
                }
            }
        });
        let (mut random, (ran, received)) = (Rng::with_seed(52), channel());
        rounds(10_000, |_| {
            let far = accepted(timer.new_timeout(HOUR, |_| {}));
            let ran = ran.clone();
            let mut handed = victim.lock().unwrap();
            *handed = Some(far);
            drop(handed);
            spin(random.duration(NANO * 1_000));
            accepted(timer.new_timeout(5 * MICRO, move |_| ran.send(()).unwrap()));
            next(&received);
        });
        drop(over_at_last);
    });
}

/// The same with a move to an earlier deadline, by another thread than its shard's.
#[test]
fn moved_as_another_thread_uses_its_shard_it_runs() {
    let timer = Timer::builder().tick_duration(MICRO).build().unwrap();
    let (moved, over) = (Mutex::new(None::<Timeout>), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let over_at_last = Over(&over);
        scope.spawn(|| {
            while !over.load(SeqCst) {
                let taken = moved.lock().unwrap().take();
                match taken {
                    Some(timeout) => assert!(timeout.reset(5 * MICRO)),
                    None => std::hint::spin_loop(),
                }
            }
        });
        let (mut random, (ran, received)) = (Rng::with_seed(36), channel());
        rounds(10_000, |_| {
            let ran = ran.clone();
            let far = accepted(timer.new_timeout(HOUR, move |_| ran.send(()).unwrap()));
            let other = accepted(timer.new_timeout(HOUR, |_| {}));
            *moved.lock().unwrap() = Some(far);
            spin(random.duration(NANO * 1_000));
            assert!(other.cancel());
            next(&received);
        });
        drop(over_at_last);
    });
}

/// Meets the worker going to sleep, a moment after its turn.
#[test]
fn scheduled_just_after_a_turn_it_runs() {
    let timer = Timer::builder().tick_duration(MICRO).build().unwrap();
    accepted(timer.new_timeout(HOUR, |_| {}));
    let ran = Arc::new(AtomicU32::new(0));
    let mut random = Rng::with_seed(33);
    rounds(20_000, |round| {
        let counted = ran.clone();
        accepted(timer.new_timeout(MICRO, move |_| counted.store(round + 1, SeqCst)));
        let begun = Instant::now();
        while ran.load(SeqCst) <= round {
            std::hint::spin_loop();
            assert!(begun.elapsed() < LONG, "slept over");
        }
        spin(random.duration(NANO * 1_000));
    });
}

// B34, B38: a new earliest timeout did not interrupt the sleep for a far one.
#[test]
fn a_near_timeout_interrupts_the_sleep_for_a_far_one() {
    for tick in [MILLI, 10 * MICRO] {
        let timer = Timer::builder().tick_duration(tick).build().unwrap();
        let (go, told) = channel::<Duration>();
        let (ran, received) = channel();
        let inner = timer.clone();
        let other = std::thread::spawn(move || {
            for delay in told {
                let ran = ran.clone();
                accepted(inner.new_timeout(delay, move |_| ran.send(()).unwrap()));
            }
        });
        for _ in 0..200 {
            let far = accepted(timer.new_timeout(HOUR, |_| {}));
            go.send(MILLI).unwrap();
            next(&received);
            assert!(far.cancel());
        }
        drop(go);
        other.join().unwrap();
    }
}

// B33: the next wake-up was written without a look at what was being inserted. The moments around
// the worker's going to sleep are hit by a delay that is as short as its turn is long.
#[test]
fn scheduled_as_the_worker_goes_to_sleep_it_runs() {
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

// B33, as a driver sees it: its loop sleeps until what it was told, or until it is called.
#[test]
fn a_loop_that_sleeps_as_it_is_told_misses_nothing() {
    let (timer, mut driver) = Timer::builder().tick_duration(10 * MICRO).build_driven().unwrap();
    let (call, called) = channel::<()>();
    driver.set_waker(move || call.send(()).unwrap());
    let (ran, received) = channel();
    let caller = timer.clone();
    let other = std::thread::spawn(move || {
        let mut random = Rng::with_seed(33);
        for _ in 0..300 {
            let ran = ran.clone();
            accepted(caller.new_timeout(random.duration(200 * MICRO), move |_| ran.send(()).unwrap()));
            next(&received);
        }
        // Ends the loop below.
        accepted(caller.new_timeout(Duration::ZERO, |_| {}));
    });
    let mut expired = 0;
    while expired < 301 {
        let turn = driver.turn();
        expired += turn.expired;
        let pause = turn.next.map_or(LONG, |next| next.saturating_duration_since(std::time::Instant::now()));
        if expired < 301 && !pause.is_zero() {
            let woken = called.recv_timeout(pause);
            assert!(woken.is_ok() || pause < LONG, "slept for a minute and was not called");
        }
    }
    other.join().unwrap();
}

#[test]
fn a_loop_without_a_waker_is_not_sent_to_sleep() {
    // On a shard for each CPU the threads may never meet.
    for builder in [Timer::builder(), Timer::builder().shards(1)] {
        never_sent_to_sleep(builder);
    }
}

fn never_sent_to_sleep(builder: TimerBuilder) {
    let (timer, mut driver) = builder.build_driven().unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let others: Vec<_> = (0..2)
        .map(|_| {
            let (timer, over) = (timer.clone(), over.clone());
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
            let soon = turn.next.is_some_and(|next| next <= Instant::now());
            assert!(turn.expired > 0 || soon, "{due:?} waits, and the loop would sleep: {turn:?}");
        }
    }
    over.store(true, SeqCst);
    others.into_iter().for_each(|other| other.join().unwrap());
}
