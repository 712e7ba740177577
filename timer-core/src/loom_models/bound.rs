//! Models of the bound on pending timeouts. It is never exceeded, and no permit is lost.

use super::{assert_sound, bounded, check, check_heavy, fails, new, set_time, try_new, turn, turn_elsewhere, turn_out};
use crate::error::RejectReason;
use crate::sync::How;
use loom::thread;

fn two_schedulers_and_an_expiry() {
    let engine = bounded(1);
    let (first, first_outcome) = new(&engine, 5);
    drop(first);
    set_time(&engine, 5);
    let other = {
        let engine = engine.clone();
        thread::spawn(move || try_new(&engine, 50).0.map(drop))
    };
    let expired = turn(&mut engine.dispatcher());
    let mine = try_new(&engine, 50).0.map(drop);
    let theirs = other.join().unwrap();
    let accepted = usize::from(mine.is_ok()) + usize::from(theirs.is_ok());
    assert!(accepted <= 1, "the bound is exceeded");
    if expired == 1 {
        assert_eq!(accepted, 1, "the permit that the expiry gave back is taken by one of them");
    }
    for refused in [mine, theirs].into_iter().filter_map(Result::err) {
        assert_eq!(refused, RejectReason::TooManyPending { max: 1 });
    }
    assert_eq!(first_outcome.ran(), expired);
    assert_eq!(engine.pending() as usize, accepted + 1 - expired);
    assert_sound(&engine);
}

#[test]
fn one_permit_two_schedulers_and_an_expiry() {
    check(two_schedulers_and_an_expiry);
}

#[test]
#[should_panic(expected = "the bound is exceeded")]
fn negative_acquire_by_load_and_store() {
    fails("counters/counter.rs", "fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)", How::Split, || {
        two_schedulers();
    });
}

fn two_schedulers() {
    let engine = bounded(1);
    let other = {
        let engine = engine.clone();
        thread::spawn(move || try_new(&engine, 50).0.is_ok())
    };
    let mine = try_new(&engine, 50).0.is_ok();
    let accepted = usize::from(other.join().unwrap()) + usize::from(mine);
    assert!(accepted <= 1, "the bound is exceeded");
    assert_eq!(accepted, 1);
}

#[test]
fn one_permit_and_two_schedulers() {
    check(two_schedulers);
}

/// Two cancels and an expiry of one timeout release one permit.
fn two_cancels_and_an_expiry() {
    let engine = bounded(2);
    drop(new(&engine, 90));
    let (timeout, _) = new(&engine, 5);
    set_time(&engine, 5);
    let other = {
        let timeout = timeout.clone();
        thread::spawn(move || timeout.cancel())
    };
    let worker = turn_elsewhere(&engine);
    let ended = usize::from(timeout.cancel()) + usize::from(other.join().unwrap()) + worker.join().unwrap();
    assert_eq!((ended, engine.pending()), (1, 1));
    assert_sound(&engine);
}

#[test]
fn two_cancels_and_an_expiry_release_one_permit() {
    check_heavy(two_cancels_and_an_expiry);
}

#[test]
#[should_panic]
fn negative_release_by_load_and_store() {
    fails("counters/counter.rs", "self.acquired.fetch_sub(1", How::Split, || {
        let engine = bounded(2);
        let timeouts = [new(&engine, 5).0, new(&engine, 6).0];
        let others = timeouts.map(|timeout| thread::spawn(move || timeout.cancel()));
        others.into_iter().for_each(|other| assert!(other.join().unwrap()));
        let _ = turn_out(&mut engine.dispatcher());
        assert_eq!(engine.pending(), 0, "a permit is lost");
    });
}
