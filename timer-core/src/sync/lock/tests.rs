use super::*;

mod waiters;

#[test]
fn one_guard_at_a_time() {
    let lock = Lock::new(7);
    let mut guard = lock.try_lock().unwrap();
    assert!(lock.try_lock().is_none());
    *guard += 1;
    assert!(guard.unlock().nothing());
    assert_eq!(*lock.lock(), 8);
}

#[test]
fn a_holder_learns_of_the_wake_request() {
    let lock = Lock::new(());
    let guard = lock.try_lock().unwrap();
    assert!(lock.try_lock_or_ask().is_none() && lock.is_wake_owed());
    let owed = guard.unlock();
    assert!(owed.wake() && !owed.ring());
    lock.take_wake();
    assert!(!lock.is_wake_owed());
    assert!(lock.try_lock_or_ask().unwrap().unlock().nothing());
}

#[test]
fn a_reserved_lock_keeps_callers_out() {
    let lock = Lock::new(0);
    let held = std::cell::Cell::new(lock.try_lock());
    let guard = lock.lock_reserved(|| {
        let owed = held.take().unwrap().unlock();
        assert!(owed.ring(), "the holder sees that the worker waits");
        assert!(lock.try_lock().is_none(), "callers keep out");
    });
    assert!(guard.unlock().nothing());
}

#[test]
fn an_offer_ends_with_or_without_a_caller() {
    let lock = Lock::new(0);
    lock.offer();
    assert!(lock.try_lock().unwrap().unlock().nothing());
    // ORDERING: Relaxed, because no other thread knows the lock.
    lock.word.store(GATE, Ordering::Relaxed);
    lock.offer();
    assert!(lock.has_waiter());
}
