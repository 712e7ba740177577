//! The floor, that is, no timer at all but the least work of any timer. Scheduling reads the clock,
//! allocates 48 bytes and takes a lock. Cancelling takes a lock and frees the bytes. A reset reads
//! the clock and does one atomic addition. No lock is contended.
//!
//! It never runs a task.

use crate::peer::{FLOOR, Job, Peer};
use parking_lot::Mutex;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

thread_local! {
    /// A lock per thread, which each call has to look up.
    static LOCK: Mutex<u64> = const { Mutex::new(0) };
}

/// The count of resets of one thread.
#[derive(Default)]
pub(crate) struct Floor(AtomicU64);

impl Clone for Floor {
    fn clone(&self) -> Self {
        Self::default()
    }
}

#[inline]
fn lock_and_unlock() {
    LOCK.with(|lock| *lock.lock() += 1);
}

impl Peer for Floor {
    const NAME: &'static str = FLOOR;
    type Handle = Box<[u64; 6]>;
    type Work<J: Job> = ();

    fn build(_: Duration) -> Self {
        Self::default()
    }

    fn work<J: Job>(_: J) {}

    #[inline]
    fn schedule<J: Job>(&mut self, delay: Duration, (): &()) -> Self::Handle {
        black_box(Instant::now() + delay);
        lock_and_unlock();
        // Zeros would be allocated by `calloc`, which leaves the fast path of glibc.
        black_box(Box::new([1; 6]))
    }

    #[inline]
    fn cancel(&mut self, handle: Self::Handle) {
        lock_and_unlock();
        drop(black_box(handle));
    }

    #[inline]
    fn reset(&mut self, _: &mut Self::Handle, delay: Duration) {
        black_box(Instant::now() + delay);
        // ORDERING: Relaxed, because the count is never read.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
