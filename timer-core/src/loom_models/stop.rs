//! `stop` against `new_timeout`, `cancel` and expiry: every accepted timeout ends exactly once, pending returns to zero.

use super::{check, engine, new_timeout, turn};
use crate::error::RejectReason;
use crate::turn::Turner;
use loom::thread;

#[test]
fn loom_stop_and_new_timeout() {
    check(|| {
        let engine = engine(None);
        let caller = {
            let engine = engine.clone();
            thread::spawn(move || new_timeout(&engine, 5))
        };
        let handed_back = engine.stop().len();
        let (scheduled, fate) = caller.join().unwrap();
        match scheduled {
            Ok(timeout) => {
                assert_eq!(handed_back, 1, "accepted, so it comes back");
                assert!(timeout.is_cancelled());
                assert_eq!((engine.stats().scheduled, engine.stats().cancelled), (1, 1));
            }
            Err(reason) => {
                assert_eq!((reason, handed_back), (RejectReason::Stopped, 0));
                assert_eq!((engine.stats().scheduled, engine.stats().cancelled), (0, 0));
            }
        }
        assert_eq!((fate.ran(), fate.dropped(), engine.pending()), (0, 1, 0));
    });
}

/// Three may meet at the latch: `stop`, a caller whose note it must not miss, and one that reads the note in its stead.
#[test]
fn loom_stop_and_two_new_timeouts() {
    check(|| {
        let engine = engine(None);
        let caller = || {
            let engine = engine.clone();
            thread::spawn(move || new_timeout(&engine, 5).0.is_ok())
        };
        let callers = [caller(), caller()];
        let handed_back = engine.stop().len();
        let accepted = callers.map(|caller| caller.join().unwrap()).into_iter().filter(|accepted| *accepted).count();
        assert_eq!(handed_back, accepted, "accepted, so it comes back");
        assert_eq!((engine.stats().scheduled, engine.pending()), (accepted as u64, 0));
    });
}

#[test]
fn loom_stop_and_cancel() {
    check(|| {
        let engine = engine(None);
        let (timeout, fate) = new_timeout(&engine, 5);
        let timeout = timeout.unwrap();
        let caller = thread::spawn(move || timeout.cancel());
        let handed_back = engine.stop().len();
        let cancelled = caller.join().unwrap();
        assert_eq!(handed_back + usize::from(cancelled), 1);
        assert_eq!((fate.ran(), fate.dropped()), (0, 1));
        assert_eq!((engine.pending(), engine.stats().cancelled), (0, 1));
    });
}

#[test]
fn loom_stop_and_expire() {
    check(|| {
        let engine = engine(None);
        let (timeout, fate) = new_timeout(&engine, 5);
        drop(timeout);
        let mut turner = Turner::new(engine.clone());
        let worker = thread::spawn(move || turn(&mut turner, 5));
        let handed_back = engine.stop().len();
        let ran = worker.join().unwrap();
        // What the worker had taken out and not won was handed back, or is dropped with the engine.
        let stats = engine.stats();
        drop(engine);
        assert!(ran + handed_back <= 1);
        assert_eq!((fate.ran(), fate.dropped()), (ran, 1));
        assert_eq!(stats.expired as usize, ran);
    });
}

/// Counting at the stop and at the cancel, whoever has won: pending falls twice.
#[test]
#[should_panic(expected = "counted twice")]
fn loom_stop_negative_counting_without_having_won_counts_twice() {
    check(|| {
        let engine = engine(None);
        let (timeout, _) = new_timeout(&engine, 5);
        let timeout = timeout.unwrap();
        let home = timeout.head().home().clone();
        let caller = thread::spawn(move || timeout.cancel());
        drop(engine.stop());
        home.count_withdrawn();
        caller.join().unwrap();
        assert_eq!(engine.stats().cancelled, 1, "counted twice");
    });
}
