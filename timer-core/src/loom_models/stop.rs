//! Models of `stop`, which closes the shards first. It meets new timeouts, requests, cancels,
//! resets and expiries. Each accepted timeout ends exactly once, and the number of pending timeouts
//! returns to zero.

use super::{assert_sound, beside, check, engine, new, set_time, try_new, turn_elsewhere};
use crate::deadline::NO_TICK;
use crate::error::RejectReason;
use loom::thread;
use std::time::Duration;

fn a_new_timeout_beside_stop() {
    let engine = engine();
    let caller = beside(&engine, move |engine| try_new(&engine, 5));
    let handed_back = engine.stop().len();
    let (scheduled, outcome) = caller.join().unwrap();
    let stats = engine.stats();
    match scheduled {
        Ok(timeout) => {
            assert_eq!(handed_back, 1, "accepted, so it comes back");
            assert!(timeout.is_cancelled());
            assert_eq!((stats.scheduled, stats.cancelled, stats.rejected), (1, 1, 0));
        }
        Err(reason) => {
            assert_eq!((reason, handed_back), (RejectReason::Stopped, 0));
            assert_eq!((stats.scheduled, stats.cancelled, stats.rejected), (0, 0, 1));
        }
    }
    assert_eq!((outcome.ran(), outcome.dropped(), engine.pending()), (0, 1, 0));
    assert_sound(&engine);
}

model!(check, a_new_timeout_beside_stop,
    locking_in_two_steps Split "sync/lock.rs" "self.word.compare_exchange(old, new",
);

/// Three threads meet at the lock, which are `stop`, a caller whose request `stop` must not miss,
/// and a caller that serves this request.
fn two_new_timeouts_beside_stop() {
    let engine = engine();
    let callers = [5, 6].map(|nanos| beside(&engine, move |engine| try_new(&engine, nanos)));
    let handed_back = engine.stop().len();
    let called = callers.map(|caller| caller.join().unwrap());
    let accepted = called.iter().filter(|(scheduled, _)| scheduled.is_ok()).count();
    assert_eq!(handed_back, accepted, "accepted, so it comes back");
    assert!(called.iter().all(|(_, outcome)| (outcome.ran(), outcome.dropped()) == (0, 1)));
    assert_eq!((engine.stats().scheduled, engine.pending()), (accepted as u64, 0));
    assert_sound(&engine);
}

model!(check_heavy, two_new_timeouts_beside_stop,
    locking_in_two_steps Split "sync/lock.rs" "self.word.compare_exchange(old, new",
);

fn stop_and_cancel() {
    let engine = engine();
    let (timeout, outcome) = new(&engine, 5);
    let caller = thread::spawn(move || timeout.cancel());
    let handed_back = engine.stop().len();
    let cancelled = caller.join().unwrap();
    assert_eq!(handed_back + usize::from(cancelled), 1);
    assert_eq!((outcome.ran(), outcome.dropped()), (0, 1));
    assert_eq!((engine.pending(), engine.stats().cancelled), (0, 1));
    assert_sound(&engine);
}

model!(check, stop_and_cancel,
    ending_by_load_and_store Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

/// Another caller holds the lock, so the canceller pushes a request, which the inbox may refuse.
fn a_cancel_and_a_caller_beside_stop() {
    let engine = engine();
    let (timeout, outcome) = new(&engine, 5);
    let canceller = thread::spawn(move || timeout.cancel());
    let caller = beside(&engine, move |engine| try_new(&engine, 6));
    let handed_back = engine.stop().len();
    let cancelled = usize::from(canceller.join().unwrap());
    let accepted = usize::from(caller.join().unwrap().0.is_ok());
    assert_eq!(handed_back + cancelled, 1 + accepted);
    assert_eq!((outcome.ran(), outcome.dropped()), (0, 1));
    assert_eq!((engine.pending(), engine.stats().cancelled), (0, 1 + accepted as u64));
    assert_sound(&engine);
}

model!(check_heavy, a_cancel_and_a_caller_beside_stop,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

fn a_reset_to_earlier_beside_stop() {
    let engine = engine();
    let (timeout, outcome) = new(&engine, 9);
    let caller = beside(&timeout, move |timeout| timeout.reset(Duration::from_nanos(5)));
    let handed_back = engine.stop().len();
    let _ = caller.join().unwrap();
    assert_eq!(handed_back, 1);
    assert!(timeout.is_cancelled());
    assert_eq!((outcome.ran(), outcome.dropped(), engine.pending(), engine.next()), (0, 1, 0, NO_TICK));
    assert_sound(&engine);
}

model!(check, a_reset_to_earlier_beside_stop,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

fn stop_and_expire() {
    let engine = engine();
    let (timeout, outcome) = new(&engine, 5);
    drop(timeout);
    set_time(&engine, 5);
    let worker = turn_elsewhere(&engine);
    let handed_back = engine.stop().len();
    let ran = worker.join().unwrap();
    // An entry that the worker had removed but not won was returned by `stop`, or is dropped with
    // the engine.
    let stats = engine.stats();
    assert_sound(&engine);
    drop(engine);
    assert!(ran + handed_back <= 1);
    assert_eq!((outcome.ran(), outcome.dropped()), (ran, 1), "lost");
    assert_eq!(stats.expired as usize, ran);
}

model!(check, stop_and_expire, locking_in_two_steps Split "sync/lock.rs" "self.word.compare_exchange(old, new");

/// The turn has removed an entry that was moved later, and finds the shard closed when it gives the
/// entry back.
fn a_turn_that_gives_back_beside_stop() {
    let engine = engine();
    let (timeout, outcome) = new(&engine, 5);
    assert!(timeout.reset(Duration::from_nanos(9)));
    set_time(&engine, 5);
    let worker = turn_elsewhere(&engine);
    let handed_back = engine.stop().len();
    assert_eq!(worker.join().unwrap(), 0);
    assert_sound(&engine);
    drop(engine);
    assert!(handed_back <= 1 && timeout.is_cancelled());
    assert_eq!((outcome.ran(), outcome.dropped()), (0, 1), "handed back or dropped");
}

model!(check, a_turn_that_gives_back_beside_stop,
    locking_in_two_steps Split "sync/lock.rs" "self.word.compare_exchange(old, new",
);

/// Two threads stop the timer. Each timeout is returned to one of them.
fn two_threads_stop() {
    let engine = engine();
    let (timeout, outcome) = new(&engine, 5);
    let other = beside(&engine, move |engine| engine.stop().len());
    let mine = engine.stop().len();
    assert_eq!(mine + other.join().unwrap(), 1);
    assert!(timeout.is_cancelled());
    assert_eq!((outcome.dropped(), engine.stats().cancelled), (1, 1));
}

model!(check, two_threads_stop);

/// The stop and the cancel both count, whichever of them has won.
#[test]
#[should_panic(expected = "counted twice")]
fn negative_counting_without_having_won() {
    check(|| {
        let engine = engine();
        let (timeout, _) = new(&engine, 5);
        let caller = thread::spawn(move || timeout.cancel());
        drop(engine.stop());
        engine.context.counters.cancelled_elsewhere.add_contended(1);
        let _ = caller.join().unwrap();
        assert_eq!(engine.stats().cancelled, 1, "counted twice");
    });
}
