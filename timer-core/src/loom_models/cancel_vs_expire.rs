//! Models of the races between cancel, reset and expiry. Exactly one of them wins. The task either
//! runs or is dropped, once, and the entry is freed once.

use super::{assert_sound, beside, check, engine, new, set_time, turn, turn_at, turn_out};
use crate::deadline::NO_TICK;
use crate::entry::Timeout;
use crate::entry::state::Cancel;
use loom::thread;
use std::time::Duration;

fn cancel_and_expire() {
    let engine = engine();
    let (timeout, outcome) = new(&engine, 5);
    set_time(&engine, 5);
    let canceller = thread::spawn(move || timeout.cancel());
    let ran = turn(&mut engine.dispatcher());
    let cancelled = canceller.join().unwrap();
    assert_eq!(ran + usize::from(cancelled), 1, "both have won");
    assert_eq!((outcome.ran(), outcome.dropped()), (ran, 1));
    let stats = engine.stats();
    assert_eq!((stats.cancelled, stats.expired, stats.pending), (u64::from(cancelled), ran as u64, 0));
    assert_sound(&engine);
}

model!(check, cancel_and_expire,
    a_load_and_a_store_let_both_win Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

/// One thread writes the task, and the thread that wins takes it.
fn one_of_two_cancels_wins() {
    let engine = engine();
    let (timeout, outcome) = new(&engine, 5);
    let other = beside(&timeout, move |timeout| timeout.cancel());
    let mine = timeout.cancel();
    let theirs = other.join().unwrap();
    assert!(mine != theirs);
    assert_eq!((outcome.ran(), outcome.dropped(), engine.stats().cancelled), (0, 1, 1));
    drop(timeout);
    assert_eq!(turn_out(&mut engine.dispatcher()), 0, "nothing is left in the wheel");
    assert_sound(&engine);
}

model!(check, one_of_two_cancels_wins,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

fn cancel_and_reset_to_later() {
    cancel_and_reset(9);
}

model!(check, cancel_and_reset_to_later,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

fn cancel_and_reset_to_earlier() {
    cancel_and_reset(2);
}

model!(check, cancel_and_reset_to_earlier,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

fn cancel_and_reset(nanos: u64) {
    let engine = engine();
    let (timeout, outcome) = new(&engine, 5);
    let other = beside(&timeout, move |timeout| timeout.reset(Duration::from_nanos(nanos)));
    assert!(timeout.cancel(), "a reset never prevents a cancel");
    let _ = other.join().unwrap();
    assert_eq!((outcome.ran(), outcome.dropped(), engine.pending()), (0, 1, 0));
    drop(timeout);
    assert_eq!(turn_out(&mut engine.dispatcher()), 0, "it does not run");
    assert_sound(&engine);
}

/// If the reset comes first, the timeout is linked again. If the expiry comes first, the reset
/// returns `false`.
fn reset_and_expire() {
    let engine = engine();
    let (timeout, outcome) = new(&engine, 5);
    set_time(&engine, 5);
    let other = beside(&timeout, move |timeout| timeout.reset(Duration::from_nanos(4)));
    let mut dispatcher = engine.dispatcher();
    let ran = turn(&mut dispatcher);
    let moved = other.join().unwrap();
    assert_eq!(ran, usize::from(!moved));
    if moved {
        assert_eq!(turn_at(&mut dispatcher, 8), 0, "not at the old deadline");
        assert_eq!(turn_at(&mut dispatcher, 9), 1, "but at the new one");
    }
    assert_eq!((outcome.ran(), outcome.dropped(), engine.next()), (1, 1, NO_TICK));
    assert_sound(&engine);
}

model!(check, reset_and_expire,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

/// The entry is linked at its earlier deadline in time, even if another caller holds the shard's
/// lock.
fn reset_to_earlier_while_others_are_at_work() {
    let engine = engine();
    let (timeout, outcome) = new(&engine, 90);
    let other = beside(&engine, move |engine| drop(new(&engine, 50)));
    assert!(timeout.reset(Duration::from_nanos(5)));
    other.join().unwrap();
    assert!(engine.next() <= 5, "missed");
    assert_eq!((turn_at(&mut engine.dispatcher(), 5), outcome.ran()), (1, 1));
    assert_sound(&engine);
}

model!(check, reset_to_earlier_while_others_are_at_work,
    locking_in_two_steps Split "sync/lock.rs" "self.word.compare_exchange(old, new",
);

/// The timeout is cancelled while a turn moves the entry to a finer level, without writing the new
/// location into it.
fn cancel_while_the_entry_is_cascaded() {
    let engine = engine();
    let (timeout, outcome) = new(&engine, 70);
    let (near, _) = new(&engine, 64);
    drop(near);
    set_time(&engine, 64);
    let other = thread::spawn(move || timeout.cancel());
    let mut dispatcher = engine.dispatcher();
    let _ = turn(&mut dispatcher);
    assert!(other.join().unwrap());
    assert_eq!((outcome.ran(), outcome.dropped()), (0, 1));
    let _ = turn_out(&mut dispatcher);
    assert_eq!((outcome.ran(), engine.pending()), (0, 0));
    assert_sound(&engine);
}

model!(check, cancel_while_the_entry_is_cascaded,
    locking_in_two_steps Split "sync/lock.rs" "self.word.compare_exchange(old, new",
);

/// A timeout is cancelled while a turn has taken its entry out, and another one has got its place
/// in the wheel. The other one runs.
fn beside_another_at_its_former_place(cancel: fn(&Timeout) -> bool) {
    let engine = engine();
    let (timeout, outcome) = new(&engine, 0);
    let canceller = beside(&engine, move |engine| {
        let (_, other) = new(&engine, 0);
        (cancel(&timeout), other)
    });
    let mut dispatcher = engine.dispatcher();
    let _ = turn(&mut dispatcher);
    let (cancelled, other) = canceller.join().unwrap();
    let _ = turn_out(&mut dispatcher);
    assert_eq!(other.ran(), 1, "the other one has vanished");
    assert_eq!((outcome.ran() + usize::from(cancelled), outcome.dropped(), engine.pending()), (1, 1, 0));
    assert_sound(&engine);
}

fn cancel_beside_another_at_its_former_place() {
    beside_another_at_its_former_place(Timeout::cancel);
}

model!(check, cancel_beside_another_at_its_former_place,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

#[test]
#[should_panic(expected = "Causality violation")]
fn negative_a_cancel_relies_on_a_location_of_any_generation() {
    check(|| {
        beside_another_at_its_former_place(|timeout| {
            let (Cancel::WasWaiting, Some(right)) = timeout.decide_cancel() else { return false };
            timeout.shard().unlink_at_any_generation(timeout);
            right.cancelled();
            true
        });
    });
}

/// A timeout is cancelled while a cascade takes its entry out and moves another one.
fn cancel_while_a_cascade_hands_the_entry_out() {
    let engine = engine();
    let (timeout, outcome) = new(&engine, 64);
    let (_, later) = new(&engine, 70);
    set_time(&engine, 64);
    let canceller = beside(&engine, move |engine| {
        let (_, other) = new(&engine, 70);
        (timeout.cancel(), other)
    });
    let mut dispatcher = engine.dispatcher();
    let ran = turn(&mut dispatcher);
    let (cancelled, other) = canceller.join().unwrap();
    assert_eq!((ran + usize::from(cancelled), outcome.dropped()), (1, 1));
    let _ = turn_at(&mut dispatcher, 70);
    assert_eq!((later.ran(), other.ran(), engine.pending()), (1, 1, 0));
    assert_sound(&engine);
}

model!(check, cancel_while_a_cascade_hands_the_entry_out,
    locking_in_two_steps Split "sync/lock.rs" "self.word.compare_exchange(old, new",
);

/// A cancel, a reset and an expiry meet.
fn cancel_and_reset_and_expire() {
    let engine = engine();
    let (timeout, outcome) = new(&engine, 5);
    set_time(&engine, 5);
    let canceller = beside(&timeout, move |timeout| timeout.cancel());
    let mover = thread::spawn(move || timeout.reset(Duration::from_nanos(4)));
    let mut dispatcher = engine.dispatcher();
    let mut ran = turn(&mut dispatcher);
    let cancelled = canceller.join().unwrap();
    let _ = mover.join().unwrap();
    ran += turn_out(&mut dispatcher);
    assert_eq!(ran + usize::from(cancelled), 1);
    assert_eq!((outcome.ran(), outcome.dropped(), engine.pending()), (ran, 1, 0));
    assert_sound(&engine);
}

model!(check_heavy, cancel_and_reset_and_expire,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);
