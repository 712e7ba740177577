//! Models of calls that lose a race, such as a second `cancel` and a poll whose timer is gone. A
//! call that loses may rely on the work of the thread that has won.

use super::{Subject, engine, new, set_time, time_at};
use crate::deadline::Deadline;
use crate::future::Sleep;
use crate::sync::{Arc, UnsafeCell};
use core::task::{Context, Poll, Waker};
use loom::thread;

/// A thread writes a value and cancels. The other one, whose cancel is lost, reads the value.
#[allow(clippy::arc_with_non_send_sync, reason = "the checker looks after the cells")]
fn a_lost_cancel() {
    let engine = engine();
    let (timeout, _) = new(&engine, 5);
    let written = Arc::new(UnsafeCell::new(0));
    let loser = {
        let timeout = timeout.clone();
        let written = written.clone();
        thread::spawn(move || {
            if !timeout.cancel() {
                written.with(|_| ());
            }
        })
    };
    // The loser may win instead. It does not touch the value then.
    written.with_mut(|_| ());
    let _ = timeout.cancel();
    loser.join().unwrap();
}

model!(check, a_lost_cancel,
    a_lost_cancel_does_not_acquire ["Causality violation"] Relaxed "entry/state.rs" "match self.0.compare_exchange_weak",
);

const HOUR: u64 = 3_600_000_000_000;

/// A first poll reads the time of a later timer, which leases the shard by then.
fn a_poll_and_the_next_lease() {
    let former = engine();
    let id = former.shards()[0].id();
    let mut sleep = Sleep::new(former.lease.block.id, true, true, Deadline::up(time_at(&former.context, HOUR)));
    let poller = thread::spawn(move || sleep.try_poll(&mut Context::from_waker(Waker::noop())));
    drop(former.stop());
    drop(former);
    let next: Subject = engine();
    assert_eq!(next.shards()[0].id().index, id.index, "the same shard");
    set_time(&next, 2 * HOUR);
    assert_ne!(poller.join().unwrap(), Poll::Ready(Ok(())), "early");
}

model!(check, a_poll_and_the_next_lease,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);
