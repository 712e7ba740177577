//! Models of the lock of a shard. There is one guard at a time. A caller at the gate and a worker
//! that has asked for the lock or reserved it are woken.
//!
//! All parks are without a limit, so a lost wake-up is a deadlock.

use super::{check, check_at, check_heavy, fails, fails_at};
use crate::sync::{Arc, How, Lock, Parker, UnlockDuties};
use loom::thread;

/// A lock, and the parker of its worker.
struct Shared {
    lock: Lock<u32>,
    worker: Parker,
}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self { lock: Lock::new(0), worker: Parker::default() })
    }

    /// Performs the duties of a lock holder after it has unlocked.
    fn answer(&self, owed: UnlockDuties) {
        if owed.wake() {
            self.lock.take_wake();
        }
        if owed.wake() || owed.ring() {
            self.worker.unpark();
        }
    }

    /// Locks as a caller does that waits if necessary.
    fn call(&self) {
        let mut guard = self.lock.lock();
        *guard += 1;
        self.answer(guard.unlock());
    }

    /// Locks as a caller does that continues if the lock is held.
    fn try_call(&self) -> u32 {
        let Some(mut guard) = self.lock.try_lock() else { return 0 };
        *guard += 1;
        self.answer(guard.unlock());
        1
    }

    /// Performs the worker's step 3 until it has the lock.
    fn ask(&self) {
        loop {
            if let Some(mut guard) = self.lock.try_lock_or_ask() {
                *guard += 1;
                return self.answer(guard.unlock());
            }
            self.worker.park(None);
        }
    }

    /// Performs the worker's step 4.
    fn reserve(&self) {
        let mut guard = self.lock.lock_reserved(|| self.worker.park(None));
        *guard += 1;
        self.answer(guard.unlock());
    }

    fn value(&self) -> u32 {
        *self.lock.try_lock().expect("it is free")
    }
}

fn two(first: fn(&Shared), second: fn(&Shared)) {
    let shared = Shared::new();
    let other = {
        let shared = shared.clone();
        thread::spawn(move || first(&shared))
    };
    second(&shared);
    other.join().unwrap();
    assert_eq!(shared.value(), 2);
}

fn three(first: fn(&Shared), second: fn(&Shared), third: fn(&Shared)) {
    let shared = Shared::new();
    let others = [first, second].map(|body| {
        let shared = shared.clone();
        thread::spawn(move || body(&shared))
    });
    third(&shared);
    others.into_iter().for_each(|other| other.join().unwrap());
    assert_eq!(shared.value(), 3);
}

#[test]
fn one_of_two_callers_has_the_lock() {
    check_at(4, || {
        let shared = Shared::new();
        let other = {
            let shared = shared.clone();
            thread::spawn(move || shared.try_call())
        };
        let mine = shared.try_call();
        let theirs = other.join().unwrap();
        assert!(mine + theirs >= 1 && shared.value() == mine + theirs);
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn negative_unlock_without_release() {
    fails("sync/lock.rs", "word.fetch_sub(LOCKED", How::Relaxed, || two(Shared::call, Shared::call));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn negative_locking_without_acquire() {
    fails("sync/lock.rs", "self.word.compare_exchange(old, new", How::Relaxed, || two(Shared::call, Shared::call));
}

#[test]
#[should_panic]
fn negative_locking_by_load_and_store() {
    fails("sync/lock.rs", "self.word.compare_exchange(old, new", How::Split, || two(Shared::call, Shared::call));
}

#[test]
fn two_at_the_gate() {
    check_at(4, || two(Shared::call, Shared::call));
}

#[test]
fn three_at_the_gate() {
    check(|| three(Shared::call, Shared::call, Shared::call));
}

#[test]
#[should_panic(expected = "deadlock")]
fn negative_the_gate_is_not_rung() {
    fails("sync/lock.rs", "lock.bell.unpark()", How::Skip, || two(Shared::call, Shared::call));
}

#[test]
#[should_panic(expected = "deadlock")]
fn negative_unlock_by_load_and_store_loses_the_gate() {
    fails("sync/lock.rs", "word.fetch_sub(LOCKED", How::Split, || two(Shared::call, Shared::call));
}

/// The worker asks for the lock and continues. It gets the lock, or the holder wakes it.
#[test]
fn the_worker_that_asks_is_woken() {
    check_at(4, || two(Shared::call, Shared::ask));
}

#[test]
fn the_worker_that_asks_is_woken_from_the_gate() {
    check(|| three(Shared::call, Shared::call, Shared::ask));
}

#[test]
#[should_panic(expected = "it is free")]
fn negative_a_wake_taken_by_load_and_store() {
    let model = || three(Shared::call, Shared::call, Shared::ask);
    fails_at(3, "sync/lock.rs", "self.word.fetch_and(!WAKE", How::Split, model);
}

#[test]
#[should_panic(expected = "deadlock")]
fn negative_the_holder_does_not_wake_the_worker() {
    fn call_and_forget(shared: &Shared) {
        let mut guard = shared.lock.lock();
        *guard += 1;
        let _ = guard.unlock();
    }
    check(|| two(call_and_forget, Shared::ask));
}

/// The holder rings the worker that has reserved the lock, and the worker rings the gate when it
/// unlocks.
#[test]
fn the_worker_that_reserves_is_rung() {
    check_at(4, || two(Shared::call, Shared::reserve));
}

#[test]
fn reserving_overtakes_the_gate_and_rings_it() {
    check(|| three(Shared::call, Shared::call, Shared::reserve));
}

/// The worker performs step 3 in vain and then step 4, beside a caller at the gate.
#[test]
fn the_worker_that_asks_in_vain_reserves() {
    fn ask_then_reserve(shared: &Shared) {
        match shared.lock.try_lock_or_ask() {
            Some(mut guard) => {
                *guard += 1;
                shared.answer(guard.unlock());
            }
            None => shared.reserve(),
        }
    }
    check_heavy(|| three(Shared::call, Shared::call, ask_then_reserve));
}

#[test]
#[should_panic(expected = "deadlock")]
fn negative_reserving_does_not_ring_the_gate() {
    fails("sync/lock.rs", "lock.bell.unpark()", How::Skip, || three(Shared::call, Shared::call, Shared::reserve));
}

#[test]
#[should_panic(expected = "deadlock")]
fn negative_unlock_by_load_and_store_loses_reserved() {
    fails("sync/lock.rs", "word.fetch_sub(LOCKED", How::Split, || two(Shared::call, Shared::reserve));
}
