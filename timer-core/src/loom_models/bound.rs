//! The bound on pending timeouts under two schedulers and an expiry: never exceeded, never lost.

use super::{check, engine, new_timeout, turn};
use crate::error::RejectReason;
use crate::sync::{AtomicU64, Ordering};
use crate::turn::Turner;
use loom::thread;

#[test]
fn loom_bound_of_one_under_two_schedulers_and_an_expiry() {
    check(|| {
        let engine = engine(Some(1));
        let (first, first_fate) = new_timeout(&engine, 5);
        drop(first.unwrap());
        let mut turner = Turner::new(engine.clone());
        let other = {
            let engine = engine.clone();
            thread::spawn(move || new_timeout(&engine, 50).0.map(drop))
        };
        let expired = turn(&mut turner, 5);
        let mine = new_timeout(&engine, 50).0.map(drop);
        let theirs = other.join().unwrap();
        let accepted = usize::from(mine.is_ok()) + usize::from(theirs.is_ok());
        assert!(accepted <= 1, "the bound is one");
        if expired == 1 {
            assert_eq!(accepted, 1, "the place that the expiry gave back is taken by one of them");
        }
        for refused in [mine, theirs].into_iter().filter_map(Result::err) {
            assert_eq!(refused, RejectReason::TooManyPending { max: 1 });
        }
        assert_eq!(first_fate.ran(), expired);
        assert_eq!(engine.pending() as usize, accepted + 1 - expired);
    });
}

/// A place that is looked for and then taken: both take the last one.
#[test]
#[should_panic(expected = "the bound is exceeded")]
fn loom_bound_negative_looking_and_then_taking_exceeds_it() {
    check(|| {
        let taken = loom::sync::Arc::new(AtomicU64::new(0));
        let take = |taken: &AtomicU64| {
            if taken.load(Ordering::Relaxed) < 1 {
                taken.fetch_add(1, Ordering::Relaxed);
            }
        };
        let other = {
            let taken = taken.clone();
            thread::spawn(move || take(&taken))
        };
        take(&taken);
        other.join().unwrap();
        assert!(taken.load(Ordering::Relaxed) <= 1, "the bound is exceeded");
    });
}
