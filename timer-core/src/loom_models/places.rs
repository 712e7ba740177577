//! Where an entry is linked: written by one holder of the lock, read by the next, on other threads.

use super::{assert_sound, check, engine, fails, new};
use crate::sync::How;
use loom::thread;

/// Two share a bucket, so that taking one out of it moves the other; their cancellers find both.
fn two_in_a_bucket() {
    let engine = engine();
    let [first, second] = [5, 5].map(|nanos| new(&engine, nanos).0);
    let other = {
        let first = first.clone();
        thread::spawn(move || first.cancel())
    };
    assert!(second.cancel());
    assert!(other.join().unwrap());
    // One may have been left to a request, which the next holder reads.
    assert!(new(&engine, 90).0.cancel());
    assert!(first.is_last() && second.is_last(), "the wheel has it still");
    assert_sound(&engine);
}

#[test]
fn are_found_by_cancellers() {
    check(two_in_a_bucket);
}

#[test]
#[should_panic(expected = "has it still")]
fn negative_the_bucket_is_not_written() {
    fails("entry/mod.rs", "fn moved .. bucket.store(location", How::Skip, two_in_a_bucket);
}

#[test]
#[should_panic(expected = "has it still")]
fn negative_the_position_is_not_written() {
    fails("entry/mod.rs", "fn moved .. position.store(location", How::Skip, two_in_a_bucket);
}

/// The next holder reads it as it was before, if locks did not order it.
#[test]
#[should_panic]
fn negative_the_lock_orders_nothing() {
    fails("sync/lock.rs", "self.word.compare_exchange(old, new", How::Relaxed, two_in_a_bucket);
}
