//! Models of the alarm. If a caller schedules the earliest timeout while the worker is going to
//! sleep, no wake-up is missed and at most one is sent.

use super::{check, check_at, engine, fails, fails_at, new};
use crate::alarm::Alarm;
use crate::deadline::NO_TICK;
use crate::sync::{Arc, AtomicU64, How, Ordering};
use loom::thread;

/// The sleeper parks without a limit, so a missed wake-up is a deadlock.
fn sleep_and_schedule() {
    let engine = engine();
    let caller = {
        let engine = engine.clone();
        thread::spawn(move || drop(new(&engine, 5)))
    };
    let alarm = &engine.context.alarm;
    loop {
        alarm.arm();
        let next = engine.next();
        if next != NO_TICK {
            break;
        }
        if alarm.set(next) {
            alarm.park(None);
        }
    }
    caller.join().unwrap();
    assert!(alarm.wake_ups_sent() <= 1);
}

#[test]
fn no_wake_up_is_missed() {
    check_at(3, sleep_and_schedule);
}

#[test]
#[should_panic(expected = "deadlock")]
fn negative_a_caller_does_not_wake() {
    fails("alarm.rs", "|until| Some(sooner(until))", How::Skip, sleep_and_schedule);
}

#[test]
#[should_panic(expected = "deadlock")]
fn negative_arming_without_acquire() {
    fails("alarm.rs", "self.until.swap(NO_TICK", How::Relaxed, sleep_and_schedule);
}

#[test]
#[should_panic(expected = "deadlock")]
fn negative_arming_by_load_and_store() {
    fails("alarm.rs", "self.until.swap(NO_TICK", How::Split, sleep_and_schedule);
}

/// A caller only loads the word before it decides to wake the sleeper. A load has no place in the
/// word's history, so it may read an old `AWAKE`.
#[test]
#[should_panic(expected = "deadlock")]
fn negative_a_caller_only_loads() {
    fails("alarm.rs", "|until| Some(sooner(until))", How::Read, sleep_and_schedule);
}

/// Only one of many callers wakes the sleeper.
#[test]
fn two_callers_send_one_wake_up() {
    check(|| {
        let engine = engine();
        let alarm = &engine.context.alarm;
        alarm.arm();
        assert!(alarm.set(engine.next()));
        let other = {
            let engine = engine.clone();
            thread::spawn(move || drop(new(&engine, 5)))
        };
        drop(new(&engine, 7));
        other.join().unwrap();
        assert_eq!(alarm.wake_ups_sent(), 1);
    });
}

/// The worker takes a turn between two sleeps. `disarm` must not break the order between a caller
/// that has found the sleeper awake and the sleeper's next look at the shards.
fn turn_between_two_sleeps() {
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
    assert!(!sleeps || alarm.is_up(), "asleep, and no call has come");
}

#[test]
fn a_turn_between_two_sleeps_hides_nothing() {
    check_at(3, turn_between_two_sleeps);
}

#[test]
#[should_panic(expected = "asleep")]
fn negative_a_plain_store_between_two_sleeps() {
    fails_at(3, "alarm.rs", "self.until.swap(AWAKE", How::Split, turn_between_two_sleeps);
}
