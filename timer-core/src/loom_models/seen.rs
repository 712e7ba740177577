//! Models of the memory order of an end. A thread that finds a timeout cancelled also sees the
//! writes that the canceller made before.

use super::{assert_sound, check_at, engine, fails, new};
use crate::sync::{Arc, How, UnsafeCell};
use loom::thread;

#[allow(clippy::arc_with_non_send_sync, reason = "the checker looks after the cell")]
fn a_cancel_that_is_seen() {
    let engine = engine();
    let (timeout, _) = new(&engine, 5);
    let cell = Arc::new(UnsafeCell::new(()));
    let reader = {
        let (timeout, cell) = (timeout.clone(), cell.clone());
        thread::spawn(move || {
            if timeout.is_cancelled() {
                cell.with(|_| ());
            }
        })
    };
    cell.with_mut(|_| ());
    assert!(timeout.cancel());
    reader.join().unwrap();
    assert_sound(&engine);
}

#[test]
fn a_cancel_shows_earlier_writes() {
    check_at(4, a_cancel_that_is_seen);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn negative_reading_without_acquire() {
    fails("entry/state.rs", "Word(self.0.load(Ordering::Acquire))", How::Relaxed, a_cancel_that_is_seen);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn negative_ending_without_release() {
    fails("entry/state.rs", "match self.0.compare_exchange_weak", How::Relaxed, a_cancel_that_is_seen);
}
