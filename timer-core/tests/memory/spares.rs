//! The memory of ended timeouts, which a thread keeps for its next ones.

use crate::heap::{KEPT, Mark, exclusive};
use crate::support::wakers::poll;
use crate::support::*;
use std::task::Waker;
use std::thread;
use timer_core::{CancelOnDrop, Timeout, Timer};

/// Bytes of an entry without its job.
const HEADER: usize = 32;

/// Ends more timeouts than a thread keeps, on a new thread. Returns the bytes that the thread keeps
/// before it ends.
fn kept_by<T>(make: impl Fn() -> T + Sync) -> usize {
    let end_many = || {
        let mut pending = Vec::with_capacity(10 * KEPT);
        let mark = Mark::set();
        pending.extend((0..10 * KEPT).map(|_| make()));
        pending.clear();
        mark.grown()
    };
    thread::scope(|scope| scope.spawn(end_many).join()).unwrap()
}

/// Checks that a thread keeps the memory of `KEPT` entries of this size, and frees it at its end.
fn check<T>(make: impl Fn() -> T + Sync, entry: usize) {
    // The wheel's own tables grow once.
    kept_by(&make);
    // The test harness allocates at times.
    assert!((0..3).any(|_| kept_by(&make) == KEPT * entry), "entries of {entry} bytes");
    let gives_back = || {
        let mark = Mark::set();
        kept_by(&make);
        mark.grown() == 0
    };
    assert!((0..3).any(|_| gives_back()), "a thread that ends frees the memory that it kept");
}

/// Returns a timeout that is cancelled when it is dropped. Its task has captured `N` words.
fn guarded<const N: usize>(timer: &Timer) -> CancelOnDrop {
    let words = [1_u64; N];
    timer.new_timeout(SECOND, move |_: &Timeout| assert_eq!(words, [1; N])).unwrap().cancel_on_drop()
}

#[test]
fn a_thread_keeps_little_memory_of_ended_timeouts() {
    let _alone = exclusive();
    let (timer, _driver) = manual(WHEELS[0]);
    let waiting_sleep = || {
        let mut sleep = timer.sleep(SECOND);
        assert!(poll(&mut sleep, Waker::noop()).is_pending());
        sleep
    };
    check(waiting_sleep, HEADER + 16);
    check(|| guarded::<0>(&timer), HEADER);
    check(|| guarded::<1>(&timer), HEADER + 8);
    check(|| guarded::<3>(&timer), HEADER + 24);
    check(|| guarded::<4>(&timer), 0);
}
