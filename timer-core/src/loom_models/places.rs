//! Models of the location of an entry, which lock holders on several threads write and read.

use super::{
    Outcome, Subject, assert_sound, beside, check, check_heavy, engine, new, set_time, time_at, turn, turn_at, turn_out,
};
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

/// Returns a timer that looks at its wheel early, so that a timeout moves to an earlier place under
/// one lock, and a timeout that is due after 90 ns.
fn with_an_early_look() -> (Subject, Timeout, &'static Outcome) {
    let engine = engine();
    drop(new(&engine, 2));
    let (timeout, outcome) = new(&engine, 90);
    (engine, timeout, outcome)
}

fn a_move_and_a_cancel() {
    let (engine, timeout, outcome) = with_an_early_look();
    let mover = beside(&timeout, |timeout| timeout.reset(Duration::from_nanos(5)));
    assert!(timeout.cancel(), "a move never prevents a cancel");
    let _ = mover.join().unwrap();
    assert_eq!((outcome.ran(), outcome.dropped(), engine.pending()), (0, 1, 1));
    drop(timeout);
    assert_eq!(turn_out(&mut engine.dispatcher()), 1, "the other one");
    assert_sound(&engine);
}

model!(check, a_move_and_a_cancel,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
    the_lock_orders_nothing Relaxed "sync/lock.rs" "self.word.compare_exchange(old, new",
);

/// One thread moves a timeout to 5, and another one resets it to 45 and takes the turns of that
/// time. If the reset relies on the link of the first thread, the first turn waits for it.
fn a_move_and_a_turn(to_earlier: fn(&Timeout, Deadline)) {
    let (engine, timeout, outcome) = with_an_early_look();
    let [earlier, later] = [5, 45].map(|nanos| Deadline::up(time_at(&engine.context, nanos)));
    let other = {
        let timeout = timeout.clone();
        beside(&engine, move |engine| {
            assert!(timeout.reset_to(later, timeout.now()));
            let mut dispatcher = engine.dispatcher();
            while engine.next() <= 45 {
                turn_at(&mut dispatcher, 45);
            }
            outcome.ran()
        })
    };
    to_earlier(&timeout, earlier);
    assert_eq!(other.join().unwrap(), 1, "missed");
    assert_eq!((outcome.ran(), outcome.dropped(), engine.pending()), (1, 1, 0));
    assert_sound(&engine);
}

fn a_turn_waits_for_a_move() {
    a_move_and_a_turn(|timeout, deadline| _ = timeout.reset_to(deadline, timeout.now()));
}

model!(check_heavy, a_turn_waits_for_a_move,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

#[test]
#[should_panic(expected = "missed")]
fn negative_the_state_changes_before_the_lock() {
    check_heavy(|| {
        a_move_and_a_turn(|timeout, deadline| {
            if timeout.state().move_linked(deadline) {
                let context = timeout.context().unwrap();
                let _ = timeout.link(context.resolution.tick_of(deadline));
            }
        });
    });
}

/// A timeout was moved to 50, and at its former deadline of 5 a turn takes it out and links it
/// again. Meanwhile it moves to 20.
fn a_move_beside_the_turn_that_has_it(to_earlier: fn(&Timeout, Deadline) -> bool) {
    let engine = engine();
    let (timeout, outcome) = new(&engine, 5);
    assert!(timeout.reset(Duration::from_nanos(50)));
    set_time(&engine, 5);
    let mover = {
        let deadline = Deadline::up(time_at(&engine.context, 20));
        beside(&timeout, move |timeout| to_earlier(&timeout, deadline))
    };
    let mut dispatcher = engine.dispatcher();
    assert_eq!(turn(&mut dispatcher), 0, "not due");
    assert!(mover.join().unwrap());
    assert_eq!(turn_at(&mut dispatcher, 20), 1, "late");
    assert_eq!((outcome.ran(), outcome.dropped(), engine.next()), (1, 1, NO_TICK));
    assert_sound(&engine);
}

fn a_turn_and_a_move() {
    a_move_beside_the_turn_that_has_it(|timeout, deadline| timeout.reset_to(deadline, timeout.now()));
}

model!(check, a_turn_and_a_move);

#[test]
#[should_panic(expected = "late")]
fn negative_an_entry_that_a_turn_has_counts_as_linked() {
    check(|| a_move_beside_the_turn_that_has_it(|timeout, deadline| timeout.state().move_linked(deadline)));
}
