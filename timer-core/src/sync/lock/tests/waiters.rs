//! Callers that find the bit of another waiter in the word of a lock that is free.

use super::*;

/// Sets a waiter's bit in the word of a free lock, as between an unlock and the waiter's next
/// look.
fn free_lock_with(bit: u32) -> Lock<u32> {
    let lock = Lock::new(0);
    // ORDERING: Relaxed, because no other thread knows the lock yet.
    lock.word.store(bit, Ordering::Relaxed);
    lock
}

#[test]
fn a_caller_does_not_barge_past_the_gate() {
    assert!(free_lock_with(GATE).try_lock().is_none());
    assert!(free_lock_with(RESERVED).try_lock().is_none());
}

#[test]
fn a_caller_at_the_gate_respects_a_reservation() {
    let lock = free_lock_with(RESERVED);
    std::thread::scope(|scope| {
        let caller = scope.spawn(|| *lock.lock() += 1);
        let word = loop {
            // ORDERING: Relaxed, because the caller writes only the word until it has the lock.
            let word = lock.word.load(Ordering::Relaxed);
            if word != RESERVED || caller.is_finished() {
                break word;
            }
            std::thread::yield_now();
        };
        assert_eq!(word, RESERVED | GATE, "the caller waits for the worker");
        assert_eq!(*lock.lock_reserved(), 0);
    });
    assert_eq!(*lock.lock(), 1);
}
