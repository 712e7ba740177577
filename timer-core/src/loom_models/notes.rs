//! Cancel and reset of a timeout that has not reached the wheel, or is just being carried to a finer level.

use super::{check, collect, schedule, shard};
use crate::sync::Arc;
use loom::thread;

/// The latch is contended, so the entry, its cancellation or both may travel as notes, in any order.
#[test]
fn loom_notes_cancel_before_the_entry_is_linked() {
    check(|| {
        let shard = shard();
        let other = {
            let shard = shard.clone();
            thread::spawn(move || schedule(&shard, 9).0)
        };
        let (timeout, fate) = schedule(&shard, 5);
        assert!(timeout.cancel());
        assert_eq!((fate.ran(), fate.dropped()), (0, 1), "dropped before `cancel` has returned");
        let kept = other.join().unwrap();
        assert_eq!(shard.earliest(), Some(9), "only the live one is linked");
        let due = collect(&shard, 10);
        assert!(due.len() == 1 && Arc::ptr_eq(&due[0], kept.entry()));
    });
}

/// An earlier deadline is linked before anybody could miss it.
#[test]
fn loom_notes_reset_to_an_earlier_deadline_while_others_are_at_work() {
    check(|| {
        let shard = shard();
        let (timeout, _) = schedule(&shard, 90);
        let other = {
            let shard = shard.clone();
            thread::spawn(move || drop(schedule(&shard, 50)))
        };
        assert!(timeout.reset(std::time::Duration::from_nanos(5)));
        other.join().unwrap();
        assert_eq!(shard.next(), 5);
        assert_eq!(collect(&shard, 5).len(), 1);
    });
}

/// The wheel is advanced, and cascades, while the timeout is cancelled.
#[test]
fn loom_notes_cancel_while_the_entry_is_cascaded() {
    check(|| {
        let shard = shard();
        let (timeout, fate) = schedule(&shard, 70);
        let other = thread::spawn(move || timeout.cancel());
        assert!(collect(&shard, 64).is_empty());
        assert!(other.join().unwrap());
        assert_eq!((fate.ran(), fate.dropped()), (0, 1));
        assert_eq!(shard.earliest(), None);
        assert!(collect(&shard, 100).is_empty(), "a cancelled entry is gone from every level");
    });
}

/// Reading a note once for the count and once for the wheel: what a note that is not idempotent would do.
#[test]
#[should_panic(expected = "linked twice")]
fn loom_notes_negative_a_note_that_is_applied_blindly_links_twice() {
    check(|| {
        let inbox = loom::sync::Arc::new(crate::sync::Queue::new());
        let linked = loom::sync::Arc::new(loom::sync::Mutex::new(0));
        let apply = |inbox: &crate::sync::Queue<()>, linked: &loom::sync::Mutex<i32>| {
            while inbox.pop().is_some() {
                *linked.lock().unwrap() += 1;
            }
        };
        let other = {
            let (inbox, linked) = (inbox.clone(), linked.clone());
            thread::spawn(move || {
                inbox.push(()); // scheduled
                apply(&inbox, &linked);
            })
        };
        inbox.push(()); // the same entry, reset
        apply(&inbox, &linked);
        other.join().unwrap();
        assert!(*linked.lock().unwrap() <= 1, "linked twice");
    });
}
