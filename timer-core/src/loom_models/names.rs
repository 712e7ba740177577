//! Models of a future that reads the time of its shard without the lock, while another timer takes
//! the shard over. The future never gets the time of the other timer.

use super::{check_at, engine, fails};
use crate::clock::Present;
use crate::entry::ShardId;
use crate::shard::Shard;
use crate::sync::How;
use crate::time::Nanos;
use crate::timer::Engine;
use loom::thread;

/// Calls `read` with the name of the first timer's shard and with the first timer's time. Calls
/// `set_up` with each timer and its number.
fn two_leases(set_up: fn(&Engine, u64), read: fn(&Shard, ShardId, Nanos)) {
    let former = engine();
    set_up(&former, 0);
    let (shard, then) = (former.shards()[0], former.context.now());
    let id = shard.id();
    let reader = thread::spawn(move || read(shard, id, then));
    drop(former.stop());
    drop(former);
    let next = engine();
    set_up(&next, 1);
    assert!(next.shards()[0].id().index == id.index && shard.now_if_open(id, 0).is_none(), "the same shard");
    reader.join().unwrap();
}

fn read_the_time() {
    // The time stands still.
    let read = |shard: &Shard, id, then| {
        assert!(shard.now_of(id).is_none_or(|now| now == then), "another timer's time");
    };
    two_leases(|_, _| {}, read);
}

/// The times of both timers run, and that of the second one is ahead by a year.
fn read_a_time_that_runs() {
    const YEAR: Nanos = 365 * 86_400 * 1_000_000_000;
    let set_up = |engine: &Engine, number| {
        engine.set_present(engine.context.now() + number * YEAR);
        engine.change_present(Present::run);
    };
    let read = |shard: &Shard, id, then| {
        assert!(shard.now_of(id).is_none_or(|now| now < then + YEAR / 2), "another timer's time");
    };
    two_leases(set_up, read);
}

#[test]
fn a_time_is_that_of_the_timer() {
    check_at(4, read_the_time);
}

#[test]
fn a_time_that_runs_is_that_of_the_timer() {
    check_at(4, read_a_time_that_runs);
}

#[test]
#[should_panic(expected = "another timer's time")]
fn negative_the_offset_is_read_without_acquire() {
    fails("clock.rs", "self.offset.load(Ordering::Acquire)", How::Relaxed, read_a_time_that_runs);
}

#[test]
#[should_panic(expected = "another timer's time")]
fn negative_the_offset_is_set_without_release() {
    fails("clock.rs", "self.offset.store(other.offset", How::Relaxed, read_a_time_that_runs);
}

#[test]
#[should_panic(expected = "another timer's time")]
fn negative_time_is_given_back_without_release() {
    fails("clock.rs", "self.word.store(Self::REAL", How::Relaxed, read_the_time);
}

#[test]
#[should_panic(expected = "another timer's time")]
fn negative_time_is_set_without_release() {
    fails("clock.rs", "self.word.store(other.word", How::Relaxed, read_the_time);
}

#[test]
#[should_panic(expected = "another timer's time")]
fn negative_time_is_read_without_acquire() {
    fails("clock.rs", "fn now(&self) .. self.word.load(Ordering::Acquire)", How::Relaxed, read_the_time);
}
