//! Cancel, reset and expiry against one another: exactly one wins; the task runs or is dropped, never both, once.

use super::{check, collect, schedule, shard};
use crate::entry::AnyEntry;
use crate::shard::Shard;
use crate::state::{Expiry, Word};
use crate::sync::{Arc, AtomicU64, Ordering};
use crate::time::{Nanos, Stamp};
use crate::timeout::Timeout;
use loom::thread;
use timer_executor::{Runnable, Task};

/// How the turn wins an entry and runs its task; the entry comes back if it was not won.
type Run = fn(Arc<dyn AnyEntry>, Nanos) -> Result<(), Arc<dyn AnyEntry>>;

/// All in one, as without an executor.
const HERE: Run = |entry, now| entry.run_if_due(now);

/// Won first, run later, as by an executor.
const BY_TASK: Run = |entry, now| match entry.expire(now) {
    Expiry::Won => {
        Task::from_shared(entry as Arc<dyn Runnable>).run();
        Ok(())
    }
    _ => Err(entry),
};

/// What the turn does with a bare shard; how many tasks ran, and where `reset` has moved the others.
fn run_due(shard: &Shard, nanos: u64, run: Run) -> (usize, Option<Stamp>) {
    let (mut ran, mut later) = (0, None);
    for entry in collect(shard, nanos) {
        let Err(entry) = run(entry, nanos.into()) else {
            ran += 1;
            continue;
        };
        if let Expiry::Later(deadline) = entry.word().expire(nanos.into()).0 {
            later = Some(deadline);
            let home = entry.head().home().clone();
            let _ = home.submit(entry, deadline.to_bits());
        }
    }
    (ran, later)
}

fn reset(timeout: &Timeout, nanos: u64) -> bool {
    let moved = |word| Word::from_bits(word).reset(Stamp::up(nanos.into())).map(Word::to_bits);
    timeout.entry().state().update(moved).is_ok()
}

fn cancel_and_expire(run: Run) {
    let shard = shard();
    let (timeout, fate) = schedule(&shard, 5);
    let canceller = thread::spawn(move || timeout.cancel());
    let (ran, _) = run_due(&shard, 5, run);
    let cancelled = canceller.join().unwrap();
    assert_eq!(ran + usize::from(cancelled), 1);
    assert_eq!((fate.ran(), fate.dropped()), (ran, 1));
    assert_eq!(shard.cancelled(), u64::from(cancelled));
}

#[test]
fn loom_rivals_cancel_and_expire_never_both_win() {
    check(|| cancel_and_expire(BY_TASK));
}

#[test]
fn loom_rivals_cancel_and_a_run_at_once_never_both_win() {
    check(|| cancel_and_expire(HERE));
}

#[test]
fn loom_rivals_of_two_cancels_one_wins() {
    check(|| {
        let shard = shard();
        let (timeout, fate) = schedule(&shard, 5);
        let other = {
            let timeout = timeout.clone();
            thread::spawn(move || timeout.cancel())
        };
        let (mine, theirs) = (timeout.cancel(), other.join().unwrap());
        assert!(mine != theirs);
        assert_eq!((fate.ran(), fate.dropped(), shard.cancelled()), (0, 1, 1));
        assert_eq!(shard.earliest(), None, "nothing is left in the wheel");
    });
}

#[test]
fn loom_rivals_cancel_and_reset() {
    check(|| {
        let shard = shard();
        let (timeout, fate) = schedule(&shard, 5);
        let other = {
            let timeout = timeout.clone();
            thread::spawn(move || reset(&timeout, 9))
        };
        assert!(timeout.cancel(), "a reset does not keep anybody from cancelling");
        let _ = other.join().unwrap();
        assert_eq!((fate.ran(), fate.dropped()), (0, 1));
        assert!(timeout.is_cancelled() && shard.earliest().is_none());
    });
}

/// Either the reset comes first, and the timeout is linked again; or the expiry does, and the reset says so.
fn reset_and_expire(run: Run) {
    let shard = shard();
    let (timeout, fate) = schedule(&shard, 5);
    let other = {
        let timeout = timeout.clone();
        thread::spawn(move || reset(&timeout, 9))
    };
    let (ran, later) = run_due(&shard, 5, run);
    let moved = other.join().unwrap();
    assert_eq!(ran, usize::from(!moved));
    assert_eq!(later.is_some(), moved);
    if moved {
        assert_eq!(run_due(&shard, 8, run).0, 0, "not at the old deadline");
        assert_eq!(run_due(&shard, 9, run).0, 1, "but at the new one");
    }
    assert_eq!((fate.ran(), fate.dropped()), (1, 1));
}

#[test]
fn loom_rivals_reset_and_expire() {
    check(|| reset_and_expire(BY_TASK));
}

#[test]
fn loom_rivals_reset_and_a_run_at_once() {
    check(|| reset_and_expire(HERE));
}

/// Deciding by a load and a store instead of one read-modify-write: both win.
#[test]
#[should_panic(expected = "both have won")]
fn loom_rivals_negative_a_load_and_a_store_let_both_win() {
    check(|| {
        let state = loom::sync::Arc::new(AtomicU64::new(0));
        let win = |state: &AtomicU64, mark| {
            let free = state.load(Ordering::Acquire) == 0;
            if free {
                state.store(mark, Ordering::Release);
            }
            free
        };
        let other = {
            let state = state.clone();
            thread::spawn(move || win(&state, 1))
        };
        let mine = win(&state, 2);
        assert!(!(other.join().unwrap() && mine), "both have won");
    });
}
