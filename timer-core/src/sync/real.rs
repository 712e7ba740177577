//! The types that ship, which are atomics and threads of `std` and the mutex of parking_lot.

use std::io;
use std::time::{Duration, Instant};

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::Ordering;
pub(crate) use std::sync::{Arc, OnceLock, Weak};
use std::sync::{Condvar, PoisonError};
pub(crate) use std::thread::{ThreadId, yield_now};

// Aliases instead of re-exports, because `clippy.toml` forbids the types themselves outside of this
// facade.
pub(crate) type AtomicBool = std::sync::atomic::AtomicBool;
pub(crate) type AtomicU32 = std::sync::atomic::AtomicU32;
#[cfg(target_has_atomic = "64")]
pub(crate) type AtomicU64 = std::sync::atomic::AtomicU64;
#[cfg(not(target_has_atomic = "64"))]
pub(crate) type AtomicU64 = portable_atomic::AtomicU64;
pub(crate) type AtomicUsize = std::sync::atomic::AtomicUsize;
pub(crate) type JoinHandle<T> = std::thread::JoinHandle<T>;
pub(crate) type Mutex<T> = parking_lot::Mutex<T>;
pub(crate) type MutexGuard<'a, T> = parking_lot::MutexGuard<'a, T>;
/// A reference that is set once. Threads that race to set it agree on one.
pub(crate) type OnceRef<T> = once_cell::race::OnceRef<'static, T>;

/// A cell whose access an adjacent atomic decides. The interface is that of loom.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    #[inline]
    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    #[inline]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// The locks of `std` for threads that sleep. A sleeper of parking_lot enters a table of the
/// process, whose locks may be held forever in the child of a `fork`.
type Sleepers<T> = std::sync::Mutex<T>;

fn lock<T>(sleepers: &Sleepers<T>) -> std::sync::MutexGuard<'_, T> {
    sleepers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits while `condition` holds, for at most `limit`.
fn wait_while<'a, T>(
    condvar: &Condvar,
    guard: std::sync::MutexGuard<'a, T>,
    limit: Option<Duration>,
    condition: impl FnMut(&mut T) -> bool,
) -> std::sync::MutexGuard<'a, T> {
    let Some(limit) = limit else {
        return condvar.wait_while(guard, condition).unwrap_or_else(PoisonError::into_inner);
    };
    condvar.wait_timeout_while(guard, limit, condition).unwrap_or_else(PoisonError::into_inner).0
}

/// Blocks one thread until another one gives the token or a time is over. A token that is given
/// before the wait is not lost.
#[derive(Debug, Default)]
pub(crate) struct Parker {
    token: Sleepers<bool>,
    given: Condvar,
}

impl Parker {
    /// Waits for the token, for at most `limit`, and takes the token. Without `limit` it waits for
    /// the token only.
    pub(crate) fn park(&self, limit: Option<Duration>) {
        *wait_while(&self.given, lock(&self.token), limit, |token| !*token) = false;
    }

    /// Gives the token to the parked thread, or to the next one that parks.
    pub(crate) fn unpark(&self) {
        *lock(&self.token) = true;
        self.given.notify_one();
    }
}

/// Unlocks and locks again. A thread that waits for the lock gets it in between.
pub(crate) fn yield_lock<'a, T>(_: &'a Mutex<T>, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    parking_lot::MutexGuard::bump(&mut guard);
    guard
}

/// A condition that any number of threads wait for.
#[derive(Debug, Default)]
pub(crate) struct Event {
    /// The number of threads that wait. A shard has two events, and their size decides the layout
    /// of its hot fields.
    waiters: Sleepers<u32>,
    happened: Condvar,
}

impl Event {
    const fn new() -> Self {
        Self { waiters: Sleepers::new(0), happened: Condvar::new() }
    }

    /// Waits until `condition` returns `true` or `until` has come. Calls `condition` first and
    /// after each notification.
    pub(crate) fn wait(&self, until: Option<Instant>, condition: impl Fn() -> bool) {
        let mut waiters = lock(&self.waiters);
        *waiters += 1;
        let limit = until.map(|until| until.saturating_duration_since(Instant::now()));
        *wait_while(&self.happened, waiters, limit, |_| !condition()) -= 1;
    }

    /// Wakes all waiting threads. Called after the change that makes their condition true.
    pub(crate) fn notify_all(&self) {
        if *lock(&self.waiters) > 0 {
            self.happened.notify_all();
        }
    }

    /// Wakes one thread, which finds its condition unchanged. Returns `false` if no thread waits.
    #[cfg(test)]
    pub(crate) fn wake_in_vain(&self) -> bool {
        self.happened.notify_one();
        *lock(&self.waiters) > 0
    }
}

/// Returns the event for the object at this address. There is a fixed number of events, so objects
/// share them.
pub(crate) fn event_of(address: usize) -> &'static Event {
    static EVENTS: [Event; 64] = [const { Event::new() }; 64];
    &EVENTS[(address >> 6) % EVENTS.len()]
}

/// Starts a named thread.
pub(crate) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body)
}

/// Returns the identity of the calling thread.
pub(crate) fn thread_id() -> ThreadId {
    std::thread::current().id()
}

/// Returns `true` for the first call in this process.
pub(crate) fn first_warning() -> bool {
    static WARNED: AtomicBool = AtomicBool::new(false);
    // ORDERING: Relaxed, because one read-modify-write decides which call is the first.
    !WARNED.swap(true, Ordering::Relaxed)
}
