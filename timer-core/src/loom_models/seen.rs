//! Models of the memory order of an end. A thread that finds a timeout cancelled also sees the
//! writes that the canceller made before.

use super::{assert_sound, engine, new};
use crate::sync::{Arc, UnsafeCell};
use loom::thread;

#[allow(clippy::arc_with_non_send_sync, reason = "the checker looks after the cell")]
fn a_cancel_that_is_seen() {
    let engine = engine();
    let (timeout, _) = new(&engine, 5);
    let cell = Arc::new(UnsafeCell::new(()));
    let reader = {
        let timeout = timeout.clone();
        let cell = cell.clone();
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

model!(check_at 4, a_cancel_that_is_seen,
    reading_without_acquire ["Causality violation"] Relaxed "entry/state.rs" "Word(self.0.load(Ordering::Acquire))",
    ending_without_release ["Causality violation"] Relaxed "entry/state.rs" "match self.0.compare_exchange_weak",
);
