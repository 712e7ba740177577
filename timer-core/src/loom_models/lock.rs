//! Models of the lock of a shard. There is one guard at a time. A caller at the gate and a worker
//! that has reserved the lock are woken.
//!
//! All waits are without a limit, so a lost wake-up is a deadlock.

use super::{check, check_at, check_heavy, fails};
use crate::sync::{Arc, How, Lock};
use loom::thread;

type Shared = Lock<u32>;

/// Locks as a caller does that waits if necessary.
fn call(shared: &Shared) {
    *shared.lock() += 1;
}

/// Locks as a caller does that continues if the lock is held.
fn try_call(shared: &Shared) -> u32 {
    let Some(mut guard) = shared.try_lock() else { return 0 };
    *guard += 1;
    1
}

/// Locks as the worker does.
fn reserve(shared: &Shared) {
    *shared.lock_reserved() += 1;
}

fn value(shared: &Shared) -> u32 {
    *shared.try_lock().expect("it is free")
}

fn two(first: fn(&Shared), second: fn(&Shared)) {
    let shared = Arc::new(Shared::new(0));
    let other = {
        let shared = shared.clone();
        thread::spawn(move || first(&shared))
    };
    second(&shared);
    other.join().unwrap();
    assert_eq!(value(&shared), 2);
}

fn three(first: fn(&Shared), second: fn(&Shared), third: fn(&Shared)) {
    let shared = Arc::new(Shared::new(0));
    let others = [first, second].map(|body| {
        let shared = shared.clone();
        thread::spawn(move || body(&shared))
    });
    third(&shared);
    others.into_iter().for_each(|other| other.join().unwrap());
    assert_eq!(value(&shared), 3);
}

#[test]
fn one_of_two_callers_has_the_lock() {
    check_at(4, || {
        let shared = Arc::new(Shared::new(0));
        let other = {
            let shared = shared.clone();
            thread::spawn(move || try_call(&shared))
        };
        let mine = try_call(&shared);
        let theirs = other.join().unwrap();
        assert!(mine + theirs >= 1 && value(&shared) == mine + theirs);
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn negative_unlock_without_release() {
    fails("sync/lock.rs", "word.fetch_sub(LOCKED", How::Relaxed, || two(call, call));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn negative_locking_without_acquire() {
    fails("sync/lock.rs", "self.word.compare_exchange(old, new", How::Relaxed, || two(call, call));
}

#[test]
#[should_panic]
fn negative_locking_by_load_and_store() {
    fails("sync/lock.rs", "self.word.compare_exchange(old, new", How::Split, || two(call, call));
}

#[test]
fn two_at_the_gate() {
    check_at(4, || two(call, call));
}

#[test]
fn three_at_the_gate() {
    check(|| three(call, call, call));
}

#[test]
#[should_panic(expected = "deadlock")]
fn negative_the_gate_is_not_rung() {
    fails("sync/lock.rs", "notify_all()", How::Skip, || two(call, call));
}

#[test]
#[should_panic(expected = "deadlock")]
fn negative_unlock_by_load_and_store_loses_the_gate() {
    fails("sync/lock.rs", "word.fetch_sub(LOCKED", How::Split, || two(call, call));
}

/// The holder rings the worker that has reserved the lock.
#[test]
fn the_worker_that_reserves_is_rung() {
    check_at(4, || two(call, reserve));
}

#[test]
fn reserving_overtakes_the_gate_and_rings_it() {
    check(|| three(call, call, reserve));
}

/// The worker reserves the lock without waiting, and then waits for it, beside callers at the gate.
#[test]
fn the_worker_that_tries_in_vain_waits() {
    fn try_then_wait(shared: &Shared) {
        match shared.lock_or_reserve() {
            Some(mut guard) => *guard += 1,
            None => reserve(shared),
        }
    }
    check_heavy(|| three(call, call, try_then_wait));
}

#[test]
#[should_panic(expected = "deadlock")]
fn negative_the_worker_is_not_rung() {
    fails("sync/lock.rs", "notify_all()", How::Skip, || two(call, reserve));
}

#[test]
#[should_panic(expected = "deadlock")]
fn negative_reserving_does_not_ring_the_gate() {
    fails("sync/lock.rs", "notify_all()", How::Skip, || three(call, call, reserve));
}

#[test]
#[should_panic(expected = "deadlock")]
fn negative_unlock_by_load_and_store_loses_reserved() {
    fails("sync/lock.rs", "word.fetch_sub(LOCKED", How::Split, || two(call, reserve));
}
