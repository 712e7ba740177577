//! A new earliest timeout while the worker goes to sleep: no wake-up is missed, and no more than one is sent.

use super::{check, check_at, schedule, shard};
use crate::alarm::Alarm;
use crate::sync::{AtomicU64, Ordering};
use crate::time::NO_TICK;
use loom::sync::Arc;
use loom::thread;

/// The sleeper parks for ever unless it is told: if the caller's wake-up could be missed, this would be a deadlock.
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
        assert!(alarm.wake_ups_sent() <= 1);
    });
}

/// One who sleeps is told by one of many callers, not by each.
#[test]
fn loom_alarm_two_callers_send_one_wake_up() {
    check(|| {
        let shard = shard();
        let alarm = &shard.context().alarm;
        alarm.arm();
        assert!(alarm.set(shard.next_for_sleeper()));
        let other = {
            let shard = shard.clone();
            thread::spawn(move || drop(schedule(&shard, 5)))
        };
        drop(schedule(&shard, 7));
        other.join().unwrap();
        assert_eq!(alarm.wake_ups_sent(), 1);
    });
}

/// A turn between two sleeps, as the worker takes them: `disarm` must not cut the order between a caller that found the
/// sleeper up and the sleeper's next look.
#[test]
fn loom_alarm_a_turn_between_two_sleeps_hides_nothing() {
    check_at(3, || {
        let next = Arc::new(AtomicU64::new(NO_TICK));
        let alarm = Arc::new(Alarm::default());
        let first = {
            let alarm = alarm.clone();
            thread::spawn(move || alarm.wake_before(3))
        };
        let second = {
            let (next, alarm) = (next.clone(), alarm.clone());
            thread::spawn(move || {
                next.store(5, Ordering::Relaxed);
                alarm.wake_before(5);
            })
        };
        alarm.arm();
        alarm.disarm();
        alarm.arm();
        let sleeps = next.load(Ordering::Relaxed) == NO_TICK && alarm.set(NO_TICK);
        first.join().unwrap();
        second.join().unwrap();
        assert!(!sleeps || alarm.is_up(), "asleep, and nobody has called");
    });
}

/// The same with a plain store for `disarm`.
#[test]
#[should_panic(expected = "asleep")]
fn loom_alarm_negative_a_plain_store_between_two_sleeps_cuts_the_order() {
    check_at(3, || {
        let next = Arc::new(AtomicU64::new(NO_TICK));
        let until = Arc::new(AtomicU64::new(0));
        let wake_before = |until: &AtomicU64, tick: u64| {
            let sooner = |until: u64| Some(if until > tick { 0 } else { until });
            until.fetch_update(Ordering::AcqRel, Ordering::Acquire, sooner).unwrap();
        };
        let first = {
            let until = until.clone();
            thread::spawn(move || wake_before(&until, 3))
        };
        let second = {
            let (next, until) = (next.clone(), until.clone());
            thread::spawn(move || {
                next.store(5, Ordering::Relaxed);
                wake_before(&until, 5);
            })
        };
        until.swap(NO_TICK, Ordering::AcqRel);
        until.store(0, Ordering::Relaxed);
        until.swap(NO_TICK, Ordering::AcqRel);
        let sleeps = next.load(Ordering::Relaxed) == NO_TICK
            && until.compare_exchange(NO_TICK, NO_TICK, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        first.join().unwrap();
        second.join().unwrap();
        assert!(!sleeps || until.load(Ordering::Acquire) == 0, "asleep, and nobody has called");
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
