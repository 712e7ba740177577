//! Models of a driven timer whose loop has no waker. The loop sleeps until the instant that its
//! last turn has returned. That instant must account for every timeout scheduled before the turn,
//! even if another thread has taken its request out of the inbox and has not linked it yet.

use super::{assert_sound, beside, check_at, engine, new};
use crate::clock;
use crate::deadline::NO_TICK;
use crate::handle::Driver;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering};
use loom::thread;

/// The loop's thread leaves a request and takes a turn while the lock holder serves the request.
fn a_loop_without_a_waker() {
    let engine = engine();
    let looping = beside(&engine, move |engine| {
        let mut driver = Driver::new(engine.dispatcher());
        let task = new(&engine, 5).1;
        let next = driver.turn().next_deadline;
        let due = clock::instant(engine.context.resolution.start_of(5));
        assert!(next.is_some_and(|next| next <= due), "it would sleep for too long");
        (driver, task)
    });
    let _ = new(&engine, 9);
    let (driver, task) = looping.join().unwrap();
    assert_eq!(driver.stop().len(), 2);
    assert_eq!((task.ran(), task.dropped()), (0, 1));
    assert_sound(&engine);
}

model!(check_at 3, a_loop_without_a_waker,
    the_helper_does_not_lower_next ["sleep for too long"] Skip "shard/mod.rs" "let lower_next .. self.next.store(tick",
    due_is_raised_without_release ["sleep for too long"] Relaxed "shard/inbox.rs" "self.due.store(NO_TICK",
    due_is_read_without_acquire ["sleep for too long"] Relaxed "shard/inbox.rs" "self.due.load(Ordering::Acquire)",
);

/// A copy of the protocol that reads `next` before `due`.
#[test]
#[should_panic(expected = "sleep for too long")]
fn negative_next_is_read_before_due() {
    check_at(3, || {
        let queue = Arc::new(Mutex::new(vec![5]));
        let due = Arc::new(AtomicU64::new(5));
        let next = Arc::new(AtomicU64::new(NO_TICK));
        let helper = {
            let queue = queue.clone();
            let due = due.clone();
            let next = next.clone();
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
