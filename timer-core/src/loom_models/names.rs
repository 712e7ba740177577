//! Models of a future that reads the time of its shard, while another timer takes the shard over.
//! The future never gets the time of the other timer.

use super::{check_at, engine};
use crate::clock;
use crate::deadline::Nanos;
use crate::entry::ShardId;
use crate::shard::Shard;
use loom::thread;

/// Calls `read` with the name of the first timer's shard. The time of the second timer is ahead by
/// a year.
fn two_leases(read: fn(&Shard, ShardId) -> Nanos) {
    const YEAR: Nanos = 365 * 86_400 * 1_000_000_000;
    let former = engine();
    let shard = former.shards()[0];
    let then = former.context.now();
    let id = shard.id();
    let reader = thread::spawn(move || assert!(read(shard, id) < then + YEAR / 2, "another timer's time"));
    drop(former.stop());
    drop(former);
    let next = engine();
    next.context.present.set(then + YEAR);
    assert!(next.shards()[0].id().index == id.index && shard.due_by_if_open(id, 0).is_none(), "the same shard");
    reader.join().unwrap();
}

fn a_time_is_that_of_the_timer() {
    two_leases(|shard, id| shard.now_of(id, clock::now));
}

model!(check_at 4, a_time_is_that_of_the_timer);

#[test]
#[should_panic(expected = "another timer's time")]
fn negative_the_time_is_that_of_the_present_lease() {
    check_at(4, || two_leases(|shard, _| shard.now_of(shard.id(), clock::now)));
}
