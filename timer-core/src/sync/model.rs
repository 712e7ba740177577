//! The types of the facade for a model checker (`--cfg timer_loom`, tests only).
//!
//! Atomics, cells, locks and threads are those of loom. `Arc` and `OnceLock` are those of `std`,
//! because they are not checked.
//!
//! A model that must fail names one line of the code that ships and a [`fault`] of it. The atomics
//! and bells here are weaker in that line, and unchanged everywhere else.

mod atomics;
mod fault;
mod memory;

pub(crate) use atomics::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
pub(crate) use fault::{Fault, How};
pub(crate) use loom::cell::UnsafeCell;
pub(crate) use loom::hint::spin_loop;
pub(crate) use loom::lazy_static;
pub(crate) use loom::thread::{JoinHandle, ThreadId, yield_now};
pub(crate) use memory::Memory;
use std::io;
pub(crate) use std::sync::atomic::Ordering;
pub(crate) use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

/// Returns `true` if the model has failed. The checker must not be called any more.
pub(crate) fn has_failed() -> bool {
    std::thread::panicking()
}

/// loom's mutex with the interface of parking_lot.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
        self.0.lock().unwrap()
    }

    pub(crate) fn try_lock(&self) -> Option<loom::sync::MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}

pub(crate) type MutexGuard<'a, T> = loom::sync::MutexGuard<'a, T>;

/// Unlocks and locks again. Unlike parking_lot, loom lets any thread have the lock in between.
pub(crate) fn yield_lock<'a, T>(mutex: &'a Mutex<T>, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    drop(guard);
    mutex.lock()
}

/// A reference that is set once, like [`OnceLock`]. loom does not check it.
#[derive(Debug)]
pub(crate) struct OnceRef<T: 'static>(OnceLock<&'static T>);

impl<T> OnceRef<T> {
    pub(crate) const fn new() -> Self {
        Self(OnceLock::new())
    }

    pub(crate) fn get_or_init(&self, init: impl FnOnce() -> &'static T) -> &'static T {
        self.0.get_or_init(init)
    }
}

/// A parker that waits for the token only. In a model no wait ends by a timeout.
#[derive(Debug, Default)]
pub(crate) struct Parker {
    token: loom::sync::Mutex<bool>,
    given: loom::sync::Condvar,
    sent: std::sync::atomic::AtomicUsize,
}

impl Parker {
    pub(crate) fn park(&self, _: Option<Duration>) {
        let mut token = self.token.lock().unwrap();
        while !*token {
            token = self.given.wait(token).unwrap();
        }
        *token = false;
    }

    #[track_caller]
    pub(crate) fn unpark(&self) {
        if fault::here() == Some(How::Skip) {
            return;
        }
        self.sent.fetch_add(1, Ordering::Relaxed);
        *self.token.lock().unwrap() = true;
        self.given.notify_one();
    }

    /// Returns the number of wake-ups that were sent.
    pub(crate) fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }
}

pub(crate) fn spawn(_: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Ok(loom::thread::spawn(body))
}

/// A condition that any number of threads wait for. In a model no wait ends by a timeout.
#[derive(Debug, Default)]
pub(crate) struct Event {
    mutex: loom::sync::Mutex<()>,
    happened: loom::sync::Condvar,
}

impl Event {
    pub(crate) fn wait(&self, _: Option<Instant>, condition: impl Fn() -> bool) {
        let mut guard = self.mutex.lock().unwrap();
        while !condition() {
            guard = self.happened.wait(guard).unwrap();
        }
    }

    #[track_caller]
    pub(crate) fn notify_all(&self) {
        if fault::here() == Some(How::Skip) {
            return;
        }
        drop(self.mutex.lock().unwrap());
        self.happened.notify_all();
    }
}

loom::lazy_static! {
    static ref EVENT: Event = Event::default();
}

pub(crate) fn event_of(_: usize) -> &'static Event {
    &EVENT
}

pub(crate) fn block_signals() {}

pub(crate) fn wait_on_time(wait: impl FnOnce()) {
    wait();
}

pub(crate) fn thread_id() -> ThreadId {
    loom::thread::current().id()
}

pub(crate) fn cpu_count() -> usize {
    1
}

pub(crate) fn current_cpu() -> usize {
    0
}

#[cfg(feature = "__tests")]
pub(crate) fn spread_by_thread(_: bool) {}

/// Returns `true`, because the capacity of the inbox bounds the requests of a model.
pub(crate) fn within_quota(_: u64, _: u64) -> bool {
    true
}

/// A model has no time, so no thread pauses.
pub(crate) fn may_pause(_: u64, _: u64) -> bool {
    false
}

/// A model has no time, so no thread slows down.
pub(crate) fn is_burst(_: u64, _: u64, _: u64) -> bool {
    false
}

pub(crate) fn pause(_: std::time::Duration) {}

pub(crate) fn never_slow_down() {}

pub(crate) fn cpu_use() -> Option<(u64, usize)> {
    None
}

/// A running task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) timeout: usize,
    pub(crate) timer: usize,
}

pub(crate) fn while_running<R>(_: Running, run: impl FnOnce() -> R) -> R {
    run()
}

pub(crate) fn is_running(_: impl Fn(Running) -> bool) -> bool {
    false
}

pub(crate) fn first_warning() -> bool {
    false
}
