//! The parts that ship: `std`'s atomics and threads, crossbeam's queue, parking_lot's locks.

use std::cell::Cell;
use std::io;
use std::time::Instant;

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Arc, OnceLock, Weak};
pub(crate) use std::thread::{JoinHandle, ThreadId, yield_now};

pub(crate) use crossbeam_queue::SegQueue as Queue;
pub(crate) use parking_lot::Mutex;

/// A cell whose access is decided by an atomic next to it; the shape is loom's.
#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// Blocks one thread until it is told to go on or an instant has come. A token given before the wait is not lost.
#[derive(Debug, Default)]
pub(crate) struct Parker {
    token: Mutex<bool>,
    given: parking_lot::Condvar,
}

impl Parker {
    /// Waits for the token or for `until` (`None`: for the token alone) and takes the token.
    pub(crate) fn park(&self, until: Option<Instant>) {
        let mut token = self.token.lock();
        while !*token {
            match until {
                None => self.given.wait(&mut token),
                Some(until) => {
                    if self.given.wait_until(&mut token, until).timed_out() {
                        break;
                    }
                }
            }
        }
        *token = false;
    }

    /// Gives the token; the parked thread, or the next one to park, goes on.
    pub(crate) fn unpark(&self) {
        *self.token.lock() = true;
        self.given.notify_one();
    }
}

/// Starts a named thread.
pub(crate) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body)
}

/// Asks the system to end the calling thread's waits when they are due: Linux lets them run 50 us over by default, so that
/// wake-ups of several threads fall together. Where it cannot be asked, waits stay as they are.
pub(crate) fn wake_on_time() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// The identity of the calling thread.
pub(crate) fn thread_id() -> ThreadId {
    std::thread::current().id()
}

/// How many threads can run at once here; 1 if the system does not say.
pub(crate) fn parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A small number of the calling thread's own, handed out in the order in which threads first ask.
pub(crate) fn thread_slot() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SLOT: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    SLOT.with(|slot| {
        if slot.get() == usize::MAX {
            // ORDERING: Relaxed, the number only has to differ from the other threads'.
            slot.set(THREADS.fetch_add(1, Ordering::Relaxed));
        }
        slot.get()
    })
}

static LIVE_TIMERS: AtomicUsize = AtomicUsize::new(0);

/// One timer more; how many there are now in this process.
pub(crate) fn timer_born() -> usize {
    // ORDERING: Relaxed, only counted.
    LIVE_TIMERS.fetch_add(1, Ordering::Relaxed) + 1
}

/// One timer less.
pub(crate) fn timer_died() {
    // ORDERING: Relaxed, only counted.
    LIVE_TIMERS.fetch_sub(1, Ordering::Relaxed);
}

/// `true` the first time in this process that it is called.
pub(crate) fn first_warning() -> bool {
    static WARNED: AtomicBool = AtomicBool::new(false);
    // ORDERING: Relaxed, one read-modify-write decides who is first.
    !WARNED.swap(true, Ordering::Relaxed)
}
