//! Models of a future that meets its expiry or `stop`. The waker of its last poll is woken, and the
//! future is counted once.

use super::{LATER, Subject, assert_sound, beside, engine, set_time, time_at, turn_elsewhere, turn_out};
use crate::deadline::Deadline;
use crate::error::RejectReason;
use crate::future::Sleep;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;
use std::time::Duration;

#[derive(Default)]
struct Bell(AtomicUsize);

/// The number of leaked clones of each bell. A negative twin may drop a waker twice.
const LEAKED: usize = 8;

impl Bell {
    fn new() -> (Arc<Bell>, Waker) {
        let bell = Arc::new(Bell::default());
        (0..LEAKED).for_each(|_| std::mem::forget(bell.clone()));
        (bell.clone(), Waker::from(bell))
    }

    fn rung(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn sleep(engine: &Subject, nanos: u64) -> Sleep {
    Sleep::new(engine.lease.block.id, true, true, Deadline::up(time_at(&engine.context, nanos)))
}

fn poll(sleep: &mut Sleep, waker: &Waker) -> Poll<Result<(), RejectReason>> {
    sleep.try_poll(&mut Context::from_waker(waker))
}

/// Creates a timer with one waiting future whose deadline has come.
fn due(waker: &Waker) -> (Subject, Sleep) {
    let engine = engine();
    let mut sleep = sleep(&engine, 5);
    assert!(poll(&mut sleep, waker).is_pending());
    set_time(&engine, 5);
    (engine, sleep)
}

fn assert_accounts(engine: &Subject, expired: u64, cancelled: u64) {
    let stats = engine.stats();
    assert_eq!((stats.expired, stats.cancelled), (expired, cancelled));
    assert_eq!((stats.scheduled, stats.pending), (expired + cancelled, 0));
    assert_sound(engine);
}

/// The future is polled with another waker while it expires.
fn another_waker_and_expiry() {
    let (former, waker) = Bell::new();
    let (engine, mut sleep) = due(&waker);
    let turned = turn_elsewhere(&engine);
    let (bell, waker) = Bell::new();
    let polled = poll(&mut sleep, &waker);
    let _ = turned.join().unwrap();
    let _ = turn_out(&mut engine.dispatcher());
    assert!(polled.is_ready() || bell.rung(), "the last waker is not woken");
    assert!(bell.rung() != former.rung() || polled.is_ready());
    assert_eq!(poll(&mut sleep, &waker), Poll::Ready(Ok(())));
    assert_accounts(&engine, 1, 0);
}

model!(check, another_waker_and_expiry,
    a_blind_lock_loses_the_waker Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

/// The future is dropped while it expires.
fn drop_and_expiry() {
    let (bell, waker) = Bell::new();
    let (engine, sleep) = due(&waker);
    drop(waker);
    let turned = turn_elsewhere(&engine);
    drop(sleep);
    let expired = turned.join().unwrap() as u64;
    assert_eq!(turn_out(&mut engine.dispatcher()), 0);
    assert_eq!(Arc::strong_count(&bell), 1 + LEAKED, "the waker is leaked");
    assert_eq!(bell.rung(), expired == 1);
    assert_accounts(&engine, expired, 1 - expired);
}

model!(check, drop_and_expiry,
    a_blind_drop_ends_a_future_twice Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

/// The future is reset and polled again while it expires.
fn reset_and_expiry() {
    let (bell, waker) = Bell::new();
    let (engine, mut sleep) = due(&waker);
    let turned = turn_elsewhere(&engine);
    sleep.reset_after(Duration::from_nanos(45));
    assert!(poll(&mut sleep, &waker).is_pending(), "early");
    let expired = turned.join().unwrap() as u64;
    let again = turn_out(&mut engine.dispatcher()) as u64;
    set_time(&engine, LATER);
    assert!(bell.rung());
    assert_eq!(poll(&mut sleep, &waker), Poll::Ready(Ok(())));
    assert_accounts(&engine, expired + again, 0);
}

model!(check, reset_and_expiry,
    a_blind_reset_is_lost Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

/// The future is polled with another waker while the timer is stopped.
fn another_waker_and_stop() {
    let (_, waker) = Bell::new();
    let engine = engine();
    let mut sleep = sleep(&engine, 5);
    assert!(poll(&mut sleep, &waker).is_pending());
    let stopper = beside(&engine, move |engine| engine.stop().len());
    let (bell, waker) = Bell::new();
    let polled = poll(&mut sleep, &waker);
    assert_eq!(stopper.join().unwrap(), 0, "futures are not handed back");
    assert!(polled.is_ready() || bell.rung(), "not told of the stop");
    assert_eq!(poll(&mut sleep, &waker), Poll::Ready(Err(RejectReason::Stopped)));
    drop(sleep);
    assert_accounts(&engine, 0, 1);
}

model!(check, another_waker_and_stop,
    a_blind_stop_wakes_no_task Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

/// The future is polled while the timer is stopped, for the first time or after it was ready.
fn registered_and_stopped(has_run: bool) {
    let engine = engine();
    let (bell, waker) = Bell::new();
    let mut sleep = sleep(&engine, 5);
    if has_run {
        assert!(poll(&mut sleep, Waker::noop()).is_pending());
        assert_eq!(turn_out(&mut engine.dispatcher()), 1);
        sleep.reset_after(Duration::from_nanos(5));
    }
    let stopper = beside(&engine, move |engine| engine.stop().len());
    let polled = poll(&mut sleep, &waker);
    assert_eq!(stopper.join().unwrap(), 0);
    assert_eq!(polled.is_pending(), bell.rung());
    assert_eq!(poll(&mut sleep, &waker), Poll::Ready(Err(RejectReason::Stopped)));
    drop(sleep);
    assert_accounts(&engine, u64::from(has_run), u64::from(polled.is_pending()));
}

fn first_poll_and_stop() {
    registered_and_stopped(false);
}

model!(check, first_poll_and_stop, locking_in_two_steps Split "sync/lock.rs" "self.word.compare_exchange(old, new");

fn poll_after_a_run_and_stop() {
    registered_and_stopped(true);
}

model!(check, poll_after_a_run_and_stop,
    locking_orders_nothing Relaxed "sync/lock.rs" "self.word.compare_exchange(old, new",
);
