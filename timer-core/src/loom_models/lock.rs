//! Models of the lock of a shard. There is one guard at a time. A caller at the gate and a worker
//! that has reserved the lock are woken.
//!
//! All waits are without a limit, so a lost wake-up is a deadlock.

use super::beside;
use crate::sync::{Arc, Lock};

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
    let other = beside(&shared, move |shared| first(&shared));
    second(&shared);
    other.join().unwrap();
    assert_eq!(value(&shared), 2);
}

fn three(first: fn(&Shared), second: fn(&Shared), third: fn(&Shared)) {
    let shared = Arc::new(Shared::new(0));
    let others = [first, second].map(|body| beside(&shared, move |shared| body(&shared)));
    third(&shared);
    others.into_iter().for_each(|other| other.join().unwrap());
    assert_eq!(value(&shared), 3);
}

fn one_of_two_callers_has_the_lock() {
    let shared = Arc::new(Shared::new(0));
    let other = beside(&shared, move |shared| try_call(&shared));
    let mine = try_call(&shared);
    let theirs = other.join().unwrap();
    assert!(mine + theirs >= 1 && value(&shared) == mine + theirs);
}

model!(check_at 4, one_of_two_callers_has_the_lock,
    locking_in_two_steps Split "sync/lock.rs" "self.word.compare_exchange(old, new",
);

fn two_at_the_gate() {
    two(call, call);
}

model!(check_at 4, two_at_the_gate,
    unlock_without_release ["Causality violation"] Relaxed "sync/lock.rs" "word.fetch_sub(LOCKED",
    locking_without_acquire ["Causality violation"] Relaxed "sync/lock.rs" "self.word.compare_exchange(old, new",
    locking_by_load_and_store Split "sync/lock.rs" "self.word.compare_exchange(old, new",
    the_gate_is_not_rung ["deadlock"] Skip "sync/lock.rs" "notify_all()",
    unlock_by_load_and_store_loses_the_gate ["deadlock"] Split "sync/lock.rs" "word.fetch_sub(LOCKED",
);

fn three_at_the_gate() {
    three(call, call, call);
}

model!(check, three_at_the_gate, locking_in_two_steps Split "sync/lock.rs" "self.word.compare_exchange(old, new");

/// The holder rings the worker that has reserved the lock.
fn the_worker_that_reserves_is_rung() {
    two(call, reserve);
}

model!(check_at 4, the_worker_that_reserves_is_rung,
    the_worker_is_not_rung ["deadlock"] Skip "sync/lock.rs" "notify_all()",
    unlock_by_load_and_store_loses_reserved ["deadlock"] Split "sync/lock.rs" "word.fetch_sub(LOCKED",
);

fn reserving_overtakes_the_gate_and_rings_it() {
    three(call, call, reserve);
}

model!(check, reserving_overtakes_the_gate_and_rings_it,
    reserving_does_not_ring_the_gate ["deadlock"] Skip "sync/lock.rs" "notify_all()",
);

/// The worker reserves the lock without waiting, and then waits for it, beside callers at the gate.
fn the_worker_that_tries_in_vain_waits() {
    fn try_then_wait(shared: &Shared) {
        match shared.lock_or_reserve() {
            Some(mut guard) => *guard += 1,
            None => reserve(shared),
        }
    }
    three(call, call, try_then_wait);
}

model!(check_heavy, the_worker_that_tries_in_vain_waits,
    locking_in_two_steps Split "sync/lock.rs" "self.word.compare_exchange(old, new",
);
