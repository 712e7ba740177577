//! Models of a future that reads the time of its shard without the lock, while another timer takes
//! the shard over. The future never gets the time of the other timer.

use super::{check_at, engine, fails};
use crate::entry::ShardId;
use crate::shard::Shard;
use crate::sync::How;
use crate::time::Nanos;
use loom::thread;

/// Calls `read` with the name of the first timer's shard and with the first timer's time, which
/// stands still.
fn two_leases(read: fn(&Shard, ShardId, Nanos)) {
    let former = engine();
    let (shard, then) = (former.shards()[0], former.context.now());
    let id = shard.id();
    let reader = thread::spawn(move || read(shard, id, then));
    drop(former.stop());
    drop(former);
    let next = engine();
    assert!(next.shards()[0].id().index == id.index && shard.now_if_open(id, 0).is_none(), "the same shard");
    reader.join().unwrap();
}

fn read_the_time() {
    two_leases(|shard, id, then| {
        assert!(shard.now_of(id).is_none_or(|now| now == then), "another timer's time");
    });
}

#[test]
fn a_time_is_that_of_the_timer() {
    check_at(4, read_the_time);
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
