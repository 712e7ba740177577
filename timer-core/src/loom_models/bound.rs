//! Models of the bound on pending timeouts. It is never exceeded, and no permit is lost.

use super::{assert_sound, beside, bounded, new, set_time, try_new, turn, turn_elsewhere, turn_out};
use crate::error::RejectReason;
use loom::thread;

fn two_schedulers_and_an_expiry() {
    let engine = bounded(1);
    let (first, first_outcome) = new(&engine, 5);
    drop(first);
    set_time(&engine, 5);
    let other = beside(&engine, move |engine| try_new(&engine, 50).0.map(drop));
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

model!(check, two_schedulers_and_an_expiry,
    locking_in_two_steps Split "sync/lock.rs" "self.word.compare_exchange(old, new",
);

fn two_schedulers() {
    let engine = bounded(1);
    let other = beside(&engine, move |engine| try_new(&engine, 50).0.is_ok());
    let mine = try_new(&engine, 50).0.is_ok();
    let accepted = usize::from(other.join().unwrap()) + usize::from(mine);
    assert!(accepted <= 1, "the bound is exceeded");
    assert_eq!(accepted, 1);
}

model!(check, two_schedulers,
    acquire_by_load_and_store ["the bound is exceeded"] Split "counters/counter.rs" "fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)",
);

/// Two cancels and an expiry of one timeout release one permit.
fn two_cancels_and_an_expiry() {
    let engine = bounded(2);
    drop(new(&engine, 90));
    let (timeout, _) = new(&engine, 5);
    set_time(&engine, 5);
    let other = beside(&timeout, move |timeout| timeout.cancel());
    let worker = turn_elsewhere(&engine);
    let ended = usize::from(timeout.cancel()) + usize::from(other.join().unwrap()) + worker.join().unwrap();
    assert_eq!((ended, engine.pending()), (1, 1));
    assert_sound(&engine);
}

model!(check_heavy, two_cancels_and_an_expiry,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

fn two_cancels() {
    let engine = bounded(2);
    let timeouts = [new(&engine, 5).0, new(&engine, 6).0];
    let others = timeouts.map(|timeout| thread::spawn(move || timeout.cancel()));
    others.into_iter().for_each(|other| assert!(other.join().unwrap()));
    let _ = turn_out(&mut engine.dispatcher());
    assert_eq!(engine.pending(), 0, "a permit is lost");
}

model!(check, two_cancels,
    release_by_load_and_store Split "counters/counter.rs" "self.acquired.fetch_sub(1",
);
