//! Wake-ups between two threads that use one shard at the same moment and then fall silent.
//!
//! The tests guard against B33 and B36. If both the unlocking thread and the arriving thread
//! overlooked a request, the next caller would still find it. Therefore no further caller comes
//! here, and each round waits for its own timeout.

use crate::support::*;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use timer_core::{Timeout, Timer, TimerBuilder};

/// Ends the other threads of a test, also if the test fails.
struct EndFlag<'a>(&'a AtomicBool);

impl Drop for EndFlag<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Repeats a race up to `most` times or for two seconds, because threads may or may not meet.
fn rounds(most: u32, mut round: impl FnMut(u32)) {
    let begun = Instant::now();
    (0..most).take_while(|_| begun.elapsed() < 2 * SECOND).for_each(&mut round);
}

/// The worker takes due timeouts from a shard whose lock a caller takes again and again.
#[test]
fn a_timeout_runs_on_a_shard_always_in_use() {
    let timer = Timer::builder().tick_duration(MICRO).build().unwrap();
    let (ran, received) = channel();
    rounds(1_000, |_| {
        let ran = ran.clone();
        accepted(timer.new_timeout(20 * MICRO, move |_| ran.send(()).unwrap()));
        let begun = Instant::now();
        while received.try_recv().is_err() {
            accepted(timer.new_timeout(HOUR, |_| {})).cancel();
            assert!(begun.elapsed() < MAX_WAIT, "the worker slept past the timeout");
        }
    });
}

/// Another thread cancels on the same shard, and the second thread to arrive leaves a request.
#[test]
fn a_timeout_beside_an_unlocking_thread_runs() {
    let timer = Timer::builder().tick_duration(MICRO).build().unwrap();
    let (victim, over) = (Mutex::new(None::<Timeout>), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let over_at_last = EndFlag(&over);
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

/// Another thread moves a timeout of the shard to an earlier deadline.
#[test]
fn a_timeout_moved_on_a_shard_in_use_runs() {
    let timer = Timer::builder().tick_duration(MICRO).build().unwrap();
    let (moved, over) = (Mutex::new(None::<Timeout>), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let over_at_last = EndFlag(&over);
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

/// The timeout meets the worker as it goes to sleep after its turn.
#[test]
fn a_timeout_right_after_a_turn_runs() {
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
            assert!(begun.elapsed() < MAX_WAIT, "the worker slept past the timeout");
        }
        spin(random.duration(NANO * 1_000));
    });
}

// Guards against B34 and B38, in which a new earliest timeout did not interrupt the sleep for a far
// one.
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

// Guards against B33, in which the next wake-up was written without regard to a timeout being
// inserted. The delay is as short as a turn, so it hits the moments around the worker's going to
// sleep.
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

// Guards against B33 for drivers. The loop sleeps until the reported instant or until its waker is
// called.
#[test]
fn a_loop_that_sleeps_as_told_misses_nothing() {
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
        // This timeout ends the loop below.
        accepted(caller.new_timeout(Duration::ZERO, |_| {}));
    });
    let mut expired = 0;
    while expired < 301 {
        let turn = driver.turn();
        expired += turn.expired;
        let pause = turn.next.map_or(MAX_WAIT, |next| next.saturating_duration_since(std::time::Instant::now()));
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
