//! The same parts as the model checker sees them (`--cfg timer_loom`, tests only).
//!
//! Atomics, cells, locks and threads are loom's. The queue is a stand-in that promises no more than crossbeam's: a pop
//! that finds an item sees what its push saw, and nothing is promised about the order of items or about pushes that did
//! not happen before the pop. `Arc` and `OnceLock` are `std`'s: they are not what is being checked.

use std::io;
use std::sync::Mutex as StdMutex;
use std::time::Instant;

pub(crate) use loom::cell::UnsafeCell;
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use loom::thread::{JoinHandle, ThreadId, yield_now};
pub(crate) use std::sync::{Arc, OnceLock, Weak};

/// loom's mutex in parking_lot's shape.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
        self.0.lock().unwrap()
    }
}

/// Few slots, so that the rare paths are common.
const SLOTS: usize = 4;
const EMPTY: usize = 0;
const WRITING: usize = 1;
const READY: usize = 2;

/// An unordered bag with one release and one acquire per item.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    slots: Vec<(AtomicUsize, StdMutex<Option<T>>)>,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        Self { slots: (0..SLOTS).map(|_| (AtomicUsize::new(EMPTY), StdMutex::new(None))).collect() }
    }

    pub(crate) fn push(&self, item: T) {
        for (state, slot) in &self.slots {
            // ORDERING: Relaxed, only claims the slot; acquiring from the last reader is left out on purpose.
            if state.compare_exchange(EMPTY, WRITING, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                *slot.lock().unwrap() = Some(item);
                // ORDERING: Release pairs with the Acquire in `pop`.
                state.store(READY, Ordering::Release);
                return;
            }
        }
        panic!("a model pushes more than {SLOTS} items");
    }

    pub(crate) fn pop(&self) -> Option<T> {
        for (state, slot) in &self.slots {
            // ORDERING: Acquire pairs with the Release in `push`.
            if state.compare_exchange(READY, WRITING, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                let item = slot.lock().unwrap().take();
                // ORDERING: Relaxed, the slot may be claimed again.
                state.store(EMPTY, Ordering::Relaxed);
                return item;
            }
        }
        None
    }

    pub(crate) fn is_empty(&self) -> bool {
        // ORDERING: Relaxed, as weak as can be.
        self.slots.iter().all(|(state, _)| state.load(Ordering::Relaxed) != READY)
    }
}

/// Waits for the token only: in a model nobody is saved by a timeout.
#[derive(Debug, Default)]
pub(crate) struct Parker {
    token: loom::sync::Mutex<bool>,
    given: loom::sync::Condvar,
    sent: std::sync::atomic::AtomicUsize,
}

impl Parker {
    pub(crate) fn park(&self, _: Option<Instant>) {
        let mut token = self.token.lock().unwrap();
        while !*token {
            token = self.given.wait(token).unwrap();
        }
        *token = false;
    }

    pub(crate) fn unpark(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
        *self.token.lock().unwrap() = true;
        self.given.notify_one();
    }

    /// How many wake-ups were sent so far.
    pub(crate) fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }
}

pub(crate) fn spawn(_: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Ok(loom::thread::spawn(body))
}

pub(crate) fn wake_on_time() {}

pub(crate) fn thread_id() -> ThreadId {
    loom::thread::current().id()
}

pub(crate) fn parallelism() -> usize {
    1
}

pub(crate) fn thread_slot() -> usize {
    0
}

pub(crate) fn timer_born() -> usize {
    1
}

pub(crate) fn timer_died() {}

pub(crate) fn first_warning() -> bool {
    false
}
