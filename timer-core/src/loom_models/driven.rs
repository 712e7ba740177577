//! A driven timer whose loop has no waker: it sleeps as its last turn said, so what a call has
//! scheduled before the turn must be in it, also if another thread has just taken the request out
//! of the inbox and not linked it yet.

use super::{assert_sound, check_at, engine, fails_at, new};
use crate::clock;
use crate::handle::Driver;
use crate::sync::{Arc, AtomicU64, How, Mutex, Ordering};
use crate::time::NO_TICK;
use loom::thread;

/// The loop's thread leaves a request with a lock holder, and takes a turn while that holder helps.
fn a_loop_without_a_waker() {
    let engine = engine();
    let looping = {
        let engine = engine.clone();
        thread::spawn(move || {
            let mut driver = Driver::new(engine.dispatcher());
            let task = new(&engine, 5).1;
            let next = driver.turn().next;
            let due = clock::instant(engine.context.resolution.start_of(5));
            assert!(next.is_some_and(|next| next <= due), "it would sleep for too long");
            (driver, task)
        })
    };
    let _ = new(&engine, 9);
    let (driver, task) = looping.join().unwrap();
    assert_eq!(driver.stop().len(), 2);
    assert_eq!((task.ran(), task.dropped()), (0, 1));
    assert_sound(&engine);
}

#[test]
fn what_leaves_the_inbox_is_in_next() {
    check_at(3, a_loop_without_a_waker);
}

#[test]
#[should_panic(expected = "sleep for too long")]
fn negative_the_helper_does_not_lower_next() {
    fails_at(3, "shard/mod.rs", "let lower_next .. self.next.store(tick", How::Skip, a_loop_without_a_waker);
}

#[test]
#[should_panic(expected = "sleep for too long")]
fn negative_due_is_raised_without_release() {
    fails_at(3, "shard/inbox.rs", "self.due.store(NO_TICK", How::Relaxed, a_loop_without_a_waker);
}

#[test]
#[should_panic(expected = "sleep for too long")]
fn negative_due_is_read_without_acquire() {
    fails_at(3, "shard/inbox.rs", "self.due.load(Ordering::Acquire)", How::Relaxed, a_loop_without_a_waker);
}

/// The same, written again with the two read in the wrong order.
#[test]
#[should_panic(expected = "sleep for too long")]
fn negative_next_is_read_before_due() {
    check_at(3, || {
        let (queue, due) = (Arc::new(Mutex::new(vec![5])), Arc::new(AtomicU64::new(5)));
        let next = Arc::new(AtomicU64::new(NO_TICK));
        let helper = {
            let (queue, due, next) = (queue.clone(), due.clone(), next.clone());
            thread::spawn(move || {
                let mut requests = queue.lock();
                next.store(requests.pop().unwrap_or(NO_TICK), Ordering::Relaxed);
                due.store(NO_TICK, Ordering::Release);
            })
        };
        let least = next.load(Ordering::Relaxed).min(due.load(Ordering::Acquire));
        helper.join().unwrap();
        assert!(least <= 5, "it would sleep for too long");
    });
}
