//! Batches that are too much for one statement or one turn.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use timer_durable::transaction::{Batch, Target};
use timer_durable::{Due, DurableTimer, IfPending, StoreError};

use crate::scripted::Scripted;

const LONG: Duration = Duration::from_secs(60);

#[test]
fn refused_calls_do_not_hold_up_the_upkeep() {
    let store = Scripted::new();
    let statements = Arc::<AtomicUsize>::default();
    let longest = Arc::<AtomicUsize>::default();
    let mut waits = 0..200;
    store.on_write({
        let statements = statements.clone();
        move |batch| {
            statements.fetch_add(1, Ordering::Relaxed);
            waits.next()?;
            // A statement that has waited for a lock.
            std::thread::park_timeout(Duration::from_millis(20));
            let locked = batch.inserts.iter().map(|insert| Target::Id(insert.id));
            Some(if batch.inserts.len() > 1 {
                StoreError::Refused("another transaction inserts a timeout with the same key".to_owned())
            } else {
                StoreError::Locked(locked.collect())
            })
        }
    });
    store.on_upkeep({
        let longest = longest.clone();
        move || _ = longest.fetch_max(statements.swap(0, Ordering::Relaxed), Ordering::Relaxed)
    });
    store.set_next_upkeep(Instant::now());
    let timer = DurableTimer::builder().topic("t", |_: &Due<()>| Ok(())).open(store).unwrap();
    let schedule = |n: usize| timer.new_timeout_keyed_async("t", &n.to_string(), LONG, &(), IfPending::Keep);
    let calls: Vec<_> = (0..64).map(schedule).collect();
    calls.into_iter().for_each(|call| _ = futures::executor::block_on(call).unwrap());
    let longest = longest.load(Ordering::Relaxed);
    assert!(longest <= 14, "{longest} statements of 20 ms in one turn");
}

/// Runs timeouts whose payloads have this length, on a store that answers `on_begins` to batches
/// with so many begins. Returns the numbers of begins of all batches.
fn begins(count: usize, payload: usize, on_begins: fn(usize) -> Option<StoreError>) -> Vec<usize> {
    let store = Scripted::new();
    let sizes = Arc::<Mutex<Vec<usize>>>::default();
    let timer =
        DurableTimer::builder().max_payload(payload + 9).topic("t", |_: &Due<String>| Ok(())).open(store.clone());
    let timer = timer.unwrap();
    let payload = "x".repeat(payload);
    let calls: Vec<_> = (0..count).map(|_| timer.new_timeout_async("t", LONG, &payload)).collect();
    calls.into_iter().for_each(|call| _ = futures::executor::block_on(call).unwrap());
    store.on_write({
        let sizes = sizes.clone();
        move |batch: &Batch| {
            let size = batch.begins.len();
            if size > 0 {
                sizes.lock().unwrap().push(size);
            }
            on_begins(size)
        }
    });
    store.memory.advance_clock(LONG);
    let begun = Instant::now();
    while timer.counts().unwrap().pending > 0 {
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
    assert_eq!(sizes[..3], [64, 32, 16], "{sizes:?}");
}
