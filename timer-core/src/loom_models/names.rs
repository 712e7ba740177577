//! What a future reads of a shard by its name, without the lock, while one timer gives the shard up and another takes it: nothing of the
//! other's.

use super::{check_at, engine, fails};
use crate::entry::ShardId;
use crate::shard::Shard;
use crate::sync::How;
use crate::time::Nanos;
use loom::thread;

/// `read` has the name of the first timer's shard, and that timer's time, which stands still.
fn two_leases(read: fn(&Shard, ShardId, Nanos)) {
    let former = engine();
    let (shard, then) = (former.shards()[0], former.context.now());
    let id = shard.id();
    let reader = thread::spawn(move || read(shard, id, then));
    drop(former.stop());
    drop(former);
    let next = engine();
    assert!(next.shards()[0].id().index == id.index && !shard.serves(id), "the same shard");
    reader.join().unwrap();
}

fn is_served() {
    two_leases(|shard, id, _| {
        let [before, after] = [(); 2].map(|()| shard.serves(id));
        assert!(before || !after, "it serves again");
    });
}

#[test]
fn a_timer_that_was_stopped_is_served_no_more() {
    check_at(4, is_served);
}

#[test]
#[should_panic(expected = "serves again")]
fn negative_opened_without_release() {
    fails("shard/mod.rs", "self.open.store(true", How::Relaxed, is_served);
}

#[test]
#[should_panic(expected = "serves again")]
fn negative_open_is_read_without_acquire() {
    fails("shard/mod.rs", "self.open.load(Ordering::Acquire)", How::Relaxed, is_served);
}

fn what_time_it_is() {
    two_leases(|shard, id, then| {
        assert!(shard.now_of(id).is_none_or(|now| now == then), "another timer's time");
    });
}

#[test]
fn a_time_is_that_of_the_timer() {
    check_at(4, what_time_it_is);
}

#[test]
#[should_panic(expected = "another timer's time")]
fn negative_time_is_given_back_without_release() {
    fails("clock.rs", "self.0.store(Self::REAL", How::Relaxed, what_time_it_is);
}

#[test]
#[should_panic(expected = "another timer's time")]
fn negative_time_is_set_without_release() {
    fails("clock.rs", "self.0.store(now.clamp", How::Relaxed, what_time_it_is);
}

#[test]
#[should_panic(expected = "another timer's time")]
fn negative_time_is_read_without_acquire() {
    fails("clock.rs", "fn now(&self) .. self.0.load(Ordering::Acquire)", How::Relaxed, what_time_it_is);
}
