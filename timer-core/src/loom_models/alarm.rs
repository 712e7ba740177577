//! Models of the alarm. If a caller schedules the earliest timeout while the worker is going to
//! sleep, no wake-up is missed and at most one is sent.

use super::{beside, engine, new};
use crate::alarm::Alarm;
use crate::deadline::NO_TICK;
use crate::sync::{Arc, AtomicU64, Ordering};
use loom::thread;

/// The sleeper parks without a limit, so a missed wake-up is a deadlock.
fn sleep_and_schedule() {
    let engine = engine();
    let caller = beside(&engine, move |engine| drop(new(&engine, 5)));
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

model!(check_at 3, sleep_and_schedule,
    a_caller_does_not_wake ["deadlock"] Skip "alarm.rs" "|until| Some(sooner(until))",
    arming_without_acquire ["deadlock"] Relaxed "alarm.rs" "self.until.swap(NO_TICK",
    arming_by_load_and_store ["deadlock"] Split "alarm.rs" "self.until.swap(NO_TICK",
    // A caller only loads the word before it decides to wake the sleeper. A load has no place in
    // the word's history, so it may read an old `AWAKE`.
    a_caller_only_loads ["deadlock"] Read "alarm.rs" "|until| Some(sooner(until))",
);

/// Only one of many callers wakes the sleeper.
fn two_callers_send_one_wake_up() {
    let engine = engine();
    let alarm = &engine.context.alarm;
    alarm.arm();
    assert!(alarm.set(engine.next()));
    let other = beside(&engine, move |engine| drop(new(&engine, 5)));
    drop(new(&engine, 7));
    other.join().unwrap();
    assert_eq!(alarm.wake_ups_sent(), 1);
}

model!(check, two_callers_send_one_wake_up,
    locking_in_two_steps Split "sync/lock.rs" "self.word.compare_exchange(old, new",
);

/// The worker takes a turn between two sleeps. `disarm` must not break the order between a caller
/// that has found the sleeper awake and the sleeper's next look at the shards.
fn turn_between_two_sleeps() {
    let next = Arc::new(AtomicU64::new(NO_TICK));
    let alarm = Arc::new(Alarm::default());
    let first = beside(&alarm, move |alarm| alarm.wake_before(3));
    let second = {
        let next = next.clone();
        let alarm = alarm.clone();
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

model!(check_at 3, turn_between_two_sleeps,
    a_plain_store_between_two_sleeps ["asleep"] Split "alarm.rs" "self.until.swap(AWAKE",
);
