//! Models of a thread that is preempted between its win and the shard's lock. In that time, its
//! timer is dropped, and another timer leases the same shard. The thread must not change the
//! counters, the permits or the wheel of the other timer.

use super::{beside, bounded, check, engine, heartbeat, new, time_at, turn_at};
use crate::deadline::{Deadline, NO_TICK};
use crate::entry::Timeout;
use crate::entry::state::{Cancel, Due};
use crate::error::RejectReason;
use crate::shard::shard_of;
use loom::thread;
use std::time::Duration;

/// Calls `late` with a timeout of the first timer while the second timer takes over its shard.
fn two_leases(late: fn(&Timeout)) {
    let former = bounded(2);
    let (timeout, outcome) = new(&former, 5);
    let id = timeout.shard_id();
    let caller = beside(&timeout, move |timeout| late(&timeout));
    drop(former.stop());
    drop(former);
    let next = bounded(2);
    let (other, its_outcome) = new(&next, 5);
    assert!(other.shard_id().index == id.index && other.shard_id().generation != id.generation, "the same shard");
    caller.join().unwrap();
    assert!(timeout.is_cancelled() && outcome.dropped() == 1);
    assert_eq!(
        (next.pending(), next.stats().scheduled, next.stats().cancelled),
        (1, 1, 0),
        "counted for the next timer"
    );
    assert_eq!(turn_at(&mut next.dispatcher(), 10), 1);
    assert_eq!((its_outcome.ran(), outcome.ran(), next.next()), (1, 0, NO_TICK), "linked in the next timer");
    drop(other);
    drop(next);
}

fn cancel(timeout: &Timeout) {
    let _ = timeout.cancel();
}

fn reset_to_earlier(timeout: &Timeout) {
    let _ = timeout.reset(Duration::from_nanos(1));
}

fn a_late_cancel() {
    two_leases(cancel);
}

model!(check_at 3, a_late_cancel,
    // The next timer would start with the counts of the former one if they were not cleared.
    counts_begin_where_others_ended ["counted for the next timer"] Skip "counters/counter.rs" "fn clear .. self.0.store(0",
);

fn a_late_reset() {
    two_leases(reset_to_earlier);
}

model!(check_at 3, a_late_reset,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

fn a_late_expire_now() {
    two_leases(|timeout| {
        let _ = timeout.expire_now();
    });
}

model!(check, a_late_expire_now,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

/// The lease ends while a cancel is in progress, and no other lease follows.
fn a_cancel_while_the_timer_is_dropped() {
    let engine = engine();
    let (timeout, outcome) = new(&engine, 5);
    let caller = thread::spawn(move || timeout.cancel());
    drop(engine);
    let _ = caller.join().unwrap();
    assert_eq!((outcome.ran(), outcome.dropped()), (0, 1));
}

model!(check_at 3, a_cancel_while_the_timer_is_dropped,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

#[test]
#[should_panic(expected = "counted for the next timer")]
fn negative_a_cancel_skips_the_generation() {
    check(|| {
        two_leases(|timeout| {
            if let (Cancel::WasWaiting, Some(right)) = timeout.decide_cancel() {
                shard_of(timeout.shard_id()).unlink_of_any_generation();
                right.cancelled();
            }
        });
    });
}

/// A periodic run on another thread ends after its timer is gone and another timer leases the
/// shard.
fn a_run_that_outlives_its_timer(link: fn(&Timeout, u64) -> Result<(), RejectReason>) {
    let former = engine();
    let (timeout, outcome) = heartbeat(&former);
    let context = former.context.clone();
    let runner = beside(&timeout, move |timeout| {
        let due = time_at(&context, 5);
        let Due::Won(right) = timeout.expire(due) else { return };
        let (right, _) = right.run().expect("it runs again");
        let Ok(_) = right.rearm(Deadline::up(due + 10)) else { panic!("no call has cancelled it") };
        if link(&timeout, 15).is_err() {
            if let (_, Some(right)) = timeout.decide_cancel() {
                right.cancelled();
            }
        }
    });
    drop(former.stop());
    drop(former);
    let next = engine();
    runner.join().unwrap();
    assert_eq!(next.next(), NO_TICK, "linked in the next timer");
    assert!(timeout.is_cancelled() && outcome.dropped() == 1);
}

fn a_run_outlives_its_timer() {
    a_run_that_outlives_its_timer(|timeout, tick| shard_of(timeout.shard_id()).submit(timeout.clone(), tick))
}

model!(check_at 3, a_run_outlives_its_timer,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

#[test]
#[should_panic(expected = "linked in the next timer")]
fn negative_a_link_skips_the_generation() {
    check(|| {
        a_run_that_outlives_its_timer(|timeout, tick| {
            shard_of(timeout.shard_id()).submit_of_any_generation(timeout.clone(), tick);
            Ok(())
        });
    });
}
