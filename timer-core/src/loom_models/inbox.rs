//! A push to an inbox while the latch's holder leaves: no entry is ever stranded.

use super::{check, collect, schedule, shard};
use crate::sync::{HELD, Held, Queue};
use loom::sync::Arc;
use loom::thread;

/// Two callers on one shard: when both calls have returned, the wheel has both entries and the inbox is empty.
#[test]
fn loom_inbox_no_entry_is_stranded_when_the_holder_leaves() {
    check(|| {
        let shard = shard();
        let other = {
            let shard = shard.clone();
            thread::spawn(move || drop(schedule(&shard, 5)))
        };
        drop(schedule(&shard, 7));
        other.join().unwrap();
        assert_eq!(shard.next(), 5, "the earlier one is known, so no note of it lies about unread");
        assert_eq!(collect(&shard, 10).len(), 2);
        assert_eq!(shard.scheduled(), 2);
    });
}

/// The worker meets a taken latch and goes on: the holder answers its poke, or the worker gets the latch.
#[test]
fn loom_inbox_a_poke_is_answered() {
    check(|| {
        let shard = shard();
        let other = {
            let shard = shard.clone();
            thread::spawn(move || drop(schedule(&shard, 5)))
        };
        let alarm = &shard.context().alarm;
        let mut due = 0;
        while due == 0 {
            alarm.arm();
            let next = shard.next_for_sleeper();
            if next <= 10 {
                alarm.disarm();
                due = collect(&shard, 10).len();
            } else if alarm.set(next) {
                alarm.park(None);
            }
        }
        other.join().unwrap();
    });
}

/// The same protocol with the caller's last look left out: the holder may have left just before the note was counted.
#[test]
#[should_panic(expected = "stranded")]
fn loom_inbox_negative_a_caller_that_does_not_look_again_strands_its_note() {
    check(|| {
        let latch = Arc::new(Held::new(0, 0));
        let inbox = Arc::new(Queue::new());
        let call = |latch: &Held<i32>, inbox: &Queue<i32>| match latch.try_hold(Some) {
            Ok(mut linked) => {
                *linked += 1;
                let mut held = linked;
                while let Err(mut linked) = held.release(|word| (word & !HELD == 0).then_some(word)) {
                    let counted = linked.word().load() & !HELD;
                    while inbox.pop().is_some() {
                        *linked += 1;
                    }
                    linked.word().update(|word| Some(word - counted)).unwrap();
                    held = linked;
                }
            }
            Err(_) => {
                inbox.push(1);
                latch.word().add(2);
            }
        };
        let other = {
            let (latch, inbox) = (latch.clone(), inbox.clone());
            thread::spawn(move || call(&latch, &inbox))
        };
        call(&latch, &inbox);
        other.join().unwrap();
        assert_eq!(*latch.try_hold(Some).unwrap(), 2, "an entry is stranded");
    });
}
