//! What one thread leaves for another to do: two threads on one shard, at the same moment, and then silence.
//!
//! B33, B37, B52: whatever was left behind by the one who went and not seen by the one who came would be found by the next
//! caller. So here there is none: each round waits for its own timeout.

use crate::support::*;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use timer_core::{Timeout, Timer};

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

/// Meets the worker, which takes out what is due, with the latch in a caller's hands.
#[test]
fn a_timeout_runs_in_time_though_its_shard_is_always_in_use() {
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

/// Meets another thread, which cancels on the same shard: whoever comes second leaves a note.
#[test]
fn a_timeout_that_is_scheduled_while_another_thread_leaves_the_shard_runs() {
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
        let (mut random, (ran, received)) = (Random(52), channel());
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
fn a_timeout_that_is_moved_while_another_thread_uses_its_shard_runs() {
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
        let (mut random, (ran, received)) = (Random(36), channel());
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

/// Meets the worker on its way to bed, a moment after its turn.
#[test]
fn a_timeout_that_is_scheduled_just_after_a_turn_is_not_slept_over() {
    let timer = Timer::builder().tick_duration(MICRO).build().unwrap();
    accepted(timer.new_timeout(HOUR, |_| {}));
    let ran = Arc::new(AtomicU32::new(0));
    let mut random = Random(33);
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
