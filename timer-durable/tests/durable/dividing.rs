//! Batches that are too much for one statement or one turn.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use timer_durable::transaction::Operation;
use timer_durable::{Call, CancelAnswer, Due, DurableTimer, Error, Schedule, ScheduleAnswer, StoreError};
use timer_executor::ThreadPoolExecutor;

use crate::scripted::ScriptedStore;
use crate::t;

const LONG: Duration = Duration::from_secs(60);

/// Lets a timer write 64 calls of which each waits for a lock, and returns the largest number of
/// such statements in a turn. Each takes 10 ms.
fn most_waits_of_a_turn(has_lease: bool) -> usize {
    let store = ScriptedStore::new();
    if has_lease {
        // A renewal is due in each turn.
        store.set_next_upkeep(Instant::now());
    }
    let timer = DurableTimer::builder().topic(t(), |_: &Due<()>| Ok(())).open(store.clone()).wait().unwrap();
    let waits = Arc::new(Mutex::new(HashMap::<u64, usize>::new()));
    let mut left = 0..100;
    let turns = timer.clone();
    let (open, gate) = channel::<()>();
    store.on_write({
        let waits = waits.clone();
        move |batch| {
            let _open = gate.recv();
            left.next()?;
            *waits.lock().unwrap().entry(turns.stats().turns).or_default() += 1;
            wait_for_a_lock(batch, Duration::from_millis(10))
        }
    });
    let calls: Vec<_> = (0..64).map(|n| schedule(&timer, &n.to_string())).collect();
    drop(open);
    calls.into_iter().for_each(|call| _ = call.wait().unwrap());
    store.on_write(|_| None);
    *waits.lock().unwrap().values().max().unwrap()
}

/// Answers like a server after a statement that has waited for the lock of an insert.
fn wait_for_a_lock(batch: &[Operation], limit: Duration) -> Option<StoreError> {
    thread::park_timeout(limit);
    Some(match batch {
        [_] => StoreError::Locked,
        _ => StoreError::Refused("another transaction inserts a timeout with the same key".to_owned()),
    })
}

fn schedule(timer: &DurableTimer, key: &str) -> Call<ScheduleAnswer> {
    timer.schedule(t(), Schedule::after(LONG).key(key), &())
}

/// Schedules a timeout without reading the answer. A dropped future would take the call back.
fn submit(timer: &DurableTimer, key: &str) {
    std::mem::forget(schedule(timer, key));
}

#[test]
fn refused_calls_do_not_hold_up_the_upkeep() {
    let most = most_waits_of_a_turn(true);
    assert!(most <= 4, "{most} statements in a turn with a renewal");
}

#[test]
fn refused_calls_do_not_hold_up_others() {
    let most = most_waits_of_a_turn(false);
    assert!(most <= 16, "{most} statements in one turn");
}

/// Returns `true` if a batch has an insert whose key another transaction is inserting.
fn is_blocked(batch: &[Operation]) -> bool {
    batch.iter().any(|operation| match operation {
        Operation::Insert(insert) => insert.key.as_deref().is_some_and(|key| key.starts_with("blocked")),
        _ => false,
    })
}

/// Returns the number of timeouts that a batch begins.
fn count_begins(batch: &[Operation]) -> usize {
    batch.iter().filter(|operation| matches!(operation, Operation::Begin(_))).count()
}

/// Returns a timer whose store lets batches with blocked keys wait for 60 ms after `on_wait`, and a
/// sender that holds up the first batch until it is dropped.
fn blocked_timer(mut on_wait: impl FnMut() + Send + 'static) -> (DurableTimer, Sender<()>) {
    let store = ScriptedStore::new();
    let timer = DurableTimer::builder().topic(t(), |_: &Due<()>| Ok(())).open(store.clone()).wait().unwrap();
    let (open, gate) = channel::<()>();
    store.on_write(move |batch| {
        let _open = gate.recv();
        if !is_blocked(batch) {
            return None;
        }
        on_wait();
        wait_for_a_lock(batch, Duration::from_millis(60))
    });
    // All calls until the gate opens are in one batch.
    submit(&timer, "first");
    (timer, open)
}

#[test]
fn calls_beside_blocked_ones_are_written_whatever_comes_later() {
    let (waiting, waits) = channel();
    let (added, is_added) = channel();
    let (timer, open) = blocked_timer(move || _ = waiting.send(()).is_ok_and(|()| is_added.recv().is_ok()));
    // Dropped before the timer, whose thread may wait for it.
    let added = added;
    let blocked = |n: usize| submit(&timer, &format!("blocked {n}"));
    (0..6).for_each(blocked);
    let call = schedule(&timer, "free");
    drop(open);
    let (sender, answers) = channel();
    thread::spawn(move || sender.send(call.wait()).unwrap());
    // A new blocked call during each statement that waits.
    for n in 6..100 {
        waits.recv_timeout(LONG).unwrap();
        blocked(n);
        added.send(()).unwrap();
        if let Ok(answer) = answers.try_recv() {
            answer.unwrap();
            return;
        }
    }
    panic!("the call was not answered while 100 others were blocked");
}

#[test]
fn a_later_call_does_not_overtake_a_postponed_one() {
    let (timer, open) = blocked_timer(|| ());
    (0..7).for_each(|n| submit(&timer, &format!("blocked {n}")));
    let call = schedule(&timer, "free");
    let cancel = timer.cancel(t::<()>(), "free");
    drop(open);
    assert_eq!(cancel.wait().unwrap(), CancelAnswer::Cancelled);
    call.wait().unwrap();
}

#[test]
fn a_call_waits_for_no_other_parts_of_a_divided_batch() {
    let (waiting, waits) = channel();
    let (timer, open) = blocked_timer(move || _ = waiting.send(()));
    let call = schedule(&timer, "free");
    (0..31).for_each(|n| submit(&timer, &format!("blocked {n}")));
    drop(open);
    call.wait().unwrap();
    let cancel = timer.cancel(t::<()>(), "free");
    let before = waits.try_iter().count();
    assert_eq!(cancel.wait().unwrap(), CancelAnswer::Cancelled);
    let meanwhile = waits.try_iter().count();
    // One statement is under way, and a turn has two or three.
    assert!(meanwhile <= 6, "{meanwhile} statements waited after {before}");
}

#[test]
fn a_call_fails_after_a_while_if_the_store_cannot_be_reached() {
    let store = ScriptedStore::new();
    let timer = DurableTimer::builder().topic(t(), |_: &Due<()>| Ok(())).open(store.clone()).wait().unwrap();
    let id = timer.new_timeout(t(), LONG, &()).wait().unwrap();
    let (entered, entries) = channel();
    let (open, gate) = channel::<()>();
    let lost = || StoreError::Disconnected("no connection".to_owned());
    let mut answers = [None, Some(StoreError::Refused("no".to_owned()))].into_iter();
    store.on_write(move |_| {
        let _ignored = entered.send(());
        let _open = gate.recv();
        answers.next().unwrap_or_else(|| Some(lost()))
    });
    store.on_rejoin(move || Some(lost()));
    submit(&timer, "first");
    entries.recv_timeout(LONG).unwrap();
    // The due timeout begins in the batch of this call, in the half that was not written when the
    // connection was lost.
    store.memory.advance_clock(LONG);
    let call = schedule(&timer, "second");
    drop(open);
    let begun = Instant::now();
    let (sender, answers) = channel();
    let canceller = timer.clone();
    let other = sender.clone();
    thread::spawn(move || sender.send(canceller.cancel_by_id(id).wait().map(drop)));
    // Its batch was not sent.
    thread::spawn(move || other.send(call.wait().map(drop)));
    for _ in 0..2 {
        let error = answers.recv_timeout(LONG).expect("an answer during the outage").unwrap_err().to_string();
        assert!(error.contains("the store has not been joined again") && error.contains("no connection"), "{error}");
        assert!(begun.elapsed() > Duration::from_secs(4), "it waits for 5 s");
    }
    store.on_rejoin(|| None);
    store.on_write(|_| None);
}

#[test]
fn a_lost_connection_fails_only_the_call_under_way() {
    let store = ScriptedStore::new();
    let timer = DurableTimer::builder().topic(t(), |_: &Due<()>| Ok(())).open(store.clone()).wait().unwrap();
    let [breaks, is_lost] = [(); 2].map(|()| Arc::<AtomicBool>::default());
    let (waiting, waits) = channel();
    store.on_write({
        let breaks = breaks.clone();
        let is_lost = is_lost.clone();
        move |batch| {
            if is_lost.load(Ordering::Relaxed) {
                return Some(StoreError::Disconnected("no connection".to_owned()));
            }
            if breaks.swap(false, Ordering::Relaxed) {
                is_lost.store(true, Ordering::Relaxed);
                return Some(StoreError::InDoubt("no answer".to_owned()));
            }
            waiting.send(()).ok()?;
            wait_for_a_lock(batch, Duration::from_millis(1))
        }
    });
    // Each call is set aside by itself, and waits for a lock again.
    let calls: Vec<_> = (0..8)
        .map(|n| {
            let call = schedule(&timer, &n.to_string());
            waits.recv_timeout(LONG).unwrap();
            call
        })
        .collect();
    (0..30).for_each(|_| waits.recv_timeout(LONG).unwrap());
    store.on_count(move || {
        // The pauses of all calls end in that time.
        thread::park_timeout(Duration::from_millis(1_100));
        breaks.store(true, Ordering::Relaxed);
    });
    store.on_rejoin(move || {
        is_lost.store(false, Ordering::Relaxed);
        None
    });
    timer.counts().wait().unwrap();
    drop(waits);
    let failed: Vec<Error> = calls.into_iter().filter_map(|call| call.wait().err()).collect();
    assert!(matches!(failed[..], [Error::OutcomeUnknown { .. }]), "{failed:?}");
}

#[test]
fn begins_that_waited_aside_use_no_more_than_the_free_places() {
    let store = ScriptedStore::new();
    let (entered, entries) = channel();
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let blocks = move |_: &Due<()>| {
        entered.send(()).unwrap();
        let _ended = released.lock().unwrap().recv();
        Ok(())
    };
    let timer = DurableTimer::builder()
        .max_running(8)
        .executor(ThreadPoolExecutor::new(16))
        .topic(t(), blocks)
        .open(store.clone())
        .wait()
        .unwrap();
    let calls: Vec<_> = (0..15).map(|_| timer.new_timeout(t(), LONG, &())).collect();
    calls.into_iter().for_each(|call| _ = call.wait().unwrap());
    let mut waits = 0..1;
    store.on_write(move |batch| {
        let count = Some(count_begins(batch)).filter(|count| *count > 0)?;
        waits.next()?;
        assert_eq!((count, batch.len()), (8, 8));
        Some(StoreError::Locked)
    });
    store.memory.advance_clock(LONG);
    timer.counts().wait().unwrap();
    (0..8).for_each(|_| entries.recv_timeout(LONG).unwrap());
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(100) {
        timer.counts().wait().unwrap();
        assert!(timer.stats().running <= 8, "{:?}", timer.stats());
    }
    drop(release);
    (0..7).for_each(|_| entries.recv_timeout(LONG).unwrap());
}

/// Runs timeouts whose payloads have this length, on a store that answers a batch of begins with
/// `on_begins` of their number. Returns the numbers of attempts that began in each batch.
fn begins(count: usize, payload: usize, on_begins: fn(usize) -> Option<StoreError>) -> Vec<usize> {
    let store = ScriptedStore::new();
    let sizes = Arc::<Mutex<Vec<usize>>>::default();
    let timer =
        DurableTimer::builder().max_payload(payload + 9).topic(t(), |_: &Due<String>| Ok(())).open(store.clone());
    let timer = timer.wait().unwrap();
    let payload = "x".repeat(payload);
    let calls: Vec<_> = (0..count).map(|_| timer.new_timeout(t(), LONG, &payload)).collect();
    calls.into_iter().for_each(|call| _ = call.wait().unwrap());
    store.on_write({
        let sizes = sizes.clone();
        move |batch| {
            let size = count_begins(batch);
            if size > 0 {
                sizes.lock().unwrap().push(size);
            }
            on_begins(size)
        }
    });
    store.memory.advance_clock(LONG);
    let begun = Instant::now();
    while timer.counts().wait().unwrap().pending > 0 {
        assert!(begun.elapsed() < LONG, "{:?}", timer.stats());
    }
    sizes.lock().unwrap().clone()
}

#[test]
fn begins_with_large_payloads_come_in_small_batches() {
    assert_eq!(begins(130, 600_000, |_| None), [64, 32, 16, 16, 2]);
}

#[test]
fn begins_with_small_payloads_come_in_large_batches() {
    assert_eq!(begins(500, 1, |_| None), [64, 128, 256, 52]);
}

#[test]
fn a_lost_batch_of_begins_is_not_repeated_as_it_was() {
    let sizes = begins(100, 1, |size| (size > 20).then(|| StoreError::InDoubt("no answer".to_owned())));
    assert_eq!(sizes[..3], [64, 1, 2], "{sizes:?}");
}
