//! A new earliest timeout while the worker goes to sleep: no wake-up is missed, and no more than one is sent.

use super::{check, schedule, shard};
use crate::sync::{AtomicU64, Ordering};
use crate::time::NO_TICK;
use loom::sync::Arc;
use loom::thread;

/// The sleeper parks for ever unless it is told: if the caller's wake-up could be missed, this would be a deadlock. (The
/// stand-in for the parker asserts that no token is given twice.)
#[test]
fn loom_alarm_no_wake_up_is_missed() {
    check(|| {
        let shard = shard();
        let caller = {
            let shard = shard.clone();
            thread::spawn(move || drop(schedule(&shard, 5)))
        };
        let alarm = &shard.context().alarm;
        loop {
            alarm.arm();
            let next = shard.next_for_sleeper();
            if next != NO_TICK {
                break;
            }
            if alarm.set(next) {
                alarm.park(None);
            }
        }
        caller.join().unwrap();
    });
}

/// The same with a caller that looks at the word before it wakes, as one is tempted to write it: a load is not part of the
/// word's history, so the caller may read an old `AWAKE`.
#[test]
#[should_panic(expected = "deadlock")]
fn loom_alarm_negative_a_caller_that_only_loads_misses_a_wake_up() {
    check(|| {
        let next = Arc::new(AtomicU64::new(NO_TICK));
        let until = Arc::new(AtomicU64::new(0));
        let bed = Arc::new(crate::sync::Parker::default());
        let caller = {
            let (next, until, bed) = (next.clone(), until.clone(), bed.clone());
            thread::spawn(move || {
                next.store(5, Ordering::Relaxed);
                if until.load(Ordering::Acquire) > 5 && until.swap(0, Ordering::AcqRel) > 5 {
                    bed.unpark();
                }
            })
        };
        loop {
            until.swap(NO_TICK, Ordering::AcqRel);
            if next.load(Ordering::Relaxed) != NO_TICK {
                break;
            }
            if until.compare_exchange(NO_TICK, NO_TICK, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                bed.park(None);
            }
        }
        caller.join().unwrap();
    });
}
