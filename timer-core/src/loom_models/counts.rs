//! The counts as another thread reads them: what is seen to have ended is seen to have started.
//!
//! The checker remembers the last load of a location only, so a load before a store by the same thread hides a load by another. Hence the
//! reader is the thread that is started here: it comes after the writer first, and each of its loads is moved before the writer's stores.

use super::executor::{Queued, queued};
use super::{check, engine, fails, new};
use crate::sync::How;
use loom::thread;

/// One stays; another is scheduled and cancelled while a reader counts.
fn schedule_and_cancel_and_count() {
    let engine = engine();
    let (kept, _) = new(&engine, 9);
    let reader = {
        let engine = engine.clone();
        thread::spawn(move || engine.pending())
    };
    let (timeout, _) = new(&engine, 5);
    assert!(timeout.cancel());
    let pending = reader.join().unwrap();
    assert!((1..=2).contains(&pending), "an end was seen without its start");
    assert_eq!(engine.pending(), 1);
    assert!(kept.cancel());
}

#[test]
fn loom_counts_schedule_and_cancel_while_another_counts() {
    check(schedule_and_cancel_and_count);
}

#[test]
#[should_panic(expected = "without its start")]
fn loom_counts_negative_adding_without_release() {
    fails("counters/counter.rs", "self.0.store(before.wrapping_add(n)", How::Relaxed, schedule_and_cancel_and_count);
}

/// The same as above, in the order that is wrong.
#[test]
#[should_panic(expected = "without its start")]
fn loom_counts_negative_starts_are_read_before_ends() {
    check(|| {
        let engine = engine();
        let (_kept, _) = new(&engine, 9);
        let reader = {
            let engine = engine.clone();
            thread::spawn(move || {
                let shard = engine.shards()[0];
                let scheduled = shard.scheduled();
                scheduled.saturating_sub(shard.cancelled())
            })
        };
        let (timeout, _) = new(&engine, 5);
        assert!(timeout.cancel());
        let pending = reader.join().unwrap();
        assert!((1..=2).contains(&pending), "an end was seen without its start");
    });
}

/// A task starts on another thread than that of the turn while a reader counts.
fn an_end_elsewhere() {
    let Queued { engine, timeout, task, .. } = queued(|engine| new(engine, 5));
    drop(timeout);
    let (kept, _) = new(&engine, 90);
    let reader = {
        let engine = engine.clone();
        thread::spawn(move || engine.pending())
    };
    let (cancelled, _) = new(&engine, 80);
    assert!(cancelled.cancel());
    task.run();
    let pending = reader.join().unwrap();
    assert!((1..=3).contains(&pending), "an end was seen without its start");
    assert_eq!((engine.pending(), engine.stats().expired), (1, 1));
    assert!(kept.cancel());
}

#[test]
fn loom_counts_an_end_elsewhere_while_another_counts() {
    check(an_end_elsewhere);
}
