use super::*;

mod waiters;

#[test]
fn one_guard_at_a_time() {
    let lock = Lock::new(7);
    let mut guard = lock.try_lock().unwrap();
    assert!(lock.try_lock().is_none());
    *guard += 1;
    drop(guard);
    assert_eq!(*lock.lock(), 8);
}

#[test]
fn the_worker_reserves_a_held_lock() {
    let lock = Lock::new(0);
    let guard = lock.try_lock().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| *lock.lock_reserved() += 1);
        while !lock.has_waiter() {
            std::thread::yield_now();
        }
        // ORDERING: Relaxed, because the worker writes only the word until it has the lock.
        let word = lock.word.load(Ordering::Relaxed);
        drop(guard);
        assert_eq!(word, LOCKED | RESERVED, "callers keep out");
    });
    assert_eq!(*lock.lock(), 1);
}

#[test]
fn an_offer_ends_with_or_without_a_caller() {
    let lock = Lock::new(0);
    lock.offer();
    assert!(lock.try_lock().is_some());
    // ORDERING: Relaxed, because no other thread knows the lock.
    lock.word.store(GATE, Ordering::Relaxed);
    lock.offer();
    assert!(lock.has_waiter());
}
