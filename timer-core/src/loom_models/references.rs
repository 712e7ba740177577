//! Models of the reference count of a timeout. Two handles and the worker have references. The
//! reference of the wheel is handed over by a plain store, and the last one is dropped by loads.
//!
//! The checker sees each use and each free of an entry. A use after the free, a second free and a
//! leak fail.

use super::{DropCounter, Outcome, beside, check};
use crate::deadline::Deadline;
use crate::entry::state::{Cancel, Due};
use crate::entry::{Closure, ShardId, Timeout};
use crate::sync::{Arc, Mutex};
use loom::thread;

/// A wheel with room for one entry, behind its lock.
type Wheel = Mutex<Option<Timeout>>;

fn entry() -> (Timeout, Arc<Wheel>, &'static Outcome) {
    let (counter, outcome) = Outcome::counter();
    let shard = ShardId { index: 0, generation: 0 };
    let (user, linked) = Timeout::new(shard, Deadline::up(5), Closure(move |_: &Timeout| DropCounter::run(&counter)));
    (user, Arc::new(Mutex::new(Some(linked))), outcome)
}

fn cancel(timeout: &Timeout, wheel: &Wheel) {
    let (cancel, right) = timeout.decide_cancel();
    if cancel != Cancel::WasWaiting {
        return;
    }
    if wheel.lock().take().map(std::mem::forget).is_some() {
        timeout.take_over();
    }
    right.unwrap().cancelled();
}

/// A thread that cancels and drops its handle.
fn cancel_elsewhere(timeout: Timeout, wheel: &Arc<Wheel>) -> thread::JoinHandle<()> {
    let wheel = wheel.clone();
    thread::spawn(move || {
        cancel(&timeout, &wheel);
        drop(timeout);
    })
}

fn expire(wheel: &Wheel) {
    let Some(timeout) = wheel.lock().take() else { return };
    if let Due::Won(right) = timeout.expire(5) {
        assert!(right.run().is_none());
    }
}

/// One handle cancels the timeout, and both handles are dropped.
fn cancel_and_drop() {
    let (timeout, wheel, outcome) = entry();
    let other = timeout.clone();
    let canceller = cancel_elsewhere(timeout, &wheel);
    drop(other);
    canceller.join().unwrap();
    assert_eq!((outcome.ran(), outcome.dropped()), (0, 1));
}

/// One handle cancels the timeout, both handles are dropped, and the worker removes the entry and
/// runs it if it can.
fn cancel_and_drop_and_expire() {
    let (timeout, wheel, outcome) = entry();
    let other = timeout.clone();
    let canceller = cancel_elsewhere(timeout, &wheel);
    let worker = beside(&wheel, move |wheel| expire(&wheel));
    drop(other);
    canceller.join().unwrap();
    worker.join().unwrap();
    assert_eq!(outcome.dropped(), 1);
    assert!(wheel.lock().is_none());
}

model!(check_at 4, cancel_and_drop,
    the_mark_is_not_set ["leaked"] Skip "entry/mod.rs" "bucket.store(Location::REFERENCE_TAKEN",
    dropping_without_release ["Causality violation"] Relaxed "entry/mod.rs" "match header.refs.compare_exchange_weak",
    dropping_by_load_and_store Split "entry/mod.rs" "match header.refs.compare_exchange_weak",
    the_last_does_not_acquire ["Causality violation"] Relaxed "entry/mod.rs" "self.remaining_refs(self.header().refs.load",
);

model!(check_at 3, cancel_and_drop_and_expire,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

fn two_cancel_and_the_worker() {
    let (timeout, wheel, outcome) = entry();
    let cancellers = [timeout.clone(), timeout].map(|timeout| cancel_elsewhere(timeout, &wheel));
    expire(&wheel);
    cancellers.into_iter().for_each(|canceller| canceller.join().unwrap());
    assert_eq!(outcome.dropped(), 1);
}

model!(check, two_cancel_and_the_worker,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

/// A handle is cloned while others are dropped.
fn a_clone_while_others_are_dropped() {
    let (timeout, wheel, _) = entry();
    let other = timeout.clone();
    let canceller = cancel_elsewhere(timeout, &wheel);
    let cloner = thread::spawn(move || {
        let third = other.clone();
        drop(other);
        assert!(!third.state().is_waiting() || third.state().deadline() == Deadline::up(5));
    });
    expire(&wheel);
    canceller.join().unwrap();
    cloner.join().unwrap();
}

model!(check_heavy, a_clone_while_others_are_dropped,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

/// The canceller sets the mark although the worker has removed the entry, so the worker's reference
/// is counted.
#[test]
#[should_panic]
fn negative_the_workers_reference_is_handed_over() {
    check(|| {
        let (timeout, wheel, _) = entry();
        let canceller = thread::spawn(move || {
            if let (Cancel::WasWaiting, Some(right)) = timeout.decide_cancel() {
                std::mem::forget(timeout.clone());
                timeout.take_over();
                right.cancelled();
            }
            drop(timeout);
        });
        expire(&wheel);
        canceller.join().unwrap();
    });
}
