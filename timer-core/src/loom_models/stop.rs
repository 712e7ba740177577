//! Models of `stop`, which closes the shards first. It meets new timeouts, requests, cancels,
//! resets and expiries. Each accepted timeout ends exactly once, and the number of pending timeouts
//! returns to zero.

use super::{assert_sound, check, check_heavy, engine, fails, new, set_time, try_new, turn_elsewhere};
use crate::deadline::NO_TICK;
use crate::error::RejectReason;
use crate::sync::How;
use loom::thread;
use std::time::Duration;

#[test]
fn a_new_timeout_beside_stop() {
    check(|| {
        let engine = engine();
        let caller = {
            let engine = engine.clone();
            thread::spawn(move || try_new(&engine, 5))
        };
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
    });
}

/// Three threads meet at the lock, which are `stop`, a caller whose request `stop` must not miss,
/// and a caller that serves this request.
#[test]
fn two_new_timeouts_beside_stop() {
    check_heavy(|| {
        let engine = engine();
        let callers = [5, 6].map(|nanos| {
            let engine = engine.clone();
            thread::spawn(move || try_new(&engine, nanos))
        });
        let handed_back = engine.stop().len();
        let called = callers.map(|caller| caller.join().unwrap());
        let accepted = called.iter().filter(|(scheduled, _)| scheduled.is_ok()).count();
        assert_eq!(handed_back, accepted, "accepted, so it comes back");
        assert!(called.iter().all(|(_, outcome)| (outcome.ran(), outcome.dropped()) == (0, 1)));
        assert_eq!((engine.stats().scheduled, engine.pending()), (accepted as u64, 0));
        assert_sound(&engine);
    });
}

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

#[test]
fn a_cancel_or_stop_wins() {
    check(stop_and_cancel);
}

/// Another caller holds the lock, so the canceller pushes a request, which the inbox may refuse.
#[test]
fn a_cancel_and_a_caller_beside_stop() {
    check_heavy(|| {
        let engine = engine();
        let (timeout, outcome) = new(&engine, 5);
        let canceller = thread::spawn(move || timeout.cancel());
        let caller = {
            let engine = engine.clone();
            thread::spawn(move || try_new(&engine, 6))
        };
        let handed_back = engine.stop().len();
        let cancelled = usize::from(canceller.join().unwrap());
        let accepted = usize::from(caller.join().unwrap().0.is_ok());
        assert_eq!(handed_back + cancelled, 1 + accepted);
        assert_eq!((outcome.ran(), outcome.dropped()), (0, 1));
        assert_eq!((engine.pending(), engine.stats().cancelled), (0, 1 + accepted as u64));
        assert_sound(&engine);
    });
}

#[test]
fn a_reset_to_earlier_beside_stop() {
    check(|| {
        let engine = engine();
        let (timeout, outcome) = new(&engine, 9);
        let caller = {
            let timeout = timeout.clone();
            thread::spawn(move || timeout.reset(Duration::from_nanos(5)))
        };
        let handed_back = engine.stop().len();
        let _ = caller.join().unwrap();
        assert_eq!(handed_back, 1);
        assert!(timeout.is_cancelled());
        assert_eq!((outcome.ran(), outcome.dropped(), engine.pending(), engine.next()), (0, 1, 0, NO_TICK));
        assert_sound(&engine);
    });
}

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

#[test]
fn an_expiry_beside_stop() {
    check(stop_and_expire);
}

/// The turn has removed an entry that was moved later, and finds the shard closed when it gives the
/// entry back.
#[test]
fn a_turn_that_gives_back_beside_stop() {
    check(|| {
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
    });
}

/// Two threads stop the timer. Each timeout is returned to one of them.
#[test]
fn two_threads_stop() {
    check(|| {
        let engine = engine();
        let (timeout, outcome) = new(&engine, 5);
        let other = {
            let engine = engine.clone();
            thread::spawn(move || engine.stop().len())
        };
        let mine = engine.stop().len();
        assert_eq!(mine + other.join().unwrap(), 1);
        assert!(timeout.is_cancelled());
        assert_eq!((outcome.dropped(), engine.stats().cancelled), (1, 1));
    });
}

#[test]
#[should_panic]
fn negative_ending_by_load_and_store() {
    fails("entry/state.rs", "match self.0.compare_exchange_weak", How::Split, stop_and_cancel);
}

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
