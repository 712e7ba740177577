//! Models of the location of an entry, which lock holders on several threads write and read.

use super::{assert_sound, beside, check, engine, new, time_at};
use crate::deadline::{Deadline, NO_TICK};
use crate::entry::Timeout;
use crate::entry::state::Reset;
use loom::thread;
use std::time::Duration;

/// Two entries share a bucket, so the removal of one moves the other. Both cancellers find their
/// entries.
fn two_in_a_bucket() {
    let engine = engine();
    let [first, second] = [5, 5].map(|nanos| new(&engine, nanos).0);
    let other = beside(&first, move |first| first.cancel());
    assert!(second.cancel());
    assert!(other.join().unwrap());
    // One cancel may have left a request, which the next lock holder serves.
    assert!(new(&engine, 90).0.cancel());
    assert!(first.is_last() && second.is_last(), "the wheel has it still");
    assert_sound(&engine);
}

model!(check, two_in_a_bucket,
    the_bucket_is_not_written ["has it still"] Skip "entry/linked.rs" "fn moved .. bucket.store(location",
    the_position_is_not_written ["has it still"] Skip "entry/linked.rs" "fn moved .. position.store(location",
    // If the lock did not order the accesses, the next holder would read an old location.
    the_lock_orders_nothing Relaxed "sync/lock.rs" "self.word.compare_exchange(old, new",
);

/// Two threads reset one timeout, one of them to 5 and the other to 45. When the second `reset` has
/// returned, the wheel or the inbox must know the timeout under 45 or earlier, and the worker must
/// be awake, although the first thread may not have linked the timeout or woken the worker yet. The
/// thread that looks is one that the model starts, see the head of [`super`].
fn two_resets(reset: fn(&Timeout, Deadline)) {
    let engine = engine();
    let (timeout, _) = new(&engine, 90);
    engine.context.alarm.arm();
    assert!(engine.context.alarm.set(NO_TICK));
    let second = {
        let engine = engine.clone();
        let timeout = timeout.clone();
        thread::spawn(move || {
            reset(&timeout, Deadline::up(time_at(&engine.context, 45)));
            (engine.next(), engine.context.alarm.is_up())
        })
    };
    assert!(timeout.reset(Duration::from_nanos(5)));
    let (next, is_awake) = second.join().unwrap();
    assert!(next <= 45, "the link waits for another thread");
    assert!(is_awake, "the wake-up waits for another thread");
    // A thread that has met the other one at the lock has not cleared the flag.
    assert!(timeout.reset_to(timeout.state().deadline(), timeout.now()));
    assert_eq!(timeout.state().reset(timeout.state().deadline(), false), Reset::Done, "it is linked");
}

fn a_reset_does_not_wait_for_another_thread() {
    two_resets(|timeout, deadline| assert!(timeout.reset_to(deadline, timeout.now())));
}

model!(check, a_reset_does_not_wait_for_another_thread,
    locking_in_two_steps Split "sync/lock.rs" "self.word.compare_exchange(old, new",
);

/// The second reset relies on the link of the thread that has set the earlier deadline.
#[test]
#[should_panic(expected = "the link waits")]
fn negative_a_reset_to_later_never_links() {
    check(|| {
        two_resets(|timeout, deadline| {
            let is_earlier = deadline < timeout.state().deadline();
            if is_earlier {
                assert!(timeout.reset_to(deadline, timeout.now()));
            } else {
                let _ = timeout.state().reset(deadline, false);
            }
        });
    });
}
